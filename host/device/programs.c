/* SPDX-License-Identifier: Apache-2.0 */
/* A key is the exact bytes of the relative op: head, operands, KEY attributes. */
#include "device/programs.h"

#include "device/device.h"

#include <frit/frit.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/map.h"
#include "base/str.h"
#include "device/cache.h"
#include "device/prepared_cache.h"
#include "graph/custom.h"
#include "plan/program.h"
#include "plan/relative.h"

/* Estimate of the bytes of a program in the driver, which only the driver knows. */
enum { PROGRAM_BYTES = 1024 };

struct programs {
    frit_device *device;
    pthread_mutex_t lock; /* inside that of the device's cache */
    struct map entries;   /* relative op -> struct op_entry */
};

struct op_entry {
    struct cache_entry entry; /* first */
    struct programs *programs;
    struct program *program; /* NULL: the driver refuses the op */
    size_t key_bytes;
    unsigned char key[];
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

/* ---- entries ---- */

static void entry_release(struct cache_entry *entry)
{
    struct op_entry *op = (struct op_entry *)entry;

    program_unref(op->program);
    free(op);
}

static bool entry_evict(struct cache_entry *entry)
{
    const struct op_entry *op = (struct op_entry *)entry;

    pthread_mutex_lock(&op->programs->lock);
    map_remove(&op->programs->entries, op->key, op->key_bytes);
    pthread_mutex_unlock(&op->programs->lock);
    return true;
}

static const struct cache_class entry_class = {entry_evict, entry_release};

/* False: there is none. */
static bool entry_find(struct programs *programs, const struct str *key, struct program **out)
{
    struct op_entry *op;

    pthread_mutex_lock(&programs->lock);
    op = map_get(&programs->entries, key->text, key->length);
    if (op)
        cache_use(&op->entry);
    *out = op && op->program ? program_ref(op->program) : NULL;
    pthread_mutex_unlock(&programs->lock);
    return op;
}

/* Lists a program, or a refusal, unless another thread was faster.  What is not listed, for want of
 * memory too, is made again. */
static void entry_add(struct programs *programs, const struct str *key, struct program *program)
{
    size_t bytes = sizeof(struct op_entry) + key->length;
    struct cache *cache = &programs->device->cache;
    struct op_entry *op = malloc(bytes);
    bool added;

    if (!op)
        return;
    *op = (struct op_entry){.programs = programs, .program = program, .key_bytes = key->length};
    memcpy(op->key, key->text, key->length);
    cache_lock(cache);
    pthread_mutex_lock(&programs->lock);
    added = !map_get(&programs->entries, key->text, key->length) &&
            map_add(&programs->entries, key->text, key->length, op);
    pthread_mutex_unlock(&programs->lock);
    if (added) {
        if (program)
            program_ref(program);
        cache_add(cache, &op->entry, &entry_class,
                  bytes + key->length + sizeof(struct map_entry) +
                      (program ? sizeof(*program) + PROGRAM_BYTES : 0));
    }
    cache_unlock(cache);
    if (!added)
        free(op);
}

/* ---- programs ---- */

frit_status programs_create(frit_device *device, struct programs **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    (*out)->device = device;
    pthread_mutex_init(&(*out)->lock, NULL);
    return FRIT_OK;
}

static void entry_drop(void *value)
{
    struct op_entry *op = value;
    struct cache *cache = &op->programs->device->cache;

    cache_lock(cache);
    cache_remove(cache, &op->entry);
    cache_unlock(cache);
    entry_release(&op->entry);
}

void programs_destroy(struct programs *programs)
{
    if (!programs)
        return;
    map_fini(&programs->entries, entry_drop);
    pthread_mutex_destroy(&programs->lock);
    free(programs);
}

static bool table_is_whole(const frit_program_table *table)
{
    return table && FRIT_HAS(table, frit_program_table, destroy) && table->describe &&
           table->prepare && table->destroy;
}

/* The driver's program for an op that it claims. */
static frit_status create(frit_device *device, const frit_op_desc *op, struct program **out,
                          frit_err *err)
{
    frit_program made = {.struct_size = sizeof(made)};
    frit_status st =
        fail_from(err, device->backend->op_program(device->self, op, &made, err), "op_program");

    if (!st && !table_is_whole(made.table))
        st = fail(err, FRIT_INTERNAL, "%s: op_program gave a table that lacks required slots",
                  device->name);
    if (st)
        return st;
    *out = program_create(&made, PROGRAM_OF_OP);
    if (!*out) {
        made.table->destroy(made.self);
        return fail_memory(err, sizeof(**out));
    }
    atomic_fetch_add(&device->count.programs, 1);
    return FRIT_OK;
}

/* *out stays NULL where the driver refuses. */
static frit_status claim(frit_device *device, const frit_op_desc *op, struct program **out,
                         frit_err *err)
{
    uint64_t claimed = 0;
    frit_status st =
        fail_from(err, device->backend->supports(device->self, op, 1, sizeof(*op), &claimed, err),
                  "supports");

    if (!st && claimed & 1)
        st = create(device, op, out, err);
    return st == FRIT_UNSUPPORTED ? FRIT_OK : st;
}

static frit_status find_or_make(frit_device *device, const struct op_form *form,
                                struct program **out, frit_err *err)
{
    struct str key = {0};
    frit_status st = FRIT_OK;

    if (!form_key(form, &key)) {
        st = fail_memory(err, sizeof(*form));
    } else if (!entry_find(device->programs, &key, out)) {
        st = claim(device, &form->desc, out, err);
        if (!st)
            entry_add(device->programs, &key, *out);
    }
    str_fini(&key);
    return st;
}

frit_status programs_get(frit_device *device, const struct program_call *call, struct program **out,
                         frit_err *err)
{
    struct op_form form;
    frit_status st;

    *out = NULL;
    TRY(op_form_init(call, &form, err));
    st = find_or_make(device, &form, out, err);
    op_form_fini(&form);
    return st;
}

frit_status programs_have(frit_device *device, const struct program_call *call, bool *yes,
                          frit_err *err)
{
    struct program *program;
    frit_status st = programs_get(device, call, &program, err);

    *yes = program != NULL;
    program_unref(program);
    return st;
}

/* ---- what prepare answered ---- */

static void abandon(struct program *program)
{
    prepared_cache_abandon(program->prepared);
}

static void retire(struct program *program)
{
    prepared_cache_retire(program->prepared);
}

static const struct program_hooks hooks = {abandon, retire};

frit_status programs_prepared_cache(frit_device *device, struct program *program,
                                    struct prepared_cache **out, frit_err *err)
{
    void *known = atomic_load_explicit(&program->prepared, memory_order_acquire);

    *out = known;
    if (known)
        return FRIT_OK;
    TRY(prepared_cache_create(device, program, out, err));
    atomic_store(&program->hooks, &hooks);
    if (!atomic_compare_exchange_strong(&program->prepared, &known, *out)) {
        prepared_cache_destroy(*out);
        *out = known;
    }
    return FRIT_OK;
}
