/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/key.h"

#include <frit/op_table.h>

#include "base/str.h"
#include "graph/dtype.h"

/* Increment it when the bytes of equal launches change. */
enum { KEY_VERSION = 2 };

enum { PROGRAM = 0xff, LIMIT = 0xfe /* in the place of a level */ };

static void add_number(struct str *out, uint64_t number)
{
    str_add(out, (const char *)&number, sizeof(number));
}

/* 0, 1 and -1 are cases of their own: broadcasts and neighbours. */
static uint64_t bucket_of_stride(int64_t stride, enum tune_level level)
{
    const uint64_t size = stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
    const uint64_t bucket = size <= 1 ? size : tune_anchor(size, level);

    return stride < 0 ? -bucket : bucket;
}

/* Whole powers of two that divide a number, up to 16: 3 bits. */
static uint64_t divisibility(int64_t number)
{
    return number ? (uint64_t)__builtin_ctzll((uint64_t)number | 16) : 4;
}

/* Where memory begins and whether an output's was assigned depends on the moment. */
static uint64_t lasting_flags(uint64_t flags)
{
    return flags & ~(uint64_t)(FRIT_ARG_START | FRIT_ARG_PREASSIGNED);
}

static void add_arg(const frit_arg_sig *arg, enum tune_level level, struct str *out)
{
    uint64_t divisors = 0;

    add_number(out, (uint64_t)arg->dtype << 32 | arg->quant);
    add_number(out, (uint64_t)arg->rank << 32 | arg->align_log2);
    add_number(out, lasting_flags(arg->flags));
    for (uint32_t d = 0; d < arg->rank; d++) {
        add_number(out, tune_anchor((uint64_t)arg->dims[d], level));
        add_number(out, bucket_of_stride(arg->strides[d], level));
        divisors = divisors << 6 | divisibility(arg->dims[d]) << 3 | divisibility(arg->strides[d]);
    }
    add_number(out, divisors);
}

void tune_key(const uint8_t digest[TUNE_DIGEST], const frit_signature *sig, enum tune_level level,
              uint32_t numeric_class, struct str *out)
{
    add_number(out, (uint64_t)numeric_class << 32 | KEY_VERSION << 8 | (uint64_t)level);
    str_add(out, (const char *)digest, TUNE_DIGEST);
    add_number(out, (uint64_t)sig->n_in << 32 | sig->n_out);
    add_number(out, (uint64_t)sig->n_scalars << 32 | sig->n_bounds);
    add_number(out, sig->index_width);
    for (uint32_t i = 0; i < sig->n_in + sig->n_out; i++)
        add_arg(frit_arg_sig_at(sig, i), level, out);
    str_add(out, (const char *)sig->scalar_classes, sig->n_scalars);
    str_add(out, (const char *)sig->bound_classes, sig->n_bounds);
}

void tune_key_program(const uint8_t digest[TUNE_DIGEST], struct str *out)
{
    add_number(out, KEY_VERSION << 8 | PROGRAM);
    str_add(out, (const char *)digest, TUNE_DIGEST);
}

void tune_key_limit(uint32_t op, uint32_t dtype, uint32_t step, struct str *out)
{
    add_number(out, KEY_VERSION << 8 | LIMIT);
    add_number(out, (uint64_t)op << 32 | dtype);
    add_number(out, step);
}

static void print_arg(const frit_arg_sig *arg, struct str *out)
{
    if (arg->dtype == FRIT_NO_DTYPE) {
        str_addf(out, "_");
        return;
    }
    str_addf(out, "%s[", dtype_name(arg->dtype));
    for (uint32_t d = 0; d < arg->rank; d++)
        str_addf(out, d ? ", %lld" : "%lld", (long long)arg->dims[d]);
    str_addf(out, "]");
}

void tune_key_print(const frit_signature *sig, struct str *out)
{
    for (uint32_t i = 0; i < sig->n_in + sig->n_out; i++) {
        str_addf(out, i == sig->n_in ? (i ? " -> " : "-> ") : i ? " " : "");
        print_arg(frit_arg_sig_at(sig, i), out);
    }
}
