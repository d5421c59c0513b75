/* SPDX-License-Identifier: Apache-2.0 */
/* Layout, in 32-bit words if nothing else is said:
 *
 *   version, number of calls, of ops, of steps;
 *   per step: whether it has a program; then for a program the version of its fuser, the lengths of
 *     plugin id, fuser name and state (64 bits), and these bytes; score, end, number of ops, the
 *     ops' numbers;
 *   64-bit digest of all preceding bytes.
 *
 * Nothing is aligned.  Reading beyond the end returns zeros and sets a flag, which is checked once
 * per list. */
#include "plan/blob.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <frit/op_table.h>

#include "base/fail.h"
#include "base/str.h"
#include "graph/op.h"
#include "plan/plan.h"
#include "plan/program.h"
#include "plan/relative.h"

enum {
    BLOB_VERSION = 2,
    STEP_WORDS = 4,      /* of the shortest step */
    MAX_STATE = 64 << 20 /* bytes of a program's state */
};

/* ---- writing ---- */

static void put(struct str *out, uint32_t word)
{
    str_add(out, (const char *)&word, sizeof(word));
}

/* Returns the state of a program; the caller frees `bytes`. */
static frit_status get_state(const frit_program *program, void **bytes, uint64_t *n_bytes,
                             frit_err *err)
{
    const frit_program_table *table = program->table;
    uint64_t capacity = 0;

    *bytes = NULL;
    if (table->struct_size < FRIT_END_OF(frit_program_table, to_state) || !table->to_state)
        return fail(err, FRIT_UNSUPPORTED, "a program has no to_state");
    for (int i = 0; i < 2; i++) {
        frit_status status;

        *n_bytes = capacity;
        status = table->to_state(program->self, *bytes, n_bytes, err);
        if (status)
            return fail_from(err, status, "to_state");
        if (*n_bytes <= capacity)
            return FRIT_OK;
        if (i == 1 || *n_bytes > MAX_STATE)
            break;
        capacity = *n_bytes;
        *bytes = malloc(capacity);
        if (!*bytes)
            return fail_memory(err, capacity);
    }
    return fail(err, FRIT_UNSUPPORTED, "to_state has %llu bytes for %llu",
                (unsigned long long)*n_bytes, (unsigned long long)capacity);
}

static frit_status put_program(struct str *out, const struct program *program,
                               const struct store_context *context, frit_err *err)
{
    const struct store_fuser *fuser;
    uint64_t n_bytes = 0;
    frit_status status;
    void *bytes;

    if (program->fuser >= context->n_fusers)
        return fail(err, FRIT_UNSUPPORTED, "no fuser has the number %u", program->fuser);
    fuser = &context->fusers[program->fuser];
    status = get_state(&program->program, &bytes, &n_bytes, err);
    if (!status) {
        put(out, fuser->version);
        put(out, (uint32_t)strlen(fuser->plugin));
        put(out, (uint32_t)strlen(fuser->name));
        str_add(out, (const char *)&n_bytes, sizeof(n_bytes));
        str_add(out, fuser->plugin, strlen(fuser->plugin));
        str_add(out, fuser->name, strlen(fuser->name));
        str_add(out, bytes, n_bytes);
    }
    free(bytes);
    return status;
}

static frit_status put_step(struct str *out, const struct plan_step *step,
                            const struct store_context *context, frit_err *err)
{
    put(out, step->program != NULL);
    if (step->program)
        TRY(put_program(out, step->program, context, err));
    put(out, step->score);
    put(out, (uint32_t)step->end);
    put(out, step->n_ops);
    str_add(out, (const char *)step->ops, step->n_ops * sizeof(*step->ops));
    return FRIT_OK;
}

frit_status blob_write(const struct plan *plan, const struct store_context *context,
                       struct str *out, frit_err *err)
{
    size_t start = out->length;
    uint64_t digest;

    if (plan->passing)
        return fail(err, FRIT_UNSUPPORTED, "a fuser failed while the plan was made");
    if (plan->saved) {
        str_add(out, plan->saved, plan->n_saved);
        return out->failed ? fail_memory(err, out->length) : FRIT_OK;
    }
    put(out, BLOB_VERSION);
    put(out, plan->n_calls);
    put(out, plan->n_ops);
    put(out, plan->n_steps);
    for (uint32_t i = 0; i < plan->n_steps; i++)
        TRY(put_step(out, &plan->steps[i], context, err));
    if (out->failed)
        return fail_memory(err, out->length);
    digest = XXH3_64bits(out->text + start, out->length - start);
    str_add(out, (const char *)&digest, sizeof(digest));
    return out->failed ? fail_memory(err, out->length) : FRIT_OK;
}

/* ---- reading ---- */

