/* SPDX-License-Identifier: Apache-2.0 */
/* Layout, in 32-bit words if nothing else is said:
 *
 *   version, number of calls, of values, of ops, of programs, of steps;
 *   per op: op number (FRIT_OP_CUSTOM for a custom op), rev, number of inputs, of outputs, of
 *     deaths, bytes of the attribute record; for a custom op the length of its name, and the name;
 *     per operand: kind, dtype, value, rank, quant, extents; deaths; the attribute record;
 *   per program: version of its fuser, lengths of plugin id, fuser name and state (64 bits),
 *     then these bytes;
 *   per step: program (0: none, 1: the first), score, end, number of ops, the ops' numbers;
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
#include "graph/custom.h"
#include "graph/op.h"
#include "plan/plan.h"
#include "plan/program.h"
#include "plan/relative.h"

enum {
    BLOB_VERSION = 1,
    OPERAND_WORDS = 5,
    MAX_VALUES = 1 << 20, /* far more than a segment can have */
    MAX_STATE = 64 << 20, /* bytes of a program's state */
    MAX_RECORD = 1 << 12  /* bytes of an attribute record */
};

/* ---- writing ---- */

static void put(struct str *out, uint32_t word)
{
    str_add(out, (const char *)&word, sizeof(word));
}

static void put_operand(struct str *out, const frit_operand *operand)
{
    put(out, operand->kind);
    put(out, operand->dtype);
    put(out, operand->value);
    put(out, operand->rank);
    str_add(out, (const char *)operand->extent, operand->rank * sizeof(operand->extent[0]));
}

static frit_status put_op(struct str *out, const frit_op_desc *op, frit_err *err)
{
    const frit_op_info *row = op_row(op->id);
    const frit_record_info *record = row ? op_record(row) : NULL;
    const frit_str name = custom_name(op->id);

    if (!record)
        return fail(err, FRIT_UNSUPPORTED, "no op has the number %u", op->id);
    put(out, name.len ? FRIT_OP_CUSTOM : op->id);
    put(out, op->rev);
    put(out, op->n_in);
    put(out, op->n_out);
    put(out, op->n_dead);
    put(out, record->size);
    if (name.len) {
        put(out, (uint32_t)name.len);
        str_add(out, name.ptr, (size_t)name.len);
    }
    for (uint32_t i = 0; i < op->n_in; i++)
        put_operand(out, &op->in[i]);
    for (uint32_t i = 0; i < op->n_out; i++)
        put_operand(out, &op->out[i]);
    str_add(out, (const char *)op->dead, op->n_dead * sizeof(*op->dead));
    str_add(out, op->attrs, record->size);
    return FRIT_OK;
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

/* Whether no earlier step has the step's program. */
static bool first_of_program(const struct plan *plan, uint32_t step)
{
    const struct program *program = plan->steps[step].program;

    for (uint32_t i = 0; i < step; i++) {
        if (plan->steps[i].program == program)
            return false;
    }
    return program != NULL;
}

/* The program's number in order of first use; 0: none. */
static uint32_t program_number(const struct plan *plan, const struct program *program)
{
    uint32_t number = 0;

    for (uint32_t i = 0; program && i < plan->n_steps; i++) {
        number += first_of_program(plan, i);
        if (plan->steps[i].program == program)
            return number;
    }
    return 0;
}

static void put_step(struct str *out, const struct plan *plan, const struct plan_step *step)
{
    put(out, program_number(plan, step->program));
    put(out, step->score);
    put(out, (uint32_t)step->end);
    put(out, step->n_ops);
    str_add(out, (const char *)step->ops, step->n_ops * sizeof(*step->ops));
}

frit_status blob_write(const struct plan *plan, const struct store_context *context,
                       struct str *out, frit_err *err)
{
    size_t start = out->length;
    uint32_t n_programs = 0;
    uint64_t digest;

    if (plan->passing)
        return fail(err, FRIT_UNSUPPORTED, "a fuser failed while the plan was made");
    for (uint32_t i = 0; i < plan->n_steps; i++)
        n_programs += first_of_program(plan, i);
    put(out, BLOB_VERSION);
    put(out, plan->n_calls);
    put(out, plan->n_values);
    put(out, plan->n_ops);
    put(out, n_programs);
    put(out, plan->n_steps);
    for (uint32_t i = 0; i < plan->n_ops; i++)
        TRY(put_op(out, &plan->ops[i], err));
    for (uint32_t i = 0; i < plan->n_steps; i++) {
        if (first_of_program(plan, i))
            TRY(put_program(out, plan->steps[i].program, context, err));
    }
    for (uint32_t i = 0; i < plan->n_steps; i++)
        put_step(out, plan, &plan->steps[i]);
    if (out->failed)
        return fail_memory(err, out->length);
    digest = XXH3_64bits(out->text + start, out->length - start);
    str_add(out, (const char *)&digest, sizeof(digest));
    return out->failed ? fail_memory(err, out->length) : FRIT_OK;
}

/* ---- reading ---- */

/* A saved program, which is created for the first step that has it. */
struct saved {
    const struct store_fuser *fuser;
    const void *bytes;
    uint64_t n_bytes;
    struct program *program; /* NULL: not created yet */
};

struct blob_reader {
    const unsigned char *at;
    size_t left;
    bool truncated; /* tried to read beyond the end */
    const struct store_context *context;
    struct relative relative;
    struct saved *saved;
    struct plan_block *blocks;
    uint32_t n_programs, n_blocks;
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

static bool get_operand(struct blob_reader *reader, frit_operand *out)
{
    struct relative *relative = &reader->relative;

    out->kind = get(reader);
    out->dtype = get(reader);
    out->value = get(reader);
    out->rank = get(reader);
    if (out->kind > FRIT_OPERAND_SCALAR || out->rank > FRIT_MAX_RANK)
        return false;
    get_into(reader, out->extent, out->rank * sizeof(out->extent[0]));
    if (out->kind == FRIT_OPERAND_SCALAR)
        relative->n_scalars++;
    return !reader->truncated &&
           (out->kind != FRIT_OPERAND_TENSOR || out->value < relative->n_values);
}

/* Checks the counts of lists in a record, since readers trust them. */
static bool is_valid_record(const frit_record_info *record, const unsigned char *bytes)
{
    uint64_t size;

    memcpy(&size, bytes, sizeof(size));
    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];
        int64_t count;

        memcpy(&count, bytes + field->offset, sizeof(count));
        if ((field->type == FRIT_ATTR_AXES || field->type == FRIT_ATTR_DIMS ||
             field->type == FRIT_ATTR_SLICES) &&
            (count < 0 || count > FRIT_MAX_RANK))
            return false;
    }
    return size == record->size;
}

