/* SPDX-License-Identifier: Apache-2.0 */
/* Emission of one phase as one function, for the files of this folder.
 *
 * What is uniform is a scalar; what is linear is the scalar of the chunk's first lane, from which
 * vectors are made where they are wanted; what varies is `units` vectors of `width` lanes. */
#ifndef EMIT_LLVM_EMIT_H
#define EMIT_LLVM_EMIT_H

#include "ir/facts.h"
#include "ir/kir.h"

#include "emit/llvm/api.h"
#include "emit/llvm/llvm.h"
#include "emit/llvm/regions.h"

enum { LL_MAX_UNITS = 8, LL_MAX_WIDTH = 16 };
/* Rounds of a loop that are emitted together at most, and vectors that it carries then. */
enum { LL_TOGETHER = 4, LL_MAX_CARRIED = 64 };

/* Calls a function of the builder. */
#define BUILD(l, name, ...) ((l)->api->Build##name((l)->builder, __VA_ARGS__, ""))

struct ll_types {
    ll_type i8, i16, i64, ptr, half;
    ll_type of[KIR_TYPES];
};

/* The store of a phase that is deferred to the next group, and the loop that carries it out. */
struct ll_deferred {
    uint32_t store, loop; /* KIR_NONE: there is none */
    uint32_t bytes;       /* of a round; 0: there is none */
    uint64_t at;          /* offset of the struct blob_deferred in scratch memory */
    ll_value to, left;    /* in the loop: where what is held goes to, its bytes */
};

/* The loop of which several rounds are emitted together now; see unroll.c. */
struct ll_rounds {
    uint32_t loop;          /* KIR_NONE: there is none */
    uint32_t number;        /* of the round, from 0 */
    ll_value *first;        /* per load: its offset in the first of them */
    ll_value *ahead, *each; /* per load: see ll_shared_begin */
};

struct ll {
    const struct ll_api *api;
    struct llvm_cpu cpu;
    ll_context context;
    ll_module code;
    ll_builder builder;
    struct ll_types types;
    const struct kir_module *module;
    /* Of the phase. */
    const struct kir_phase *phase;
    uint32_t width, units, chunk;
    struct facts facts;
    struct regions regions;
    ll_value function, words, group, scratch;
    ll_value streams;      /* KIR_B: stores may go around the caches */
    ll_value *args;        /* addresses */
    ll_value *scalar;      /* per value */
    ll_value *vector;      /* per value and unit */
    uint32_t *loaded;      /* per value: the region that it was last loaded for, + 1 */
    uint64_t *slot, *tile; /* places in scratch memory, of values and tiles */
    uint64_t scratch_bytes;
    struct ll_deferred deferred;
    struct ll_rounds rounds;
    ll_value lane0; /* I32, the chunk's first lane */
    ll_block chunk_begin, chunk_before;
    uint32_t region;
    ll_block *block;   /* per opener: its head; per closer: what comes after */
    bool wide;         /* rows are emitted as vectors */
    const char *lacks; /* what the set of instructions does not have */
};

/* The phase's instructions, or one of them. */
void ll_emit_body(struct ll *l);
void ll_emit(struct ll *l, uint32_t at);
/* A word of what a group gets. */
ll_value ll_group_word(struct ll *l, uint64_t number);
ll_block ll_new_block(struct ll *l);
ll_value ll_call(struct ll *l, const char *intrinsic, ll_type *types, uint32_t n_types,
                 ll_value *args, uint32_t n);
/* An intrinsic without type variables, whose arguments may be of other types of as many bits. */
ll_value ll_call_bits(struct ll *l, const char *intrinsic, const ll_value *given, uint32_t n);
/* Whether the processor has dot2. */
bool ll_has_dot2(const struct ll *l);

static inline const struct kir_inst *ll_inst(const struct ll *l, uint32_t at)
{
    return &l->phase->inst[at];
}

/* The outermost and the innermost loop around an instruction; KIR_NONE: it is in none. */
struct ll_around {
    uint32_t outer, inner;
};

#endif
