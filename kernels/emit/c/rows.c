/* SPDX-License-Identifier: Apache-2.0 */
/* Rows become macros, not functions: compilers of devices expand text faster than they inline. */
#include "emit/c/rows.h"

#include <stdbool.h>

/* ---- tables ---- */

static const char *const functions[] = {
#define FUNCTION(...) #__VA_ARGS__,
#include "emit/rows.def"
};

struct row {
    uint16_t op;
    uint8_t type, n;
    const char *expression;
};

static const struct row rows[] = {
#define ROW1(op, TYPE, result, a, expression)       {KIR_##op, KIR_##TYPE, 1, #expression},
#define ROW2(op, TYPE, result, ab, expression)      {KIR_##op, KIR_##TYPE, 2, #expression},
#define ROW3(op, TYPE, result, a, b, c, expression) {KIR_##op, KIR_##TYPE, 3, #expression},
#include "emit/rows.def"
};

struct round {
    uint32_t dtype;
    const char *name, *expression;
};

/* What round is for each type of 16 bits. */
static const struct round rounds[] = {
#define ROUND(KIND, expression) {FRIT_##KIND, #KIND, #expression},
#include "emit/rows.def"
};

enum memory_kind {
#define MEMORY(KIND, memory, lane, load, store) MEMORY_##KIND,
#include "emit/rows.def"
    MEMORY_KINDS,
    MEMORY_U32 = MEMORY_I32, /* values have no sign */
    MEMORY_U64 = MEMORY_I64
};

static const struct {
    const char *name, *memory, *load, *store;
} memories[MEMORY_KINDS] = {
#define MEMORY(KIND, memory, lane, load, store) {#KIND, #memory, #load, #store},
#include "emit/rows.def"
};

static const uint8_t kinds[FRIT_DTYPE_LIMIT] = {
#define KIND_FLOAT(NAME)  MEMORY_##NAME
#define KIND_INT(NAME)    MEMORY_##NAME
#define KIND_UINT(NAME)   MEMORY_##NAME
#define KIND_BOOL(NAME)   MEMORY_##NAME
#define KIND_PACKED(NAME) 0 /* arguments are of U8 */
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    [id] = KIND_##cls(NAME),
#include <frit/dtypes.def>
};

const char *rows_type(uint32_t type)
{
    static const char *const names[KIR_TYPES] = {"void", "u32", "u32", "u64", "f32", "f64"};

    return names[type];
}

const char *rows_type_name(uint32_t type)
{
    static const char *const names[KIR_TYPES] = {"", "B", "I32", "I64", "F32", "F64"};

    return names[type];
}

const char *rows_memory_type(uint32_t dtype)
{
    return memories[kinds[dtype]].memory;
}

const char *rows_memory_name(uint32_t dtype)
{
    return memories[kinds[dtype]].name;
}

/* ---- printing ---- */

const char *rows_function(uint32_t number)
{
    return number < sizeof(functions) / sizeof(*functions) ? functions[number] : NULL;
}

static void print_row(const struct row *row, struct str *out)
{
    str_addf(out, "#define %s_%s(a%s%s%s) (%s)\n", kir_op_info(row->op)->name,
             rows_type_name(row->type), row->n > 1 ? ", b" : "", row->n > 2 ? ", c" : "",
             row->op == KIR_wrap ? ", imm" : "", row->expression);
}

static void print_memory(uint32_t kind, uint32_t access, struct str *out)
{
    if (access & KIR_READ)
        str_addf(out, "#define load_%s(m) (%s)\n", memories[kind].name, memories[kind].load);
    if (access & KIR_WRITE)
        str_addf(out, "#define store_%s(r) (%s)\n", memories[kind].name, memories[kind].store);
    for (size_t i = 0; access & KIR_WRITE && i < sizeof(rounds) / sizeof(*rounds); i++) {
        if (kinds[rounds[i].dtype] == kind)
            str_addf(out, "#define pair_%s(a, b) (half_pair(a, b, %u))\n", memories[kind].name,
                     frit_dtype_info_of(rounds[i].dtype).fraction);
    }
}

/* Which rows of both tables instructions use. */
struct used {
    bool row[sizeof(rows) / sizeof(*rows)];
    bool round[sizeof(rounds) / sizeof(*rounds)];
};

static void find_used(const struct kir_phase *phase, struct used *used)
{
    for (uint32_t i = 0; i < phase->n; i++) {
        const struct kir_inst *inst = &phase->inst[i];

        if (!kir_op_info(inst->op)->n)
            continue;
        for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
            if (rows[k].op == inst->op && rows[k].type == phase->inst[inst->a[0]].type)
                used->row[k] = true;
        }
        for (size_t k = 0; inst->op == KIR_round && k < sizeof(rounds) / sizeof(*rounds); k++) {
            if (rounds[k].dtype == inst->imm)
                used->round[k] = true;
        }
    }
}

/* The group's tiles are read and written. */
static void find_tiles(const struct kir_phase *phase, uint32_t *access)
{
    for (uint32_t i = 0; i < phase->n_tiles; i++)
        if (phase->tiles[i].space == KIR_GROUP)
            access[kinds[phase->tiles[i].dtype]] = KIR_READ | KIR_WRITE;
}

void rows_print(const struct kir_module *module, struct str *out)
{
    uint32_t access[MEMORY_KINDS] = {0};
    struct used used = {{false}, {false}};

    for (uint32_t i = 0; i < module->n_phases; i++)
        find_used(&module->phases[i], &used);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (used.row[i])
            print_row(&rows[i], out);
    }
    for (size_t i = 0; i < sizeof(rounds) / sizeof(*rounds); i++) {
        if (used.round[i])
            str_addf(out, "#define round_%s(a) (%s)\n", rounds[i].name, rounds[i].expression);
    }
    for (uint32_t i = 0; i < module->n_phases; i++)
        find_tiles(&module->phases[i], access);
    for (uint32_t i = 0; i < module->n_args; i++)
        access[kinds[module->args[i].dtype]] |= module->args[i].access;
    for (uint32_t i = 0; i < MEMORY_KINDS; i++)
        print_memory(i, access[i], out);
}
