/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for single ops.  A key is the exact bytes of the relative op: head, operands, KEY
 * attributes. */
#include "device/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/map.h"
#include "base/str.h"
#include "plan/relative.h"

struct programs {
    pthread_mutex_t lock;
    struct map entries; /* relative op -> struct op_program */
};

/* ---- the relative op ---- */

struct program_call program_call_of(const struct graph *graph, const struct graph_op *op,
                                    struct op_input *in, struct op_type *out)
{
    graph_operands(graph, op->in, op->n_in, in);
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_SCALAR)
            in[i].type = (struct op_type){.dtype = op->in[i].dtype};
    }
    for (uint32_t k = 0; k < op->n_out; k++) {
        out[k] = (struct op_type){0};
        if (op->out[k] != GRAPH_NO_VALUE)
            out[k] = graph->values[op->out[k]].type;
    }
    return (struct program_call){.op = op->op,
                                 .n_in = op->n_in,
                                 .n_out = op->n_out,
                                 .attrs = op->attrs,
                                 .in = in,
                                 .out = out};
}

/* `extents` has room for those of all operands. */
static void form_operands(const struct program_call *call, int64_t *extents, frit_operand *out)
{
    uint32_t values = 0, scalars = 0, n_extents = 0;

    for (uint32_t i = 0; i < call->n_in; i++) {
        const struct op_input *in = &call->in[i];

        if (in->kind == FRIT_OPERAND_TENSOR)
            relative_tensor(extents, &n_extents, &in->type, values++, &out[i]);
        else if (in->kind == FRIT_OPERAND_SCALAR)
            out[i] = (frit_operand){.kind = in->kind, .dtype = in->type.dtype, .value = scalars++};
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        if (call->out[i].dtype != FRIT_NO_DTYPE)
            relative_tensor(extents, &n_extents, &call->out[i], values++, &out[call->n_in + i]);
    }
}

frit_status op_form_init(const struct program_call *call, struct op_form *out, frit_err *err)
{
    const frit_op_info *row = op_row(call->op);
    int64_t fixed[sizeof(out->fixed) / sizeof(out->fixed[0]) * FRIT_MAX_RANK];
    int64_t *extents = fixed;
    uint32_t n = call->n_in + call->n_out;

    memset(out, 0, sizeof(*out));
    out->operands = out->fixed;
    if (n > sizeof(out->fixed) / sizeof(out->fixed[0])) {
        out->operands = calloc(n, sizeof(*out->operands));
        extents = calloc(n, FRIT_MAX_RANK * sizeof(*extents));
        if (!out->operands || !extents) {
            free(out->operands);
            free(extents);
            return fail_memory(err, n * sizeof(*out->operands));
        }
    }
    form_operands(call, extents, out->operands);
    relative_attrs(op_record(row), call->attrs, (unsigned char *)out->attrs);
    out->desc = (frit_op_desc){.struct_size = FRIT_END_OF(frit_op_desc, name),
                               .id = call->op,
                               .rev = row->rev,
                               .n_in = call->n_in,
                               .n_out = call->n_out,
                               .operand_stride = sizeof(frit_operand),
                               .n_extra = row->traits & FRIT_OP_SEEDED ? 2 : 0,
                               .in = out->operands,
                               .out = out->operands + call->n_in,
                               .attrs = out->attrs,
                               .name = custom_name(call->op)};
    if (extents != fixed)
        free(extents);
    return FRIT_OK;
}

void op_form_fini(struct op_form *form)
{
    if (form->operands != form->fixed)
        free(form->operands);
}

static bool form_key(const struct op_form *form, struct str *key)
{
    const frit_op_desc *d = &form->desc;
    uint32_t head[] = {d->id, d->n_in, d->n_out};

    str_add(key, (const char *)head, sizeof(head));
    str_add(key, (const char *)form->operands, (d->n_in + d->n_out) * sizeof(frit_operand));
    str_add(key, (const char *)form->attrs, (size_t)form->attrs[0]);
    return !key->failed;
}

/* ---- programs ---- */

frit_status programs_create(struct programs **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    pthread_mutex_init(&(*out)->lock, NULL);
    return FRIT_OK;
}

static void entry_destroy(void *value)
{
    struct op_program *entry = value;

    prepared_cache_destroy(entry->cache);
    if (entry->program.table)
        entry->program.table->destroy(entry->program.self);
    free(entry);
}

void programs_destroy(struct programs *programs)
{
    if (!programs)
        return;
    map_fini(&programs->entries, entry_destroy);
    pthread_mutex_destroy(&programs->lock);
    free(programs);
}

