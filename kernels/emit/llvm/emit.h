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
#include "emit/llvm/cut.h"
#include "emit/llvm/llvm.h"

enum { LL_MOST_UNITS = 8, LL_MOST_WIDTH = 16 };

/* Calls a function of the builder. */
#define BUILD(l, name, ...) ((l)->api->Build##name((l)->builder, __VA_ARGS__, ""))

struct ll_types {
    ll_type i8, i16, i64, ptr, half;
    ll_type of[KIR_TYPES];
};

/* The store of a phase that the next group carries out, and the loop that does so. */
struct ll_behind {
    uint32_t store, loop; /* KIR_NONE: there is none */
    uint32_t bytes;       /* of a round; 0: there is none */
    uint64_t at;          /* struct blob_behind, in scratch memory */
    ll_value to, left;    /* in the loop: where what is held goes to, its bytes */
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
    struct cut cut;
    ll_value function, words, group, scratch;
    ll_value streams;      /* B: stores may go around the caches */
    ll_value *args;        /* addresses */
    ll_value *scalar;      /* per value */
    ll_value *vector;      /* per value and unit */
    uint32_t *loaded;      /* per value: the stretch that it was last loaded for, + 1 */
    uint64_t *slot, *tile; /* places in scratch memory, of values and tiles */
    uint64_t scratch_bytes;
    struct ll_behind behind;
    ll_value lane0; /* I32, the chunk's first lane */
    ll_block chunk_begin, chunk_before;
    uint32_t stretch;
    ll_block *block;   /* per opener: its head; per closer: what comes after */
    bool wide;         /* rows are emitted as vectors */
    const char *lacks; /* what the set of instructions does not have */
};

/* emit.c: the whole phase as function `name`. */
frit_status ll_phase(struct ll *l, uint32_t phase, const char *name, frit_err *err);
ll_block ll_new_block(struct ll *l);
ll_value ll_call(struct ll *l, const char *intrinsic, ll_type *types, uint32_t n_types,
                 ll_value *args, uint32_t n);

/* value.c: constants, shapes. */
ll_type ll_shape(const struct ll *l, ll_type type); /* as `wide` says */
ll_type ll_vector_of(const struct ll *l, ll_type type);
ll_value ll_int(const struct ll *l, ll_type type, uint64_t value);
ll_value ll_num(const struct ll *l, ll_type type, uint64_t value); /* of ll_shape */
ll_value ll_real(const struct ll *l, uint32_t type, double value); /* of ll_shape */
ll_value ll_lanes(const struct ll *l, ll_type type, const uint64_t *numbers);
ll_value ll_mask(const struct ll *l, const uint32_t *lanes);
ll_value ll_splat(struct ll *l, ll_value scalar, ll_type type);
ll_value ll_spread(struct ll *l, uint32_t value, ll_value scalar, uint32_t unit);
ll_value ll_at(struct ll *l, uint32_t value, uint32_t unit); /* as a vector */
void ll_set(struct ll *l, uint32_t value, ll_value scalar);  /* uniform or linear */
bool ll_is(const struct ll *l, uint32_t value, enum fact_kind kind);

/* rows.c: instructions whose lanes are independent; operands of the shape that `wide` says. */
bool ll_has_row(uint32_t op);
ll_value ll_row(struct ll *l, const struct kir_inst *inst, const ll_value *a);

/* divide.c: whether, and the division of F32 by what all lanes have alike. */
bool ll_shares_divisor(const struct ll *l, uint32_t at);
void ll_divide(struct ll *l, uint32_t at);

/* convert.c */
ll_value ll_convert(struct ll *l, const struct kir_inst *inst, uint32_t from, ll_value a);
ll_type ll_memory_type(const struct ll *l, uint32_t dtype);
ll_value ll_from_memory(struct ll *l, uint32_t dtype, ll_value raw);
ll_value ll_to_memory(struct ll *l, uint32_t dtype, ll_value value);

/* memory.c */
void ll_access(struct ll *l, uint32_t at);
void ll_atomic_add(struct ll *l, uint32_t at);
/* A vector around the caches; how places of vectors of such elements are to be aligned for it. */
void ll_stream(struct ll *l, ll_value vector, ll_value to, uint32_t align);
uint32_t ll_stream_align(const struct ll *l, uint32_t bytes);

/* ahead.c: from where a load of an argument reads, in elements of `bytes`, to where it reads next,
 * I64; NULL: unknown, or not worth asking memory for.  Asking loads into a cache. */
ll_value ll_next_place(struct ll *l, uint32_t at, uint32_t bytes);
void ll_ask(struct ll *l, ll_value place);

static inline const struct kir_inst *ll_inst(const struct ll *l, uint32_t at)
{
    return &l->phase->inst[at];
}

/* The outermost and the innermost loop around an instruction; KIR_NONE: it stands in none. */
struct ll_around {
    uint32_t outer, inner;
};

struct ll_around ll_loops_around(const struct ll *l, uint32_t at);
/* How many instructions there are for a vector from one on, before another, without memory's. */
uint32_t ll_work(const struct ll *l, uint32_t from, uint32_t end);

/* behind.c: such a store is looked for; before the loop what is held is taken, and stored round by
 * round; a round's vectors are held if there is room and they go on with what is, else control goes
 * to `full`. */
void ll_plan_behind(struct ll *l);
void ll_take_held(struct ll *l);
void ll_store_held(struct ll *l);
void ll_hold_back(struct ll *l, const ll_value *raw, ll_value to, ll_block full, ll_block after);

/* group.c */
void ll_exchange(struct ll *l, uint32_t at);
void ll_shift(struct ll *l, uint32_t at);
void ll_first(struct ll *l, uint32_t at);
void ll_hold(struct ll *l, uint32_t value); /* into its slot */
/* What a phi between stretches has next: for the chunk, then for all once every chunk has read. */
void ll_carry(struct ll *l, uint32_t value, uint32_t phi);
void ll_carried(struct ll *l, uint32_t phi);
void ll_fetch(struct ll *l, uint32_t value);           /* from its slot */
ll_value ll_fetch_group(struct ll *l, uint32_t value); /* a scalar, between stretches */
void ll_cross(struct ll *l, uint32_t at);              /* exchange or shift, of one chunk */

#endif
