/* SPDX-License-Identifier: Apache-2.0 */
/* What emitting contractions needs at hand, between contract_emit.c and contract_tile.c. */
#ifndef LOWER_CONTRACT_EMIT_H
#define LOWER_CONTRACT_EMIT_H

#include "lower/contract/contract.h"
#include "lower/sum_blocks.h"

enum { DOWN, ACROSS };

struct contract_emitter {
    struct contract *c;
    struct expr *e;
    struct kir_module *m;
    enum kir_type type;           /* of sums */
    uint32_t lane;                /* as an index */
    uint32_t mask;                /* of lanes that have a place; KIR_NONE: all have */
    uint32_t n;                   /* sums */
    uint32_t panel;               /* packed: the lane's first element there */
    uint32_t pair[CONTRACT_SUMS]; /* with in_pairs: the first of a place of `down` */
    struct contract_side *side[2];
    uint32_t n_places[2];             /* of a lane, or of the group where lanes lie along k */
    uint32_t place[2][CONTRACT_SUMS]; /* down_by_line: shifts, else values */
    uint32_t ok[2][CONTRACT_SUMS];    /* KIR_B: the place is not beyond the end; KIR_NONE: surely */
    /* LINES. */
    uint32_t line_begin; /* the group's first place across */
    /* down_by_line. */
    uint32_t place_begin; /* the first place on its line */
    uint32_t before_line; /* mark: the places are not set, nor those across */
    /* FRAGMENTS. */
    uint32_t tile[2];   /* numbers */
    uint32_t corner[2]; /* first places of the group */
    uint32_t end[2];    /* parameters: places that there are */
    uint32_t k_end;
    uint32_t at[2]; /* the lane's place in its row, column */
    /* SLICES: corner[DOWN], and the lane's first place across in at[ACROSS]. */
    uint32_t both;   /* the group's number among those of one tile */
    uint32_t slice;  /* the lane's k in a step */
    uint32_t split;  /* the group's part of k; KIR_NONE: all of it */
    uint32_t k_full; /* k up to where steps are full */
};

static inline uint32_t op2(const struct contract_emitter *w, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(w->m, op, a, b, KIR_NONE);
}

static inline uint32_t index_const(const struct contract_emitter *w, int64_t value)
{
    return kir_const_i(w->m, w->m->wide ? KIR_I64 : KIR_I32, value);
}

/* Of masks, where KIR_NONE is true. */
static inline uint32_t mask_both(const struct contract_emitter *w, uint32_t a, uint32_t b)
{
    return a == KIR_NONE ? b : b == KIR_NONE ? a : op2(w, KIR_and, a, b);
}

static inline bool is_real(const struct contract_emitter *w)
{
    return w->type == KIR_F32 || w->type == KIR_F64;
}

static inline uint32_t zero(const struct contract_emitter *w)
{
    return is_real(w) ? kir_const_f(w->m, w->type, 0) : kir_const_i(w->m, w->type, 0);
}

static inline uint32_t add_product(const struct contract_emitter *w, uint32_t sum, uint32_t a,
                                   uint32_t b)
{
    if (is_real(w) && w->e->s->target->fma)
        return kir_emit(w->m, KIR_fma, a, b, sum);
    return op2(w, KIR_add, sum, op2(w, KIR_mul, a, b));
}

/* A side's element at a place and the k that is set, where the mask is; KIR_NONE: the place that is
 * set, everywhere. */
uint32_t work_element(const struct contract_emitter *w, uint32_t side, uint32_t place,
                      uint32_t mask);
/* Adds the range from `begin` to `end` to the sums: as it is, or if `long_sum` by blocks of
 * `rounds` whose sums are added up. */
void work_range(const struct contract_emitter *w, uint32_t begin, uint32_t end, bool long_sum,
                int64_t rounds, uint32_t *sums);
/* Sets the place of a side. */
void work_set_place(const struct contract_emitter *w, uint32_t side, uint32_t place);
/* A sum and the bias at the places that are set. */
uint32_t work_add_bias(const struct contract_emitter *w, uint32_t sum);
/* Stores the result of a sum with its bias at the places that are set, where the mask is. */
void work_store(const struct contract_emitter *w, uint32_t sum);

static inline void work_finish(const struct contract_emitter *w, uint32_t sum)
{
    work_store(w, work_add_bias(w, sum));
}

/* A loop that carries the sums; they are its phis.  Gives the counter. */
uint32_t work_loop(const struct contract_emitter *w, uint32_t begin, uint32_t end, uint32_t step,
                   uint32_t *sums);

/* What is left of a number when its last part, below n, is taken off; gives that part. */
uint32_t work_part(const struct contract_emitter *w, uint32_t *number, int64_t n);
/* The lane's group number and its own, as indices, at the begin of a phase. */
uint32_t work_begin(struct contract_emitter *w, uint32_t lanes);

#endif
