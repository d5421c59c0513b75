/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of elementwise ops on f32 as SPIR-V, for devices that take FRIT_FORMAT_SPIRV.  The module
 * loads an element of each input, computes all ops, and stores an element of each output:
 *
 *    i = (base.x + WorkgroupId.x) * CHAIN_LANES + LocalInvocationId.x
 *    if (i < driver[0])
 *        ...
 *
 * Numbers are those of the SPIR-V specification, unified 1. */
#include <string.h>

#include "blocks.h"

/* ---- which ops ---- */

enum { F_NEGATE = 127, F_ADD = 129, F_SUB = 131, F_MUL = 133, SELECT = 169 };

/* The instruction of a row, 0: none. */
static uint32_t inst_of(uint32_t op)
{
    static const struct {
        uint32_t op, inst;
    } rows[] = {{FRIT_OP_neg, F_NEGATE},
                {FRIT_OP_add, F_ADD},
                {FRIT_OP_sub, F_SUB},
                {FRIT_OP_mul, F_MUL},
                {FRIT_OP_relu, SELECT}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].op == op)
            return rows[i].inst;
    return 0;
}

bool chain_takes(const frit_op_desc *op)
{
    for (uint32_t i = 0; i < op->n_in; i++) {
        const char *at = (const char *)op->in + (size_t)i * op->operand_stride;
        const frit_operand *operand = (const frit_operand *)(const void *)at;

        if (operand->kind != FRIT_OPERAND_TENSOR || operand->dtype != FRIT_F32)
            return false;
    }
    return inst_of(op->id) && op->out->dtype == FRIT_F32;
}

/* ---- words ---- */

enum {
    CAPABILITY = 17,
    MEMORY_MODEL = 14,
    ENTRY_POINT = 15,
    EXECUTION_MODE = 16,
    TYPE_VOID = 19,
    TYPE_BOOL = 20,
    TYPE_INT = 21,
    TYPE_FLOAT = 22,
    TYPE_VECTOR = 23,
    TYPE_STRUCT = 30,
    TYPE_POINTER = 32,
    TYPE_FUNCTION = 33,
    CONSTANT = 43,
    FUNCTION = 54,
    FUNCTION_END = 56,
    VARIABLE = 59,
    LOAD = 61,
    STORE = 62,
    ACCESS_CHAIN = 65,
    DECORATE = 71,
    MEMBER_DECORATE = 72,
    COMPOSITE_EXTRACT = 81,
    U_CONVERT = 113,
    CONVERT_U_TO_PTR = 120,
    I_ADD = 128,
    I_MUL = 132,
    U_LESS_THAN = 176,
    F_UNORD_GREATER_THAN = 187,
    SELECTION_MERGE = 247,
    LABEL = 248,
    BRANCH = 249,
    BRANCH_CONDITIONAL = 250,
    RETURN = 253
};

enum { INPUT = 1, PUSH_CONSTANT = 9, PHYSICAL_STORAGE_BUFFER = 5349, ALIGNED = 2 };

/* Words at frit_spirv_push.words, 8 bytes each: driver[0], and the address of the first argument.
 */
enum { WORD_COUNT = 0, WORD_ARGS = 5, N_WORDS = WORD_ARGS + CHAIN_ARGS };

/* Ids: things of which there is one, then one for each word's offset and for each value of the
 * block, then those of what is computed on the way. */
enum {
    VOID = 1,
    BOOL,
    U32,
    U64,
    F32,
    U32X3,
    PUSH,
    MAIN_TYPE,
    TO_PUSH,
    TO_PUSHED_U32,
    TO_PUSHED_U64,
    TO_U32X3,
    TO_U64,
    TO_F32,
    MEMBER_BASE, /* constants: the push constants' members by number */
    MEMBER_WORDS,
    LANES,
    F32_BYTES,
    F32_ZERO,
    PUSHED, /* variables */
    GROUP,
    LANE,
    MAIN,
    FIRST_BLOCK,
    INSIDE,
    OUTSIDE,
    WORDS,  /* the address of the words */
    OFFSET, /* of the element, in bytes */
    OFFSETS,
    VALUES = OFFSETS + N_WORDS,
    ON_THE_WAY = VALUES + BLOCK_ARGS
};

struct module {
    uint32_t *words;
    uint32_t n;
    uint32_t next; /* id */
};

static void add(struct module *m, uint32_t inst, const uint32_t *operands, uint32_t n)
{
    m->words[m->n++] = (n + 1) << 16 | inst;
    for (uint32_t i = 0; i < n; i++)
        m->words[m->n++] = operands[i];
}

