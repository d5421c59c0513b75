/* SPDX-License-Identifier: Apache-2.0 */
#include "fusers.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "graph/op.h"

enum { MAX_OPS = 2048, MAX_ALIVE = 64 };

struct rig_counts rig_counts;

struct probe {
    const struct rule *rule;
    bool closed, reduced;
    uint32_t pushed, accepted;
    uint32_t alive[MAX_ALIVE], n_alive; /* values that its ops made; all of them up to MAX_ALIVE */
    uint32_t n_values, n_ids;
    uint32_t *values; /* of accepted ops */
    uint32_t *ids;
};

struct product {
    const struct rule *rule;
    uint32_t n_ops;
    uint32_t *ids;
};

/* ---- programs ---- */

static frit_status product_describe(void *self, frit_program_info *out, frit_err *err)
{
    struct product *product = self;

    (void)err;
    out->n_ops = product->n_ops - (product->rule->lie == LIE_PROGRAM);
    out->name = str_of(product->rule->name);
    return FRIT_OK;
}

static frit_status product_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                                   frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    (void)self, (void)candidate, (void)sig, (void)out, (void)variant;
    return fail(err, FRIT_UNSUPPORTED, "a program of a test is never launched");
}

static void product_destroy(void *self)
{
    struct product *product = self;

    rig_counts.programs--;
    free(product->ids);
    free(product);
}

static const frit_program_table product_table = {.struct_size = sizeof(product_table),
                                                 .describe = product_describe,
                                                 .prepare = product_prepare,
                                                 .destroy = product_destroy};
static const frit_program_table broken_table = {
    .struct_size = sizeof(broken_table), .describe = product_describe, .destroy = product_destroy};

uint32_t rig_program_ops(const frit_program *program, const uint32_t **ids)
{
    const struct product *product = program->self;

    *ids = product->ids;
    return product->n_ops;
}

/* ---- fusers ---- */

static frit_status probe_clone(const void *fuser, void **out, frit_err *err)
{
    const struct probe *from = fuser;
    struct probe *probe;

    *out = NULL;
    if (from->rule->lie == LIE_CLONE)
        return fail(err, FRIT_UNSUPPORTED, "not today");
    if (from->rule->lie == LIE_NOTHING)
        return FRIT_OK;
    probe = calloc(1, sizeof(*probe));
    if (!probe)
        return fail_memory(err, sizeof(*probe));
    *probe = *from;
    probe->values = malloc(MAX_OPS * 4 * sizeof(*probe->values));
    probe->ids = malloc(MAX_OPS * sizeof(*probe->ids));
    if (!probe->values || !probe->ids) {
        free(probe->values);
        free(probe->ids);
        free(probe);
        return fail_memory(err, MAX_OPS * sizeof(*probe->ids));
    }
    memcpy(probe->values, from->values, from->n_values * sizeof(*probe->values));
    memcpy(probe->ids, from->ids, from->n_ids * sizeof(*probe->ids));
    rig_counts.clones++;
    *out = probe;
    return FRIT_OK;
}

static void probe_destroy(void *fuser)
{
    struct probe *probe = fuser;

    if (!probe)
        return;
    free(probe->values);
    free(probe->ids);
    free(probe);
    rig_counts.clones--;
}

static void probe_reset(void *fuser)
{
    struct probe *probe = fuser;

    rig_counts.resets++;
    probe->closed = probe->reduced = false;
    probe->pushed = probe->accepted = probe->n_alive = probe->n_values = probe->n_ids = 0;
}

static bool has_value(const struct probe *probe, const frit_op_desc *op)
{
    for (uint32_t k = 0; k < op->n_in; k++) {
        for (uint32_t v = 0; v < probe->n_values; v++) {
            if (op->in[k].kind == FRIT_OPERAND_TENSOR && probe->values[v] == op->in[k].value)
                return true;
        }
    }
    return false;
}

static bool wants(const struct probe *probe, const frit_op_desc *op)
{
    const struct rule *rule = probe->rule;
    uint32_t cls = op_row(op->id)->cls;

    if ((rule->cap && probe->accepted == rule->cap) || probe->n_ids == MAX_OPS)
        return false;
    if (rule->outputs && probe->n_alive >= 2 * rule->outputs)
        return false;
    if (rule->needs_death && probe->accepted && !op->n_dead)
        return false;
    switch (rule->kind) {
    case RULE_CHAIN:
        return cls == FRIT_CLASS_MAP;
    case RULE_LINKED:
        return cls == FRIT_CLASS_MAP && (!probe->accepted || has_value(probe, op));
    case RULE_SEQUENCE:
        return rule->sequence[probe->accepted] == op->id;
    case RULE_REDUCE:
        return cls == FRIT_CLASS_MAP || (cls == FRIT_CLASS_REDUCE && !probe->reduced);
    default:
        return true;
    }
}