/* What a step's program is made of; fuser NULL: it has none. */
struct saved_program {
    const struct store_fuser *fuser;
    const void *bytes;
    uint64_t n_bytes;
};

struct blob_reader {
    const unsigned char *at;
    size_t left;
    bool truncated; /* tried to read beyond the end */
    const struct store_context *context;
    struct arena arena;
    uint32_t n_calls, n_ops, n_steps;
    struct saved_program *programs; /* per step, as are the blocks */
    struct plan_block *blocks;
};

/* Returns NULL if fewer bytes are left. */
static const void *get_bytes(struct blob_reader *reader, uint64_t count)
{
    const unsigned char *bytes = reader->at;

    if (count > reader->left) {
        reader->truncated = true;
        return NULL;
    }
    reader->at += count;
    reader->left -= (size_t)count;
    return bytes;
}

static void get_into(struct blob_reader *reader, void *out, size_t count)
{
    const void *bytes = get_bytes(reader, count);

    if (bytes && count)
        memcpy(out, bytes, count);
}

static uint32_t get(struct blob_reader *reader)
{
    uint32_t word = 0;

    get_into(reader, &word, sizeof(word));
    return word;
}

static frit_status reject(frit_err *err, const char *what)
{
    return fail(err, FRIT_INCOMPATIBLE, "not a saved plan: %s", what);
}

static const struct store_fuser *find_fuser(const struct store_context *context, frit_str plugin,
                                            frit_str name, uint32_t version)
{
    for (uint32_t i = 0; i < context->n_fusers; i++) {
        const struct store_fuser *fuser = &context->fusers[i];

        if (fuser->version == version && str_is(plugin, fuser->plugin) && str_is(name, fuser->name))
            return fuser;
    }
    return NULL;
}

static frit_status get_program(struct blob_reader *reader, struct saved_program *out, frit_err *err)
{
    uint32_t version = get(reader), n_plugin = get(reader), n_name = get(reader);
    frit_str plugin, name;

    get_into(reader, &out->n_bytes, sizeof(out->n_bytes));
    plugin = (frit_str){get_bytes(reader, n_plugin), n_plugin};
    name = (frit_str){get_bytes(reader, n_name), n_name};
    out->bytes = get_bytes(reader, out->n_bytes);
    if (reader->truncated)
        return reject(err, "a truncated program");
    out->fuser = find_fuser(reader->context, plugin, name, version);
    if (!out->fuser || !out->fuser->table->from_state)
        return fail(err, FRIT_INCOMPATIBLE, "fuser %.*s version %u is not there",
                    (int)(n_name < 64 ? n_name : 64), name.ptr, version);
    return FRIT_OK;
}

static frit_status get_step(struct blob_reader *reader, uint32_t number, frit_err *err)
{
    struct plan_block *block = &reader->blocks[number];
    uint32_t *ops;

    if (get(reader))
        TRY(get_program(reader, &reader->programs[number], err));
    block->score = get(reader);
    block->end = (enum plan_end)get(reader);
    block->n_ops = get(reader);
    if ((uint32_t)block->end >= PLAN_ENDS || !block->n_ops || block->n_ops > reader->n_ops ||
        block->n_ops > reader->left / sizeof(*ops))
        return reject(err, "an invalid step");
    ops = arena_array(&reader->arena, block->n_ops, sizeof(*ops));
    if (!ops)
        return fail_memory(err, block->n_ops * sizeof(*ops));
    get_into(reader, ops, block->n_ops * sizeof(*ops));
    for (uint32_t i = 0; i < block->n_ops; i++) {
        if (ops[i] >= reader->n_ops)
            return reject(err, "a step with ops that do not exist");
    }
    block->ops = ops;
    return FRIT_OK;
}

/* Reads everything but makes no program. */
static frit_status get_plan(struct blob_reader *reader, frit_err *err)
{
    uint32_t version = get(reader);

    reader->n_calls = get(reader);
    reader->n_ops = get(reader);
    reader->n_steps = get(reader);
    if (version != BLOB_VERSION || !reader->n_calls || !reader->n_steps ||
        reader->n_steps > reader->left / (STEP_WORDS * sizeof(uint32_t)))
        return reject(err, "an invalid header");
    reader->programs = arena_array(&reader->arena, reader->n_steps, sizeof(*reader->programs));
    reader->blocks = arena_array(&reader->arena, reader->n_steps, sizeof(*reader->blocks));
    if (!reader->programs || !reader->blocks)
        return fail_memory(err, reader->n_steps * sizeof(*reader->blocks));
    for (uint32_t i = 0; i < reader->n_steps; i++)
        TRY(get_step(reader, i, err));
    return reader->truncated || reader->left ? reject(err, "bytes after its end") : FRIT_OK;
}

