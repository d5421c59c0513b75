/* SPDX-License-Identifier: Apache-2.0 */
/* Custom ops as rows of ops.def: the plugin's decompose writes through a table that checks each op
 * like any other. */
#include <string.h>

#include <frit/custom.h>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/custom.h"
#include "graph/custom_call.h"
#include "graph/decompose/decompose.h"
#include "graph/shape/shape_custom.h"

enum { MAX_PARTS = 1 << 16 };

/* A decomposition under way. */
struct parts {
    struct graph *graph;
    const frit_op_info *row;
    frit_status status; /* of the first part that failed */
    frit_err *err;
};

static const char *part_trouble(const struct parts *p, const frit_custom_part *part)
{
    const frit_op_info *row;
    uint32_t only = FRIT_OP_SEEDED | FRIT_OP_ORDERED;

    if (!FRIT_HAS(part, frit_custom_part, attrs))
        return "a part's struct_size is not set";
    row = part->op < FRIT_OP_LIMIT ? op_row(part->op) : NULL;
    if (!row)
        return "a part is not a row of ops.def";
    if (row->traits & only & ~p->row->traits)
        return "a part is SEEDED or ORDERED, the op is not";
    if (part->n_in && (!part->in || part->in_stride < sizeof(frit_custom_operand)))
        return "a part's operands are at NULL or have too small a stride";
    if (part->n_in > (1u << 12))
        return "a part has more than 4096 operands";
    return p->graph->n_ops >= MAX_PARTS ? "it has more than 65536 parts" : NULL;
}

static frit_status append(struct parts *p, const frit_custom_part *part, uint32_t *values)
{
    struct graph_operand *in = arena_array(&p->graph->arena, (size_t)part->n_in + 1, sizeof(*in));
    struct graph_call call = {
        .op = part->op, .n_in = part->n_in, .wanted = part->wanted, .in = in, .attrs = part->attrs};
    uint32_t out[FRIT_OP_MAX_OUT];

    if (!in)
        return fail_memory(p->err, part->n_in * sizeof(*in));
    for (uint32_t i = 0; i < part->n_in; i++) {
        const frit_custom_operand *from =
            (const frit_custom_operand *)(const void *)((const char *)part->in +
                                                        (size_t)part->in_stride * i);

        in[i] = (struct graph_operand){
            .kind = from->kind, .value = from->value, .scalar = from->scalar};
    }
    TRY(graph_append(p->graph, &call, out, p->err));
    for (uint32_t k = 0; k < op_n_out(op_row(part->op)) && values; k++)
        values[k] = out[k];
    return FRIT_OK;
}

/* After a failure nothing is appended any more, whatever the plugin makes of it. */
static frit_status add(void *self, const frit_custom_part *part, uint32_t *values, frit_err *err)
{
    struct parts *p = self;
    const char *why = p->status ? NULL : part_trouble(p, part);

    if (why)
        p->status = fail(p->err, FRIT_INTERNAL, "%s", why);
    if (!p->status)
        p->status = append(p, part, values);
    return p->status ? fail(err, p->status, "%s", p->err->text) : FRIT_OK;
}

static frit_status take_results(const struct parts *p, const struct op_type *out,
                                const uint32_t *results)
{
    char gives[128], wants[128];

    for (uint32_t k = 0; k < op_n_out(p->row); k++) {
        const struct graph_value *value;

        if (out[k].dtype == FRIT_NO_DTYPE)
            continue;
        if (results[k] >= p->graph->n_values)
            return fail(p->err, FRIT_INTERNAL, "result %s is value %u of %u", p->row->out[k].name,
                        results[k], p->graph->n_values);
        value = &p->graph->values[results[k]];
        if (!op_type_equal(&value->type, &out[k]))
            return fail(p->err, FRIT_INTERNAL, "result %s is %s, infer says %s",
                        p->row->out[k].name, op_type_text(&value->type, gives, sizeof(gives)),
                        op_type_text(&out[k], wants, sizeof(wants)));
        TRY(graph_output(p->graph, results[k], p->err));
    }
    return FRIT_OK;
}

frit_status decompose_custom(const struct op_call *call, const struct op_type *out,
                             struct graph *graph, frit_err *err)
{
    const struct custom_op *custom = custom_at(call->op);
    struct parts p = {.graph = graph, .row = &custom->row, .err = err};
    const frit_custom_build build = {
        .struct_size = FRIT_END_OF(frit_custom_build, add), .self = &p, .add = add};
    uint32_t results[FRIT_CUSTOM_OUT];
    frit_err said = ERR_INIT;
    struct custom_view view;
    frit_status st;

    memset(results, 0xff, sizeof(results));
    TRY(custom_view_init(&view, &custom->row, call, out, err));
    st = custom->decompose(custom->self, &view.call, &build, results, &said);
    custom_view_fini(&view);
    if (!p.status && st)
        return custom_fail(&custom->row, "decompose", st, &said, err);
    st = p.status ? p.status : take_results(&p, out, results);
    if (st)
        fail_context(err, "%s: its decomposition by plugin '%s'", custom->row.name, custom->plugin);
    return st;
}
