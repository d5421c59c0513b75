/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, stores and atomics of arguments, loads and stores of the group's tiles.  Neighbouring
 * elements that shape_chunk allows are one access of 4, 8 or 16 bytes, in words of 32 or 64 bits;
 * else each is one of its own.  A condition that is true for all of a chunk keeps the wide access;
 * else each lane tests its own. */
#include "emit/c/args.h"

#include <stdio.h>

#include "emit/c/rows.h"

/* One access: `n` lanes from `first` on. */
struct arg_access {
    const struct kir_inst *inst;
    uint32_t at;
    bool is_tile;
    uint32_t dtype, bytes;
    uint32_t first, n;
    uint32_t condition; /* operand, KIR_NONE: always */
};

static struct arg_access access_of(const struct writer *w, uint32_t at, uint32_t condition)
{
    struct arg_access a = {.inst = writer_inst(w, at), .at = at, .condition = condition};

    a.is_tile = kir_op_info(a.inst->op)->imm == KIR_IMM_TILE;
    a.dtype = a.is_tile ? w->phase->tiles[a.inst->imm].dtype : w->module->args[a.inst->imm].dtype;
    a.bytes = (uint32_t)frit_storage_bytes(a.dtype, 1);
    a.n = (a.is_tile ? shape_tile_chunk : shape_chunk)(&w->shape, (uint32_t)a.inst->imm,
                                                       a.inst->a[0]);
    return a;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t word_bytes(const struct arg_access *a)
{
    return a->bytes == 8 ? 8 : 4;
}

static uint32_t word_count(const struct arg_access *a)
{
    return a->n * a->bytes / word_bytes(a);
}

/* Elements of a word. */
static uint32_t per_word(const struct arg_access *a)
{
    return word_bytes(a) / a->bytes;
}

/* The type that a wide access moves. */
static const char *wide_type(const struct arg_access *a)
{
    if (a->bytes == 8)
        return "u64x2";
    return word_count(a) == 1 ? "m_u32" : word_count(a) == 2 ? "u32x2" : "u32x4";
}

static void write_element(struct writer *w, struct str *out, const struct arg_access *a, uint32_t j)
{
    bool wide = writer_inst(w, a->inst->a[0])->type == KIR_I64;

    str_addf(out, "%s%u[(%s)", a->is_tile ? "t" : "a", (uint32_t)a->inst->imm,
             wide ? "i64" : "i32");
    writer_value(w, out, a->inst->a[0], j);
    str_addf(out, "]");
}

/* What stands for the chunk's memory. */
static void write_chunk(struct writer *w, struct str *out, const struct arg_access *a, bool read)
{
    str_addf(out, "*(%s%s%s *)&", a->is_tile ? "" : "GLOBAL ", read ? "const " : "", wide_type(a));
    write_element(w, out, a, a->first);
}

static void write_condition(struct writer *w, struct str *out, const struct arg_access *a,
                            uint32_t j)
{
    str_addf(out, "if (");
    writer_value(w, out, a->condition, j);
    str_addf(out, ") ");
}

/* Whether one variable says it for all of the chunk. */
static bool is_one_condition(const struct writer *w, const struct arg_access *a)
{
    return writer_run(w, a->condition) >= a->n;
}

/* The head of what runs where all lanes of the chunk are wanted. */
static void begin_all(struct writer *w, const struct arg_access *a)
{
    struct str *out = writer_line(w);

    str_addf(out, "if (");
    for (uint32_t j = 0; j < a->n; j += writer_run(w, a->condition)) {
        str_addf(out, j ? " & " : "");
        writer_value(w, out, a->condition, a->first + j);
    }
    str_addf(out, ") {\n");
    w->body_deep++;
}

static void begin_else(struct writer *w)
{
    w->body_deep--;
    str_addf(writer_line(w), "} else {\n");
    w->body_deep++;
}

static void end_all(struct writer *w)
{
    w->body_deep--;
    str_addf(writer_line(w), "}\n");
}

/* ---- loads ---- */

static void write_loaded(struct writer *w, struct str *out, const struct arg_access *a, uint32_t j)
{
    str_addf(out, "load_%s(", rows_memory_name(a->dtype));
    write_element(w, out, a, j);
    str_addf(out, ")");
}

/* Lane j of what was loaded as w<at>. */
static void write_part(struct str *out, const struct arg_access *a, uint32_t j)
{
    static const char members[] = "xyzw";
    uint32_t word = j / per_word(a), shift = j % per_word(a) * a->bytes * 8;
    char name[32];

    snprintf(name, sizeof(name), word_count(a) == 1 ? "w" : "w.%c", members[word]);
    str_addf(out, "load_%s(", rows_memory_name(a->dtype));
    if (a->dtype == FRIT_F32 || a->dtype == FRIT_F64)
        str_addf(out, a->bytes == 4 ? "f32_of_bits(%s)" : "f64_of_bits(%s)", name);
    else if (a->bytes >= 4)
        str_addf(out, "%s", name);
    else
        str_addf(out, "(%s)(%s >> %u)", rows_memory_type(a->dtype), name, shift);
    str_addf(out, ")");
}

/* Assigns the chunk to variables that there are. */
static void assign_chunk(struct writer *w, const struct arg_access *a)
{
    struct str *out = writer_line(w);

    str_addf(out, "const %s w = ", wide_type(a));
    write_chunk(w, out, a, true);
    str_addf(out, ";\n");
    for (uint32_t j = 0; j < a->n; j++) {
        out = writer_line(w);
        writer_value(w, out, a->at, a->first + j);
        str_addf(out, " = ");
        write_part(out, a, j);
        str_addf(out, ";\n");
    }
}

static void load_masked_chunk(struct writer *w, const struct arg_access *a)
{
    for (uint32_t j = a->first; j < a->first + a->n; j++) {
        struct str *out = writer_begin_variable(w, a->at, j);

        writer_value(w, out, a->inst->a[2], j);
        str_addf(out, ";\n");
    }
    begin_all(w, a);
    assign_chunk(w, a);
    if (!is_one_condition(w, a)) {
        begin_else(w);
        for (uint32_t j = a->first; j < a->first + a->n; j++) {
            struct str *out = writer_line(w);

            write_condition(w, out, a, j);
            writer_value(w, out, a->at, j);
            str_addf(out, " = ");
            write_loaded(w, out, a, j);
            str_addf(out, ";\n");
        }
    }
    end_all(w);
}

static void load_chunk(struct writer *w, const struct arg_access *a)
{
    struct str *out;

    for (uint32_t j = a->first; j < a->first + a->n; j++) {
        if (w->plan.home[a->at] == PLAN_HELD)
            continue;
        out = writer_line(w);
        str_addf(out, "%s ", rows_type(a->inst->type));
        writer_name(w, out, a->at, j);
        str_addf(out, ";\n");
    }
    str_addf(writer_line(w), "{\n");
    w->body_deep++;
    assign_chunk(w, a);
    end_all(w);
}

static void load_one(struct writer *w, const struct arg_access *a)
{
    struct str *out = writer_begin(w, a->at, a->first);

    if (a->condition != KIR_NONE) {
        writer_value(w, out, a->condition, a->first);
        str_addf(out, " ? ");
    }
    write_loaded(w, out, a, a->first);
    if (a->condition != KIR_NONE) {
        str_addf(out, " : ");
        writer_value(w, out, a->inst->a[2], a->first);
    }
    str_addf(out, ";\n");
}

void args_load(struct writer *w, uint32_t at)
{
    bool masked = writer_inst(w, at)->op == KIR_load_if;
    struct arg_access a = access_of(w, at, masked ? writer_inst(w, at)->a[1] : KIR_NONE);
    uint32_t step = a.n > 1 ? a.n : writer_run(w, at);

    for (; a.first < writer_lanes(w); a.first += step) {
        if (a.n == 1)
            load_one(w, &a);
        else
            (masked ? load_masked_chunk : load_chunk)(w, &a);
    }
}

/* ---- stores ---- */

static void write_stored(struct writer *w, struct str *out, const struct arg_access *a, uint32_t j)
{
    str_addf(out, "store_%s(", rows_memory_name(a->dtype));
    writer_value(w, out, a->inst->a[1], j);
    str_addf(out, ")");
}

/* Two floats of 16 bits. */
static void write_pair(struct writer *w, struct str *out, const struct arg_access *a, uint32_t j)
{
    str_addf(out, "pair_%s(", rows_memory_name(a->dtype));
    writer_value(w, out, a->inst->a[1], j);
    str_addf(out, ", ");
    writer_value(w, out, a->inst->a[1], j + 1);
    str_addf(out, ")");
}

static void write_parts(struct writer *w, struct str *out, const struct arg_access *a, uint32_t j)
{
    for (uint32_t k = 0; k < per_word(a); k++) {
        str_addf(out, k ? " | (u32)(u%u)" : "(u32)(u%u)", a->bytes * 8);
        write_stored(w, out, a, j + k);
        if (k)
            str_addf(out, " << %u", k * a->bytes * 8);
    }
}

static void write_word(struct writer *w, struct str *out, const struct arg_access *a, uint32_t j)
{
    bool is_float = a->dtype == FRIT_F32 || a->dtype == FRIT_F64;

    if (kir_is_16_bit_float(a->dtype)) {
        write_pair(w, out, a, j);
    } else if (a->bytes < 4) {
        write_parts(w, out, a, j);
    } else {
        if (is_float)
            str_addf(out, "bits_of_f%u(", a->bytes * 8);
        write_stored(w, out, a, j);
        if (is_float)
            str_addf(out, ")");
    }
}

static void store_chunk(struct writer *w, const struct arg_access *a)
{
    struct str *out = writer_line(w);

    str_addf(out, "const %s w = %s", wide_type(a), word_count(a) > 1 ? "{" : "");
    for (uint32_t j = 0; j < a->n; j += per_word(a)) {
        str_addf(out, j ? ", " : "");
        write_word(w, out, a, a->first + j);
    }
    str_addf(out, word_count(a) > 1 ? "};\n" : ";\n");
    out = writer_line(w);
    write_chunk(w, out, a, false);
    str_addf(out, " = w;\n");
}

static void store_one(struct writer *w, const struct arg_access *a, uint32_t j)
{
    struct str *out = writer_line(w);

    if (a->condition != KIR_NONE)
        write_condition(w, out, a, j);
    write_element(w, out, a, j);
    str_addf(out, " = ");
    write_stored(w, out, a, j);
    str_addf(out, ";\n");
}

static void store_masked_chunk(struct writer *w, const struct arg_access *a)
{
    begin_all(w, a);
    store_chunk(w, a);
    if (!is_one_condition(w, a)) {
        begin_else(w);
        for (uint32_t j = a->first; j < a->first + a->n; j++)
            store_one(w, a, j);
    }
    end_all(w);
}

/* Lanes that store the same to the same element do so once. */
static uint32_t store_step(const struct writer *w, const struct arg_access *a)
{
    uint32_t step = least(writer_run(w, a->inst->a[0]), writer_run(w, a->inst->a[1]));

    return a->condition == KIR_NONE ? step : least(step, writer_run(w, a->condition));
}

void args_store(struct writer *w, uint32_t at)
{
    bool masked = kir_op_info(writer_inst(w, at)->op)->n > 2;
    struct arg_access a = access_of(w, at, masked ? writer_inst(w, at)->a[2] : KIR_NONE);
    uint32_t step = a.n > 1 ? a.n : store_step(w, &a);

    for (; a.first < writer_lanes(w); a.first += step) {
        if (a.n == 1) {
            store_one(w, &a, a.first);
        } else if (masked) {
            store_masked_chunk(w, &a);
        } else {
            str_addf(writer_line(w), "{\n");
            w->body_deep++;
            store_chunk(w, &a);
            end_all(w);
        }
    }
}

/* ---- atomics ---- */

void args_atomic(struct writer *w, uint32_t at)
{
    struct arg_access a = access_of(w, at, writer_inst(w, at)->a[2]);

    for (uint32_t j = 0; j < writer_lanes(w); j++) {
        struct str *out = writer_line(w);

        write_condition(w, out, &a, j);
        str_addf(out, "atomic_add_%s(&", rows_memory_name(a.dtype));
        write_element(w, out, &a, j);
        str_addf(out, ", ");
        writer_value(w, out, a.inst->a[1], j);
        str_addf(out, ");\n");
    }
}

/* ---- copies to tiles ---- */

/* "pointer" of lane j in the tile, or in the argument. */
static void write_pointer(struct writer *w, struct str *out, const char *kind, uint32_t number,
                          uint32_t offset, uint32_t j)
{
    bool wide = writer_inst(w, offset)->type == KIR_I64;

    str_addf(out, "%s%u + (%s)", kind, number, wide ? "i64" : "i32");
    writer_value(w, out, offset, j);
}

/* Lanes of one copy: neighbours in both. */
static uint32_t copy_chunk(const struct writer *w, const struct kir_inst *inst,
                           const struct kir_copy *copy)
{
    uint32_t n = least(shape_tile_chunk(&w->shape, copy->tile, inst->a[0]),
                       shape_chunk(&w->shape, copy->arg, inst->a[1]));

    return least(n, writer_run(w, inst->a[2]));
}

void args_copy(struct writer *w, uint32_t at)
{
    const struct kir_inst *inst = writer_inst(w, at);
    const struct kir_copy copy = kir_copy_of(inst->imm);
    const uint32_t bytes = kir_tile_bytes(&w->phase->tiles[copy.tile]);
    const uint32_t n = copy_chunk(w, inst, &copy);

    for (uint32_t j = 0; j < w->shape.per_thread; j += n) {
        struct str *out = writer_line(w);

        str_addf(out, "COPY_%u(", n * bytes);
        write_pointer(w, out, "t", copy.tile, inst->a[0], j);
        str_addf(out, ", ");
        write_pointer(w, out, "a", copy.arg, inst->a[1], j);
        str_addf(out, ", ");
        writer_value(w, out, inst->a[2], j);
        str_addf(out, ");\n");
    }
}

void args_batch(struct writer *w, uint32_t at)
{
    (void)at;
    str_addf(writer_line(w), "COPY_BATCH;\n");
}

void args_wait(struct writer *w, uint32_t at)
{
    str_addf(writer_line(w), "COPY_WAIT(%u);\n", (uint32_t)writer_inst(w, at)->imm);
}