static bool table_is_whole(const frit_program_table *table)
{
    return table && FRIT_HAS(table, frit_program_table, destroy) && table->describe &&
           table->prepare && table->destroy;
}

/* Asks the driver for a program of an op that it claims. */
static frit_status ask(frit_device *device, const frit_op_desc *op, struct op_program *entry,
                       frit_err *err)
{
    frit_status st = device->backend->op_program(device->self, op, &entry->program, err);

    fail_from(err, st, "op_program");
    if (!st && !table_is_whole(entry->program.table))
        st = fail(err, FRIT_INTERNAL, "%s: op_program gave a table that lacks required slots",
                  device->name);
    if (st) {
        entry->program.table = NULL;
        return st;
    }
    st = prepared_cache_create(&entry->program, NULL, &entry->cache, err);
    if (st) {
        entry->program.table->destroy(entry->program.self);
        entry->program.table = NULL;
        return st;
    }
    atomic_fetch_add(&device->count.programs, 1);
    return FRIT_OK;
}

/* A refusal is an entry without a table. */
static frit_status entry_create(frit_device *device, const frit_op_desc *op,
                                struct op_program **out, frit_err *err)
{
    struct op_program *entry = calloc(1, sizeof(*entry));
    uint64_t claimed = 0;
    frit_status st;

    *out = NULL;
    if (!entry)
        return fail_memory(err, sizeof(*entry));
    entry->program.struct_size = sizeof(entry->program);
    st = device->backend->supports(device->self, op, 1, sizeof(*op), &claimed, err);
    fail_from(err, st, "supports");
    if (!st && claimed & 1)
        st = ask(device, op, entry, err);
    if (st && st != FRIT_UNSUPPORTED) {
        entry_destroy(entry);
        return st;
    }
    *out = entry;
    return FRIT_OK;
}

/* Stores an entry unless another thread was faster; gives the one that counts. */
static frit_status entry_store(struct programs *programs, const struct str *key,
                               struct op_program *entry, const struct op_program **out,
                               frit_err *err)
{
    struct op_program *known;
    bool stored = false;

    pthread_mutex_lock(&programs->lock);
    known = map_get(&programs->entries, key->text, key->length);
    if (!known)
        stored = map_add(&programs->entries, key->text, key->length, entry);
    pthread_mutex_unlock(&programs->lock);
    *out = known ? known : entry;
    if (stored)
        return FRIT_OK;
    entry_destroy(entry);
    return known ? FRIT_OK : fail_memory(err, key->length);
}

static frit_status find_or_make(frit_device *device, const struct op_form *form,
                                const struct op_program **out, frit_err *err)
{
    struct programs *programs = device->programs;
    struct op_program *entry;
    struct str key = {0};
    frit_status st = FRIT_OK;

    if (!form_key(form, &key)) {
        st = fail_memory(err, sizeof(*form));
        goto out;
    }
    pthread_mutex_lock(&programs->lock);
    *out = map_get(&programs->entries, key.text, key.length);
    pthread_mutex_unlock(&programs->lock);
    if (!*out) {
        st = entry_create(device, &form->desc, &entry, err);
        if (!st)
            st = entry_store(programs, &key, entry, out, err);
    }
out:
    str_fini(&key);
    return st;
}

frit_status programs_get(frit_device *device, const struct program_call *call,
                         const struct op_program **out, frit_err *err)
{
    struct op_form form;
    frit_status st;

    *out = NULL;
    TRY(op_form_init(call, &form, err));
    st = find_or_make(device, &form, out, err);
    op_form_fini(&form);
    return st;
}

/* ---- programs for blocks ---- */

static void abandon_cache(void *cache)
{
    prepared_cache_abandon(cache);
}

static void destroy_cache(void *cache)
{
    prepared_cache_destroy(cache);
}

static const struct plan_prepared_ops cache_ops = {abandon_cache, destroy_cache};

frit_status programs_prepared_cache(struct plan_program *program, struct prepared_cache **out,
                                    frit_err *err)
{
    void *known = atomic_load_explicit(&program->prepared, memory_order_acquire);

    *out = known;
    if (known)
        return FRIT_OK;
    TRY(prepared_cache_create(&program->program, program, out, err));
    atomic_store(&program->prepared_ops, &cache_ops);
    if (!atomic_compare_exchange_strong(&program->prepared, &known, *out)) {
        prepared_cache_destroy(*out);
        *out = known;
    }
    return FRIT_OK;
}
