/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a text: the rows of rows.def as functions, of which only those are printed that the
 * module needs. */
#include "emit/c/head.h"

#include <stdbool.h>

/* ---- the words, for a thread that does a whole group ---- */

static const char words[] =
    "typedef signed char i8;\n"
    "typedef unsigned char u8;\n"
    "typedef short i16;\n"
    "typedef unsigned short u16;\n"
    "typedef int i32;\n"
    "typedef unsigned int u32;\n"
    "typedef long long i64;\n"
    "typedef unsigned long long u64;\n"
    "typedef float f32;\n"
    "typedef double f64;\n"
    "#define FOR_THREADS for (u32 thread = 0; thread < THREADS; thread++)\n"
    "#define FOR_LANES for (u32 each = 0; each < EACH; each++)\n"
    "#define LANE (thread * EACH + each)\n"
    "#define HELD(type, name) type name[THREADS][EACH]\n"
    "#define HELD_TILE(type, name, count) type name[THREADS][EACH][count]\n"
    "#define MINE(name) name[thread][each]\n"
    "#define OF_LANE(name, lane) name[(lane) / EACH][(lane) % EACH]\n"
    "#define FIRST(name) name[0][0]\n"
    "#define UNIFORM(name) name[0][0]\n"
    "#define BARRIER\n"
    "#define EXCHANGE(to, from, by) FOR_THREADS FOR_LANES MINE(to) = OF_LANE(from, LANE ^ (by))\n"
    "#define SHIFT(to, from, by) \\\n"
    "    FOR_THREADS FOR_LANES MINE(to) = OF_LANE(from, LANE < (by) ? LANE : LANE - (by))\n";

static const char atomics[] = "static inline void atomic_add_I32(u32 *at, u32 r)\n"
                              "{\n"
                              "    __atomic_fetch_add(at, r, __ATOMIC_RELAXED);\n"
                              "}\n"
                              "static inline void atomic_add_I64(u64 *at, u64 r)\n"
                              "{\n"
                              "    __atomic_fetch_add(at, r, __ATOMIC_RELAXED);\n"
                              "}\n"
                              "static inline void atomic_add_F32(f32 *at, f32 r)\n"
                              "{\n"
                              "    f32 old, sum;\n"
                              "    __atomic_load(at, &old, __ATOMIC_RELAXED);\n"
                              "    do\n"
                              "        sum = old + r;\n"
                              "    while (!__atomic_compare_exchange(at, &old, &sum, 1, "
                              "__ATOMIC_RELAXED, __ATOMIC_RELAXED));\n"
                              "}\n";

/* ---- tables ---- */

static const char *const functions[] = {
#define FUNCTION(...) #__VA_ARGS__,
#include "emit/rows.def"
};

struct head_row {
    uint16_t op;
    uint8_t type, n;
    const char *result, *a, *b, *c, *expression;
};

static const struct head_row rows[] = {
#define ROW1(op, TYPE, result, a, expression) \
    {KIR_##op, KIR_##TYPE, 1, #result, #a, "", "", #expression},
#define ROW2(op, TYPE, result, ab, expression) \
    {KIR_##op, KIR_##TYPE, 2, #result, #ab, #ab, "", #expression},
#define ROW3(op, TYPE, result, a, b, c, expression) \
    {KIR_##op, KIR_##TYPE, 3, #result, #a, #b, #c, #expression},
#include "emit/rows.def"
};

/* What round is for each type of 16 bits. */
static const char *const rounds[] = {
#define ROUND(KIND, expression) \
    "static inline f32 round_" #KIND "(f32 a)\n{\n    return " #expression ";\n}\n",
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
    const char *name, *memory, *lane, *load, *store;
} memories[MEMORY_KINDS] = {
#define MEMORY(KIND, memory, lane, load, store) {#KIND, #memory, #lane, #load, #store},
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

const char *head_type(uint32_t type)
{
    static const char *const names[KIR_TYPES] = {"void", "u32", "u32", "u64", "f32", "f64"};

    return names[type];
}

const char *head_type_name(uint32_t type)
{
    static const char *const names[KIR_TYPES] = {"", "B", "I32", "I64", "F32", "F64"};

    return names[type];
}

const char *head_memory_type(uint32_t dtype)
{
    return memories[kinds[dtype]].memory;
}

const char *head_memory_name(uint32_t dtype)
{
    return memories[kinds[dtype]].name;
}

/* ---- printing ---- */

static bool is_used(const struct kir_module *module, const struct head_row *row)
{
    for (uint32_t p = 0; p < module->n_phases; p++) {
        const struct kir_phase *phase = &module->phases[p];

        for (uint32_t i = 0; i < phase->n; i++) {
            if (phase->inst[i].op == row->op && phase->inst[phase->inst[i].a[0]].type == row->type)
                return true;
        }
    }
    return false;
}

static void print_row(const struct head_row *row, struct str *out)
{
    str_addf(out, "static inline %s %s_%s(%s a", row->result, kir_op_info(row->op)->name,
             head_type_name(row->type), row->a);
    if (row->n > 1)
        str_addf(out, ", %s b", row->b);
    if (row->n > 2)
        str_addf(out, ", %s c", row->c);
    if (row->op == KIR_wrap)
        str_addf(out, ", u64 imm");
    str_addf(out, ")\n{\n    return %s;\n}\n", row->expression);
}

static void print_memory(uint32_t kind, struct str *out)
{
    str_addf(out, "static inline %s load_%s(%s m)\n{\n    return %s;\n}\n", memories[kind].lane,
             memories[kind].name, memories[kind].memory, memories[kind].load);
    str_addf(out, "static inline %s store_%s(%s r)\n{\n    return %s;\n}\n", memories[kind].memory,
             memories[kind].name, memories[kind].lane, memories[kind].store);
}

void head_print(const struct kir_module *module, struct str *out)
{
    bool done[MEMORY_KINDS] = {false};

    str_add(out, words, sizeof(words) - 1);
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        str_addf(out, "%s\n", functions[i]);
    for (size_t i = 0; i < sizeof(rounds) / sizeof(*rounds); i++)
        str_addf(out, "%s", rounds[i]);
    str_add(out, atomics, sizeof(atomics) - 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (is_used(module, &rows[i]))
            print_row(&rows[i], out);
    }
    for (uint32_t i = 0; i < module->n_args; i++) {
        uint32_t kind = kinds[module->args[i].dtype];

        if (!done[kind])
            print_memory(kind, out);
        done[kind] = true;
    }
}