/* Reads the op kind that a saved op number, and the name of a custom op, stand for in this process;
 * NULL: unknown. */
static const frit_op_info *get_row(struct blob_reader *reader, uint32_t id)
{
    uint32_t length;
    frit_str name;

    if (id != FRIT_OP_CUSTOM)
        return id < FRIT_OP_LIMIT ? op_row(id) : NULL;
    length = get(reader);
    name = (frit_str){get_bytes(reader, length), length};
    return name.ptr ? custom_find(name) : NULL;
}

static frit_status get_op(struct blob_reader *reader, frit_op_desc *op, frit_err *err)
{
    struct arena *arena = &reader->relative.arena;
    const frit_op_info *row;
    const frit_record_info *record;
    frit_operand *operands;
    uint32_t n_bytes, *dead;
    unsigned char *attrs;

    *op = (frit_op_desc){.struct_size = FRIT_END_OF(frit_op_desc, name),
                         .id = get(reader),
                         .operand_stride = sizeof(frit_operand)};
    op->rev = get(reader);
    op->n_in = get(reader);
    op->n_out = get(reader);
    op->n_dead = get(reader);
    n_bytes = get(reader);
    row = get_row(reader, op->id);
    record = row ? op_record(row) : NULL;
    if (!record || row->rev != op->rev || n_bytes != record->size || n_bytes > MAX_RECORD)
        return reject(err, "an unknown op");
    op->id = row->id;
    op->name = custom_name(row->id);
    if (op->n_in > reader->left / (OPERAND_WORDS * sizeof(uint32_t)) ||
        op->n_out > FRIT_OP_MAX_OUT || op->n_dead > reader->left / sizeof(uint32_t))
        return reject(err, "truncated");
    op->n_extra = row->traits & FRIT_OP_SEEDED ? 2 : 0;
    operands = arena_array(arena, (size_t)op->n_in + op->n_out + 1, sizeof(*operands));
    dead = arena_array(arena, (size_t)op->n_dead + 1, sizeof(*dead));
    attrs = arena_alloc(arena, n_bytes);
    if (!operands || !dead || !attrs)
        return fail_memory(err, n_bytes);
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        if (!get_operand(reader, &operands[i]))
            return reject(err, "an invalid operand");
    }
    get_into(reader, dead, op->n_dead * sizeof(*dead));
    get_into(reader, attrs, n_bytes);
    if (reader->truncated || !is_valid_record(record, attrs))
        return reject(err, "invalid attributes");
    op->in = operands;
    op->out = operands + op->n_in;
    op->dead = dead;
    op->attrs = attrs;
    reader->relative.n_deaths += op->n_dead;
    return FRIT_OK;
}

