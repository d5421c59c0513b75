/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of elementwise ops on f32 as PTX, for devices that take FRIT_FORMAT_PTX: what chain.c
 * writes as SPIR-V.  Registers: %v of the values of the block, %d of 64 bits, %r of 32. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "blocks.h"

/* Words at frit_kernel_params.words, 8 bytes each: driver[0], and the address of the first
 * argument.
 */
enum { WORD_ARGS = 5 };

struct text {
    char *to;
    uint32_t n;
};

static __attribute__((format(printf, 2, 3))) void add(struct text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    text->n += (uint32_t)vsnprintf(text->to + text->n, CHAIN_PTX_BYTES - text->n, format, args);
    va_end(args);
}

/* Up to the branch around what a thread without an element must not do.  %d0: the address of the
 * words, %d1: the offset of the element in bytes. */
static void add_head(struct text *text)
{
    add(text, ".version 6.0\n.target sm_70\n.address_size 64\n"
              ".visible .entry " FRIT_KERNEL_NAME "(.param .align 8 .b8 params[16])\n{\n"
              ".reg .pred %%p<2>;\n.reg .b32 %%r<2>;\n.reg .b64 %%d<4>;\n");
    add(text, ".reg .f32 %%v<%d>;\n", BLOCK_ARGS);
    add(text, "ld.param.u64 %%d0, [params+%zu];\n", offsetof(frit_kernel_params, words));
    add(text,
        "mov.u32 %%r0, %%ctaid.x;\n"
        "mov.u32 %%r1, %%tid.x;\n"
        "mul.wide.u32 %%d1, %%r0, %d;\n"
        "cvt.u64.u32 %%d2, %%r1;\n"
        "add.u64 %%d1, %%d1, %%d2;\n"
        "ld.global.u64 %%d2, [%%d0];\n"
        "setp.ge.u64 %%p0, %%d1, %%d2;\n"
        "@%%p0 ret;\n"
        "shl.b64 %%d1, %%d1, 2;\n",
        CHAIN_LANES);
}

/* %d3: the address of the thread's element of an argument. */
static void add_address(struct text *text, uint32_t arg)
{
    add(text, "ld.global.u64 %%d3, [%%d0+%d];\n", (WORD_ARGS + (int)arg) * 8);
    add(text, "add.u64 %%d3, %%d3, %%d1;\n");
}

/* The instructions of an op: $0 stands for the register of the result, $1 and $2 for those of the
 * operands.  Each op rounds by itself, as one that runs alone; of relu NaN stays. */
static const struct {
    uint32_t op;
    const char *instructions;
} rows[] = {{FRIT_OP_neg, "neg.f32 $0, $1;\n"},
            {FRIT_OP_add, "add.rn.f32 $0, $1, $2;\n"},
            {FRIT_OP_sub, "sub.rn.f32 $0, $1, $2;\n"},
            {FRIT_OP_mul, "mul.rn.f32 $0, $1, $2;\n"},
            {FRIT_OP_relu, "setp.gtu.f32 %p1, $1, 0f00000000;\n"
                           "selp.f32 $0, $1, 0f00000000, %p1;\n"}};

static void add_op(struct text *text, const struct block_op *op)
{
    const uint32_t values[] = {op->out, op->in[0], op->in[1]};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (const char *at = rows[i].instructions; rows[i].op == op->row->op && *at; at++) {
            if (*at == '$')
                add(text, "%%v%u", values[*++at - '0']);
            else
                add(text, "%c", *at);
        }
}

uint32_t chain_ptx(const struct program *program, char bytes[CHAIN_PTX_BYTES])
{
    struct text text = {.to = bytes};

    add_head(&text);
    for (uint32_t k = 0; k < program->n_in; k++) {
        add_address(&text, k);
        add(&text, "ld.global.f32 %%v%u, [%%d3];\n", program->args[k]);
    }
    for (uint32_t k = 0; k < program->block.n_ops; k++)
        add_op(&text, &program->block.ops[k]);
    for (uint32_t k = program->n_in; k < program->n_args; k++) {
        add_address(&text, k);
        add(&text, "st.global.f32 [%%d3], %%v%u;\n", program->args[k]);
    }
    add(&text, "ret;\n}\n");
    return text.n;
}
