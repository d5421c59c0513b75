/* SPDX-License-Identifier: Apache-2.0 */
/* The precompiled loops of one level of the machine.
 *
 * A lane of a register is 4 bytes (B as 0 or 1, I32, F32) or 8 (I64, F64).  Loops go over `n` lanes
 * of contiguous arrays; an array written may be one of those read, from the same place on.  Pure
 * functions over what they are given; any thread. */
#ifndef EMIT_TILE_LOOPS_H
#define EMIT_TILE_LOOPS_H

#include <stddef.h>
#include <stdint.h>

#include "ir/kir.h"

typedef void tile_loop(void *out, const void *a, const void *b, const void *c, size_t n,
                       uint64_t imm);

/* Which operands are a single element for all lanes: bits of the last index of `loop`. */
enum { TILE_ONE_A = 1, TILE_ONE_B = 2, TILE_ONE_C = 4, TILE_ONES = 8 };

/* How elements lie in memory. */
enum tile_kind {
#define MEMORY(KIND, memory, lane, load, store) TILE_##KIND,
#include "emit/rows.def"
    TILE_KINDS,
    TILE_U32 = TILE_I32, /* registers have no sign */
    TILE_U64 = TILE_I64
};

/* Which element each lane has: `first + lane * step`, or `offsets[lane]`, 32 or 64 bits, signed. */
enum tile_way { TILE_LINEAR, TILE_OFFSETS_32, TILE_OFFSETS_64, TILE_WAYS };

struct tile_places {
    size_t n;
    int64_t first, step;
    const void *offsets;
    const uint32_t *mask; /* lanes that take part; NULL: all */
};

/* Between a register and memory; lanes that do not take part stay as they are. */
typedef void tile_move(void *reg, void *memory, const struct tile_places *at);

/* Sums over `rounds` products, one round after the other: for each row, column and lane
 * sums[row * columns + column][lane] += down[row][round * down_step] *
 * across[column][round * across_step].  An element of `across` is one of each lane, from its place
 * on; one of `down` is for all lanes, or with `dots` likewise.  Steps are in bytes. */
struct tile_products {
    size_t rows, columns, rounds; /* one at least; columns: 1 without `dots` */
    size_t lanes;                 /* a power of two, TILE_LEAST_LANES or more */
    void *const *sums;
    const void *const *down, *const *across;
    int64_t down_step, across_step;
};

typedef void tile_multiply(const struct tile_products *p);

enum { TILE_LEAST_LANES = 16, TILE_SUMS = 16 };

/* Functions on tile_products by the bits of an index.  FUSED: by fma; PAIRS: by dot2, where
 * tile_has_dot2(); else mul and add. */
enum { TILE_FUSED = 1, TILE_DOTS = 2, TILE_PAIRS = 4, TILE_PRODUCTS = 7 };

struct tile_loops {
    tile_loop *loop[KIR_OPS][KIR_TYPES][TILE_ONES]; /* by op, type of operand a, TILE_ONE_* */
    tile_loop *round[TILE_KINDS]; /* by how the type that is rounded to lies in memory */
    /* Of 4-byte and 8-byte lanes; not in place. */
    tile_loop *exchange[2], *shift[2];
    tile_loop *copy[2];
    tile_loop *spread[2];                        /* a's element to all lanes */
    tile_loop *line[2];                          /* a's element plus lane * imm */
    tile_multiply *const (*products)[KIR_TYPES]; /* by TILE_FUSED and so on; NULL: there is none */
    tile_move *const (*load)[TILE_WAYS], *const (*store)[TILE_WAYS]; /* by tile_kind */
};

extern const struct tile_loops tile_loops_base;
#ifdef TILE_X86
extern const struct tile_loops tile_loops_avx2, tile_loops_avx512;
#endif

#endif
