/* SPDX-License-Identifier: Apache-2.0 */
/* A random case in the making. */
#ifndef TESTS_KERNELS_EMIT_RANDOM_GEN_H
#define TESTS_KERNELS_EMIT_RANDOM_GEN_H

#include "emit/random.h"

enum { GEN_POOL = 256, GEN_TILES = 4 };

struct gen {
    struct random_case *c;
    struct kir_module *module;
    const struct random_target *target;
    uint64_t state;
    uint32_t types; /* bits by enum kir_type */
    uint32_t index; /* type of offsets */
    uint32_t total; /* lanes of the largest phase, all groups */
    uint32_t tight; /* elements of arguments 0 and 2 */
    uint32_t sums;  /* the argument for atomics, KIR_NONE: none */
    uint32_t access[RANDOM_ARGS];
    uint32_t phase_lanes[RANDOM_PHASES];
    /* Of the phase. */
    uint32_t lanes;
    uint32_t lane, first, base, limit; /* values: base = first + lane, limit: `tight` */
    bool stored[RANDOM_ARGS];
    uint32_t n_tiles;
    struct kir_tile tile[GEN_TILES];
    uint32_t n[KIR_TYPES], pool[KIR_TYPES][GEN_POOL];
};

/* random.c */
uint64_t gen_bits(struct gen *g);
uint32_t gen_below(struct gen *g, uint32_t n);
bool gen_chance(struct gen *g, uint32_t percent);
uint64_t gen_value_bits(struct gen *g, uint32_t type);
uint32_t gen_const(struct gen *g, uint32_t type, uint64_t bits);
uint32_t gen_index(struct gen *g, int64_t value);
void gen_push(struct gen *g, uint32_t value);
uint32_t gen_pick(struct gen *g, uint32_t type);
/* One of a set of types that has one. */
uint32_t gen_type(struct gen *g, uint32_t types);

/* random_body.c */
void gen_body(struct gen *g, uint32_t n, uint32_t depth);
void gen_stores(struct gen *g); /* to every argument not yet stored to, but for argument 3 */
void gen_sum(struct gen *g);    /* of all kinds of values, to argument 3 */

/* random_product.c: copies and, where there are lanes enough, a product of fragments. */
void gen_product(struct gen *g);

#endif