frit_status blob_load(const void *bytes, size_t n_bytes, const struct store_context *context,
                      struct plan **out, frit_err *err)
{
    struct blob_reader reader = {.at = bytes, .context = context};
    frit_status status;
    uint64_t digest;

    *out = NULL;
    if (n_bytes < sizeof(digest))
        return reject(err, "truncated");
    reader.left = n_bytes - sizeof(digest);
    memcpy(&digest, reader.at + reader.left, sizeof(digest));
    if (digest != XXH3_64bits(bytes, reader.left))
        return reject(err, "a wrong digest");
    status = get_plan(&reader, err);
    if (!status)
        status = plan_create_saved(reader.n_calls, bytes, n_bytes, out, err);
    arena_fini(&reader.arena);
    return status;
}

/* ---- making the steps ---- */

static frit_status check_made(const frit_program *program, const struct store_fuser *fuser,
                              frit_err *err)
{
    const frit_program_table *table = program->table;

    if (!table || table->struct_size < FRIT_END_OF(frit_program_table, destroy) ||
        !table->describe || !table->prepare || !table->destroy)
        return reject(err, "from_state made no program");
    if (program_runs(program, fuser->device))
        return FRIT_OK;
    table->destroy(program->self);
    return reject(err, "a program of another plugin than the driver's has no record");
}

/* The ops of a block as its fuser was pushed them: each death is at the last op that has the value.
 * The host runs collective ops, so no program has them. */
static frit_status list_ops(const struct relative *relative, const struct relative_deaths *deaths,
                            const struct plan_block *block, frit_op_desc *out, frit_err *err)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        uint32_t number = block->ops[i];
        const frit_op_info *row = op_row(relative->ops[number].id);

        if (row && row->cls == FRIT_CLASS_COLLECTIVE)
            return reject(err, "a collective op in a program");
        out[i] = relative->ops[number];
        out[i].dead = deaths->values + deaths->first[number];
        out[i].n_dead = deaths->first[number + 1] - deaths->first[number];
    }
    return FRIT_OK;
}

static frit_status make_program(struct blob_reader *reader, const struct relative *relative,
                                const struct relative_deaths *deaths, uint32_t step, frit_err *err)
{
    const struct saved_program *saved = &reader->programs[step];
    const struct store_fuser *fuser = saved->fuser;
    struct plan_block *block = &reader->blocks[step];
    frit_program program = {.struct_size = sizeof(program)};
    frit_op_desc *ops = arena_array(&reader->arena, block->n_ops, sizeof(*ops));

    if (!ops)
        return fail_memory(err, block->n_ops * sizeof(*ops));
    TRY(list_ops(relative, deaths, block, ops, err));
    TRY(fail_from(err,
                  fuser->table->from_state(fuser->instance, fuser->device, str_of(fuser->name), ops,
                                           block->n_ops, sizeof(*ops), saved->bytes, saved->n_bytes,
                                           &program, err),
                  "from_state"));
    TRY(check_made(&program, fuser, err));
    block->program = program_create(&program, (uint32_t)(fuser - reader->context->fusers));
    if (block->program)
        return FRIT_OK;
    program.table->destroy(program.self);
    return fail_memory(err, sizeof(struct program));
}

static frit_status make_plan(struct blob_reader *reader, const struct relative *relative,
                             uint32_t n_ops, struct plan **out, frit_err *err)
{
    struct relative_deaths deaths;

    TRY(get_plan(reader, err));
    if (reader->n_ops != n_ops)
        return reject(err, "it has other ops");
    TRY(relative_last_uses(relative, &reader->arena, &deaths, err));
    for (uint32_t i = 0; i < reader->n_steps; i++) {
        if (reader->programs[i].fuser)
            TRY(make_program(reader, relative, &deaths, i, err));
    }
    TRY(plan_create(relative, reader->n_calls, reader->blocks, reader->n_steps, out, err));
    if ((*out)->n_ops == n_ops)
        return FRIT_OK;
    plan_unref(*out);
    *out = NULL;
    return reject(err, "its steps do not cover all ops");
}

frit_status blob_rebuild(const struct plan *saved, const struct store_context *context,
                         const struct relative *relative, uint32_t n_ops, struct plan **out,
                         frit_err *err)
{
    struct blob_reader reader = {.at = saved->saved,
                                 .left = saved->n_saved - sizeof(uint64_t), /* the digest */
                                 .context = context};
    frit_status status;

    *out = NULL;
    status = make_plan(&reader, relative, n_ops, out, err);
    for (uint32_t i = 0; reader.blocks && i < reader.n_steps; i++)
        program_unref(reader.blocks[i].program);
    arena_fini(&reader.arena);
    return status;
}