static frit_status get_ops(struct blob_reader *reader, uint32_t n_ops, frit_err *err)
{
    struct relative *relative = &reader->relative;

    if (!n_ops || n_ops > reader->left)
        return reject(err, "truncated");
    relative->ops = calloc(n_ops, sizeof(*relative->ops));
    if (!relative->ops)
        return fail_memory(err, n_ops * sizeof(*relative->ops));
    relative->ops_capacity = n_ops;
    while (relative->n_ops < n_ops) {
        TRY(get_op(reader, &relative->ops[relative->n_ops], err));
        relative->n_ops++;
    }
    return FRIT_OK;
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

static bool is_valid_program(const frit_program *program)
{
    const frit_program_table *table = program->table;

    return table && table->struct_size >= FRIT_END_OF(frit_program_table, destroy) &&
           table->describe && table->prepare && table->destroy;
}

static frit_status get_saved(struct blob_reader *reader, struct saved *out, frit_err *err)
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

static frit_status check_made(const frit_program *program, const struct store_fuser *fuser,
                              frit_err *err)
{
    if (!is_valid_program(program))
        return reject(err, "from_state made no program");
    if (program_runs(program, fuser->device))
        return FRIT_OK;
    program->table->destroy(program->self);
    return reject(err, "a program of another plugin than the driver's has no record");
}

/* Creates the program of a step's ops. */
static frit_status make_program(struct blob_reader *reader, const struct plan_block *block,
                                struct saved *saved, frit_err *err)
{
    const struct store_fuser *fuser = saved->fuser;
    frit_program program = {.struct_size = sizeof(program)};
    frit_op_desc *ops = arena_array(&reader->relative.arena, block->n_ops, sizeof(*ops));

    if (!ops)
        return fail_memory(err, block->n_ops * sizeof(*ops));
    for (uint32_t i = 0; i < block->n_ops; i++) {
        if (block->ops[i] >= reader->relative.n_ops)
            return reject(err, "a step with ops that do not exist");
        ops[i] = reader->relative.ops[block->ops[i]];
    }
    TRY(fail_from(err,
                  fuser->table->from_state(fuser->instance, fuser->device, str_of(fuser->name), ops,
                                           block->n_ops, sizeof(*ops), saved->bytes, saved->n_bytes,
                                           &program, err),
                  "from_state"));
    TRY(check_made(&program, fuser, err));
    saved->program = program_create(&program, (uint32_t)(fuser - reader->context->fusers));
    if (saved->program)
        return FRIT_OK;
    program.table->destroy(program.self);
    return fail_memory(err, sizeof(struct program));
}

static frit_status get_step(struct blob_reader *reader, struct plan_block *block, frit_err *err)
{
    uint32_t program = get(reader), *ops;

    block->score = get(reader);
    block->end = (enum plan_end)get(reader);
    block->n_ops = get(reader);
    if (program > reader->n_programs || (uint32_t)block->end >= PLAN_ENDS || !block->n_ops ||
        block->n_ops > reader->left / sizeof(*ops))
        return reject(err, "an invalid step");
    ops = arena_array(&reader->relative.arena, block->n_ops, sizeof(*ops));
    if (!ops)
        return fail_memory(err, block->n_ops * sizeof(*ops));
    get_into(reader, ops, block->n_ops * sizeof(*ops));
    block->ops = ops;
    if (!program)
        return FRIT_OK;
    if (!reader->saved[program - 1].program)
        TRY(make_program(reader, block, &reader->saved[program - 1], err));
    block->program = reader->saved[program - 1].program;
    return FRIT_OK;
}

static frit_status get_plan(struct blob_reader *reader, struct plan **out, frit_err *err)
{
    uint32_t version = get(reader), n_calls = get(reader), n_values = get(reader);
    uint32_t n_ops = get(reader), n_programs = get(reader), n_steps = get(reader);

    if (version != BLOB_VERSION || !n_calls || n_values > MAX_VALUES || n_programs > reader->left ||
        n_steps > reader->left)
        return reject(err, "an invalid header");
    reader->relative.n_values = n_values;
    TRY(get_ops(reader, n_ops, err));
    reader->saved = calloc((size_t)n_programs + 1, sizeof(*reader->saved));
    reader->blocks = calloc((size_t)n_steps + 1, sizeof(*reader->blocks));
    if (!reader->saved || !reader->blocks)
        return fail_memory(err, ((size_t)n_programs + n_steps) * sizeof(*reader->blocks));
    for (; reader->n_programs < n_programs; reader->n_programs++)
        TRY(get_saved(reader, &reader->saved[reader->n_programs], err));
    while (reader->n_blocks < n_steps) {
        TRY(get_step(reader, &reader->blocks[reader->n_blocks], err));
        reader->n_blocks++;
    }
    if (reader->truncated || reader->left)
        return reject(err, "bytes after its end");
    TRY(plan_create(&reader->relative, n_calls, reader->blocks, n_steps, out, err));
    if ((*out)->n_ops == n_ops)
        return FRIT_OK;
    plan_unref(*out);
    *out = NULL;
    return reject(err, "its steps do not cover all ops");
}

frit_status blob_read(const void *bytes, size_t n_bytes, const struct store_context *context,
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
    status = get_plan(&reader, out, err);
    for (uint32_t i = 0; i < reader.n_programs; i++)
        program_unref(reader.saved[i].program);
    free(reader.saved);
    free(reader.blocks);
    relative_fini(&reader.relative);
    return status;
}