#define ADD(m, inst, ...)                             \
    add((m), (inst), (const uint32_t[]){__VA_ARGS__}, \
        sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* ---- what precedes the function ---- */

static void add_entry(struct module *m)
{
    enum { SHADER = 1, INT64 = 11, ADDRESSES = 5347, PHYSICAL64 = 5348, GLSL450 = 1 };
    enum { GL_COMPUTE = 5, LOCAL_SIZE = 17, MAIN_TEXT = 0x6e69616d };

    ADD(m, CAPABILITY, SHADER);
    ADD(m, CAPABILITY, INT64);
    ADD(m, CAPABILITY, ADDRESSES);
    ADD(m, MEMORY_MODEL, PHYSICAL64, GLSL450);
    ADD(m, ENTRY_POINT, GL_COMPUTE, MAIN, MAIN_TEXT, 0, PUSHED, GROUP, LANE);
    ADD(m, EXECUTION_MODE, MAIN, LOCAL_SIZE, CHAIN_LANES, 1, 1);
}

/* Each op rounds by itself, as one that runs alone. */
static void add_decorations(struct module *m, const struct block *block)
{
    enum { BLOCK = 2, BUILT_IN = 11, OFFSET_OF = 35, NO_CONTRACTION = 42 };
    enum { WORKGROUP_ID = 26, LOCAL_INVOCATION_ID = 27 };

    ADD(m, DECORATE, PUSH, BLOCK);
    ADD(m, MEMBER_DECORATE, PUSH, 0, OFFSET_OF, offsetof(frit_spirv_push, base));
    ADD(m, MEMBER_DECORATE, PUSH, 1, OFFSET_OF, offsetof(frit_spirv_push, words));
    ADD(m, DECORATE, GROUP, BUILT_IN, WORKGROUP_ID);
    ADD(m, DECORATE, LANE, BUILT_IN, LOCAL_INVOCATION_ID);
    for (uint32_t k = 0; k < block->n_ops; k++)
        if (block->ops[k].n_in == 2)
            ADD(m, DECORATE, VALUES + block->ops[k].out, NO_CONTRACTION);
}

static void add_types(struct module *m)
{
    ADD(m, TYPE_VOID, VOID);
    ADD(m, TYPE_BOOL, BOOL);
    ADD(m, TYPE_INT, U32, 32, 0);
    ADD(m, TYPE_INT, U64, 64, 0);
    ADD(m, TYPE_FLOAT, F32, 32);
    ADD(m, TYPE_VECTOR, U32X3, U32, 3);
    ADD(m, TYPE_STRUCT, PUSH, U32, U64); /* of the base only x */
    ADD(m, TYPE_FUNCTION, MAIN_TYPE, VOID);
    ADD(m, TYPE_POINTER, TO_PUSH, PUSH_CONSTANT, PUSH);
    ADD(m, TYPE_POINTER, TO_PUSHED_U32, PUSH_CONSTANT, U32);
    ADD(m, TYPE_POINTER, TO_PUSHED_U64, PUSH_CONSTANT, U64);
    ADD(m, TYPE_POINTER, TO_U32X3, INPUT, U32X3);
    ADD(m, TYPE_POINTER, TO_U64, PHYSICAL_STORAGE_BUFFER, U64);
    ADD(m, TYPE_POINTER, TO_F32, PHYSICAL_STORAGE_BUFFER, F32);
}

static void add_constants(struct module *m)
{
    ADD(m, CONSTANT, U32, MEMBER_BASE, 0);
    ADD(m, CONSTANT, U32, MEMBER_WORDS, 1);
    ADD(m, CONSTANT, U64, LANES, CHAIN_LANES, 0);
    ADD(m, CONSTANT, U64, F32_BYTES, sizeof(float), 0);
    ADD(m, CONSTANT, F32, F32_ZERO, 0);
    for (uint32_t i = 0; i < N_WORDS; i++)
        ADD(m, CONSTANT, U64, OFFSETS + i, i * (uint32_t)sizeof(uint64_t), 0);
    ADD(m, VARIABLE, TO_PUSH, PUSHED, PUSH_CONSTANT);
    ADD(m, VARIABLE, TO_U32X3, GROUP, INPUT);
    ADD(m, VARIABLE, TO_U32X3, LANE, INPUT);
}

/* ---- the function ---- */

/* The id of what an instruction of two operands gives. */
static uint32_t add_binary(struct module *m, uint32_t inst, uint32_t type, uint32_t a, uint32_t b)
{
    const uint32_t id = m->next++;

    ADD(m, inst, type, id, a, b);
    return id;
}

static uint32_t add_unary(struct module *m, uint32_t inst, uint32_t type, uint32_t a)
{
    const uint32_t id = m->next++;

    ADD(m, inst, type, id, a);
    return id;
}

/* The word at frit_spirv_push.words. */
static uint32_t load_word(struct module *m, uint32_t word)
{
    const uint32_t address = add_binary(m, I_ADD, U64, WORDS, OFFSETS + word);
    const uint32_t at = add_unary(m, CONVERT_U_TO_PTR, TO_U64, address), id = m->next++;

    ADD(m, LOAD, U64, id, at, ALIGNED, sizeof(uint64_t));
    return id;
}

/* A pointer to the lane's element of an argument. */
static uint32_t element_of(struct module *m, uint32_t arg)
{
    const uint32_t first = load_word(m, WORD_ARGS + arg);

    return add_unary(m, CONVERT_U_TO_PTR, TO_F32, add_binary(m, I_ADD, U64, first, OFFSET));
}

/* The first component of an input, with 64 bits. */
static uint32_t wide_x(struct module *m, uint32_t variable)
{
    const uint32_t all = add_unary(m, LOAD, U32X3, variable), x = m->next++;

    ADD(m, COMPOSITE_EXTRACT, U32, x, all, 0);
    return add_unary(m, U_CONVERT, U64, x);
}

/* Up to the branch around what a lane without an element must not do. */
static void add_head(struct module *m)
{
    uint32_t at, base, group, i, has_element;

    ADD(m, FUNCTION, VOID, MAIN, 0, MAIN_TYPE);
    ADD(m, LABEL, FIRST_BLOCK);
    at = add_binary(m, ACCESS_CHAIN, TO_PUSHED_U64, PUSHED, MEMBER_WORDS);
    ADD(m, LOAD, U64, WORDS, at);
    at = add_binary(m, ACCESS_CHAIN, TO_PUSHED_U32, PUSHED, MEMBER_BASE);
    base = add_unary(m, U_CONVERT, U64, add_unary(m, LOAD, U32, at));
    group = add_binary(m, I_ADD, U64, base, wide_x(m, GROUP));
    i = add_binary(m, I_ADD, U64, add_binary(m, I_MUL, U64, group, LANES), wide_x(m, LANE));
    ADD(m, I_MUL, U64, OFFSET, i, F32_BYTES);
    has_element = add_binary(m, U_LESS_THAN, BOOL, i, load_word(m, WORD_COUNT));
    ADD(m, SELECTION_MERGE, OUTSIDE, 0);
    ADD(m, BRANCH_CONDITIONAL, has_element, INSIDE, OUTSIDE);
    ADD(m, LABEL, INSIDE);
}

static void add_op(struct module *m, const struct block_op *op)
{
    const uint32_t inst = inst_of(op->row->op), id = VALUES + op->out, a = VALUES + op->in[0];

    if (inst == SELECT) /* NaN stays */
        ADD(m, SELECT, F32, id, add_binary(m, F_UNORD_GREATER_THAN, BOOL, a, F32_ZERO), a,
            F32_ZERO);
    else if (op->n_in == 1)
        ADD(m, inst, F32, id, a);
    else
        ADD(m, inst, F32, id, a, VALUES + op->in[1]);
}

uint32_t chain_words(const struct program *program, uint32_t words[CHAIN_WORDS])
{
    enum { MAGIC = 0x07230203, VERSION_1_5 = 0x00010500, BOUND = 3, HEADER = 5 };
    struct module m = {.words = words, .next = ON_THE_WAY};

    memcpy(words, (const uint32_t[HEADER]){MAGIC, VERSION_1_5}, HEADER * sizeof(*words));
    m.n = HEADER;
    add_entry(&m);
    add_decorations(&m, &program->block);
    add_types(&m);
    add_constants(&m);
    add_head(&m);
    for (uint32_t k = 0; k < program->n_in; k++) {
        const uint32_t at = element_of(&m, k);

        ADD(&m, LOAD, F32, VALUES + program->args[k], at, ALIGNED, sizeof(float));
    }
    for (uint32_t k = 0; k < program->block.n_ops; k++)
        add_op(&m, &program->block.ops[k]);
    for (uint32_t k = program->n_in; k < program->n_args; k++) {
        const uint32_t at = element_of(&m, k);

        ADD(&m, STORE, at, VALUES + program->args[k], ALIGNED, sizeof(float));
    }
    ADD(&m, BRANCH, OUTSIDE);
    ADD(&m, LABEL, OUTSIDE);
    add(&m, RETURN, NULL, 0);
    add(&m, FUNCTION_END, NULL, 0);
    words[BOUND] = m.next;
    return m.n;
}