static void note_alive(struct probe *probe, const frit_op_desc *op)
{
    for (uint32_t k = 0; k < op->n_out && probe->n_alive < MAX_ALIVE; k++)
        probe->alive[probe->n_alive++] = op->out[k].value;
    for (uint32_t i = 0; i < op->n_dead; i++) {
        for (uint32_t k = 0; k < probe->n_alive; k++) {
            if (probe->alive[k] == op->dead[i])
                probe->alive[k--] = probe->alive[--probe->n_alive];
        }
    }
}

static void push_one(struct probe *probe, const frit_op_desc *op)
{
    probe->pushed++;
    rig_counts.after_close += probe->closed;
    if (probe->closed || !wants(probe, op)) {
        probe->closed = true;
        return;
    }
    probe->ids[probe->n_ids++] = op->id;
    note_alive(probe, op);
    if (!probe->rule->outputs || probe->n_alive <= probe->rule->outputs)
        probe->accepted = probe->n_ids;
    probe->reduced |= op_row(op->id)->cls == FRIT_CLASS_REDUCE;
    for (uint32_t k = 0; k < op->n_in + op->n_out && probe->n_values < MAX_OPS * 4; k++) {
        const frit_operand *operand = k < op->n_in ? &op->in[k] : &op->out[k - op->n_in];

        if (operand->kind == FRIT_OPERAND_TENSOR)
            probe->values[probe->n_values++] = operand->value;
    }
    if (probe->accepted == probe->rule->cap ||
        (probe->rule->kind == RULE_SEQUENCE && !probe->rule->sequence[probe->accepted]))
        probe->closed = true;
}

static void probe_push(void *fuser, const frit_op_desc *ops, uint32_t count, uint32_t stride)
{
    for (uint32_t i = 0; i < count; i++)
        push_one(fuser, (const void *)((const char *)ops + (size_t)i * stride));
}

static bool is_ready(const struct probe *probe)
{
    switch (probe->rule->kind) {
    case RULE_NEVER:
        return false;
    case RULE_FIRST:
        return probe->accepted && probe->ids[0] == probe->rule->sequence[0];
    case RULE_REDUCE:
        return probe->reduced;
    case RULE_SEQUENCE:
        return probe->accepted && !probe->rule->sequence[probe->accepted];
    default:
        return probe->accepted;
    }
}

static void probe_state(const void *fuser, frit_fuser_state *out)
{
    const struct probe *probe = fuser;
    enum rule_lie lie = probe->rule->lie;

    out->open = lie == LIE_OPEN ? 7 : !probe->closed;
    out->ready = is_ready(probe);
    out->accepted = probe->accepted + (lie == LIE_ACCEPTED);
    if (lie == LIE_SHRINKS)
        out->accepted = probe->pushed < 8 ? 8 - probe->pushed : 0;
    out->quality = lie == LIE_QUALITY ? 1001 : probe->rule->quality;
}

static frit_status probe_finish(void *fuser, frit_program *out, frit_err *err)
{
    struct probe *probe = fuser;
    struct product *product;

    if (probe->rule->lie == LIE_FINISH || !is_ready(probe))
        return fail(err, FRIT_INTERNAL, "no program");
    product = calloc(1, sizeof(*product));
    if (!product)
        return fail_memory(err, sizeof(*product));
    product->rule = probe->rule;
    product->n_ops = probe->accepted;
    product->ids = probe->ids;
    probe->ids = NULL;
    rig_counts.programs++;
    out->table = probe->rule->lie == LIE_TABLE ? &broken_table : &product_table;
    out->self = product;
    return FRIT_OK;
}

static const frit_fuser_table probe_table = {.struct_size = sizeof(probe_table),
                                             .clone = probe_clone,
                                             .destroy = probe_destroy,
                                             .reset = probe_reset,
                                             .push = probe_push,
                                             .state = probe_state,
                                             .finish = probe_finish};

static struct probe prototypes[MAX_RULES];

void rig_fusers_init(struct rig_fusers *fusers, struct rule *rules, uint32_t count)
{
    static const frit_fuser_device own = {.struct_size = sizeof(own), .same_plugin = 1},
                                   foreign = {.struct_size = sizeof(foreign)};
    static uint32_t nothing[1];

    *fusers = (struct rig_fusers){.count = count};
    for (uint32_t i = 0; i < count; i++) {
        prototypes[i] = (struct probe){.rule = &rules[i], .values = nothing, .ids = nothing};
        fusers->rules[i] = &rules[i];
        fusers->list[i] = (struct fuser){.table = &probe_table,
                                         .prototype = &prototypes[i],
                                         .device = rules[i].lie == LIE_RECORD ? &foreign : &own};
        strncpy(fusers->list[i].name, rules[i].name, sizeof(fusers->list[i].name) - 1);
    }
}
