/* SPDX-License-Identifier: Apache-2.0 */
/* Many floats of 16 bits to f32 and back, by what the processor has for that. */
#ifndef COLLECTIVE_NARROW_H
#define COLLECTIVE_NARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elements in memory may lie at any address. */
struct narrow {
    void (*load)(float *restrict into, const char *restrict from, size_t count);
    void (*store)(char *restrict into, const float *restrict from, size_t count);
    /* The sums of `a` and `b`, or half of them, to two arrays.  Each of these is one of the
     * operands, or overlaps none. */
    void (*exchange)(char *const into[2], const char *a, const char *b, size_t count, bool halved);
};

/* The fastest for F16 or BF16 that this processor can run. */
const struct narrow *narrow_best(uint32_t dtype);

/* ---- what it chooses from ---- */

extern const struct narrow narrow_f16, narrow_bf16;
extern const struct narrow narrow_f16_avx2, narrow_bf16_avx2; /* with AVX2 and F16C */

#endif
