/* SPDX-License-Identifier: Apache-2.0 */
/* The attention schedule, between attention.c (what is to be done), attention_composite.c (the same
 * of other ops), attention_score.c (a score and its weight) and the forms, attention_tile.c,
 * attention_line.c and attention_fragment.c (the code).
 *
 * A row is a query of one head.  Its scores are not kept: groups go over the keys in blocks, with a
 * running maximum of the scores, and the sum of the weights and the sums of weighted values
 * relative to it, which are scaled where the maximum grows (Milakov and Gimelshein 2018; Dao et al.
 * 2022).
 *
 * The space has dims of five tags, in this order: those that everything has, rows, the results of a
 * row, keys, and those of the sums that are scores. */
#ifndef LOWER_ATTENTION_H
#define LOWER_ATTENTION_H

#include "lower/expr/anchor.h"
#include "lower/expr/delinearize.h"

enum attention_tag {
    ATTENTION_BOTH,
    ATTENTION_ROW,
    ATTENTION_OUT,
    ATTENTION_KEY,
    ATTENTION_SIZE,
    ATTENTION_TAGS
};

/* Most of a lane. */
enum { ATTENTION_ROWS = 8, ATTENTION_KEYS = 8, ATTENTION_OUTS = 16, ATTENTION_SUMS = 64 };

enum { ATTENTION_SIDE = 16 /* of fragments */ };

enum attention_form {
    ATTENTION_FRAGMENTS, /* teams multiply fragments, and have rows each */
    ATTENTION_TILES,     /* lanes along rows and along keys or results; operands go through tiles */
    ATTENTION_LINES      /* lanes along rows, each computes its own alone */
};

/* Sizes of the form.  FRAGMENTS: `down` teams, blocks of `keys`.   TILES: a group is `down` times
 * `across` lanes. */
struct attention_sizes {
    uint32_t down, across;     /* powers of two */
    uint32_t rows, keys, outs; /* of a lane; keys: of a group where lines */
    uint32_t depth;            /* of a score, in tiles at a time: a power of two */
    uint32_t values;           /* keys whose values are in a tile at a time */
    bool is_ahead;             /* a block is loaded while products of others are computed */
};

struct attention {
    struct expr e;
    struct anchor anchor;
    struct space_map root;        /* of the result */
    uint32_t q, k, v, mask, bias; /* nodes; mask, bias: BLOCK_NONE: there is none */
    uint32_t dot;   /* node: the sum that a score is made of, where other ops make it; then there */
    uint32_t score; /* are also: the score, */
    uint32_t sum_of_weights; /* what a row's sum of weights is to other ops, */
    uint32_t factor;         /* and what sums of values are multiplied by; BLOCK_NONE: divided by
                                that sum */
    uint32_t result;         /* node; BLOCK_NONE: it is not used */
    uint32_t position;       /* coordinate: of a row among its head's queries */
    int64_t queries, keys, size, outs;
    bool causal;             /* keys after a row's position are hidden: of those of its head, */
    bool rows_are_queries;   /* and rows of a group are neighbours among them */
    uint32_t scale_scalar;   /* of the launch, */
    uint32_t cap_scalar;     /* likewise */
    bool has_scale, has_cap; /* they may be other than 0 */
    enum attention_form form;
    struct attention_sizes sizes;
    uint32_t n_outs;   /* of a group; more are other groups', which have the same scores */
    uint32_t n_splits; /* groups that share a row's keys; over 1: a phase of its own joins them */
    int64_t part;      /* keys of each, at most */
    uint32_t partial;  /* argument: what they have found */
    struct delinearizer points[ATTENTION_TAGS];
};

/* Values of a block that are attention together, and the op of the first product. */
struct attention_ops {
    uint32_t product, scores, e, sum, factor;
};

/* Whether op `number` is the second product. */
bool attention_find_ops(const struct block *block, uint32_t number, struct attention_ops *out);
/* Whether it may be an op before that which elementwise code does not compute. */
bool attention_is_inner(const struct block *block, uint32_t number);
/* Whether such an op is before it. */
bool attention_has_inner(const struct block *block, uint32_t number);
/* Plans the space, nodes and stores; false: it is something else. */
bool attention_plan_ops(struct attention *a, const struct block_op *op);
/* The same of the settled space. */
bool attention_ops_fit(const struct attention *a);

/* What emitting needs at hand. */
struct attention_emitter {
    struct attention *a;
    struct expr *e;
    struct kir_module *m;
    enum kir_type type;
    bool is_rough;             /* results have 16 bits: so may weights */
    uint32_t lane;             /* as an index */
    uint32_t both, tile, part; /* the group's: number among BOTH, of its rows, of its keys */
    uint32_t first_row;        /* of the group */
    uint32_t first_out;        /* likewise */
    uint32_t begin, end;       /* the group's keys */
    uint32_t row[ATTENTION_ROWS], row_ok[ATTENTION_ROWS]; /* the lane's; KIR_B, KIR_NONE: true */
    uint32_t last_key[ATTENTION_ROWS];                    /* causal: the last one that a row sees */
    uint32_t n_keys;                                      /* parameter */
    uint32_t scale, cap;
};

static inline int64_t tiles_of(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

static inline uint32_t power_above(int64_t n)
{
    uint32_t power = 1;

    while (power < n)
        power *= 2;
    return power;
}

static inline uint32_t at2(const struct attention_emitter *w, enum kir_op op, uint32_t a,
                           uint32_t b)
{
    return kir_emit(w->m, op, a, b, KIR_NONE);
}

static inline uint32_t at_index(const struct attention_emitter *w, int64_t value)
{
    return kir_index(w->m, value);
}

static inline uint32_t at_plus(const struct attention_emitter *w, uint32_t a, int64_t b)
{
    return b ? at2(w, KIR_add, a, at_index(w, b)) : a;
}

static inline uint32_t at_times(const struct attention_emitter *w, uint32_t a, int64_t b)
{
    return at2(w, KIR_mul, a, at_index(w, b));
}

/* Quotient and remainder by a power of two. */
static inline uint32_t at_high(const struct attention_emitter *w, uint32_t value, uint32_t n)
{
    return at2(w, KIR_shr, value, at_index(w, __builtin_ctz(n)));
}

static inline uint32_t at_low(const struct attention_emitter *w, uint32_t value, uint32_t n)
{
    return at2(w, KIR_and, value, at_index(w, n - 1));
}

static inline uint32_t at_real(const struct attention_emitter *w, double value)
{
    return kir_const_f(w->m, w->type, value);
}

/* a and b, KIR_NONE being true. */
static inline uint32_t at_both(const struct attention_emitter *w, uint32_t a, uint32_t b)
{
    return a == KIR_NONE ? b : b == KIR_NONE ? a : at2(w, KIR_and, a, b);
}

static inline uint32_t at_mad(const struct attention_emitter *w, uint32_t a, uint32_t b, uint32_t c)
{
    if (w->e->s->target->fma)
        return kir_emit(w->m, KIR_fma, a, b, c);
    return at2(w, KIR_add, c, at2(w, KIR_mul, a, b));
}

/* Begins the phase of a form: the group's numbers, its keys, and the rows of its lanes, `rows` of a
 * group, of which a lane has `each` from `first` on. */
void attention_begin(struct attention_emitter *w, uint32_t lanes, uint32_t rows);
void attention_set_rows(struct attention_emitter *w, uint32_t first, uint32_t each);
/* Sets the coordinates of point `first` + `low` of a tag, where `first` is the multiple of the
 * points' chunk that neighbouring lanes share, and `low` the lane's number among them. */
void attention_set_chunk(const struct attention_emitter *w, uint32_t tag, uint32_t first,
                         uint32_t low);

/* The score of the lane's row number `row` and a key, from the sum of products; -infinity where
 * the row does not see the key. `inside`: the key is one; KIR_NONE: surely. */
uint32_t attention_score(const struct attention_emitter *w, uint32_t row, uint32_t key,
                         uint32_t inside, uint32_t sum);
/* The larger of a maximum and a score.  NaNs may be left out, as their weights are NaN anyway. */
uint32_t attention_larger(const struct attention_emitter *w, uint32_t largest, uint32_t score);
/* What is subtracted from scores whose maximum is `largest`: 0 where that is -infinity. */
uint32_t attention_base(const struct attention_emitter *w, uint32_t largest);
/* e^(score - base) */
uint32_t attention_weight(const struct attention_emitter *w, uint32_t score, uint32_t base);

/* What a lane has of a row at the end: the results' sums, of which results are at `out`, with the
 * row's maximum and sum of weights: stored as a result, or for the phase that joins. `first`: of
 * lanes that store the latter. */
void attention_finish(const struct attention_emitter *w, uint32_t row, uint32_t out,
                      uint32_t out_ok, uint32_t sum, uint32_t total);
/* The same of results at `first` + `low`, as attention_set_chunk has them. */
void attention_finish_chunk(const struct attention_emitter *w, uint32_t row, uint32_t first,
                            uint32_t low, uint32_t out_ok, uint32_t sum, uint32_t total);
void attention_keep(const struct attention_emitter *w, uint32_t row, uint32_t first,
                    uint32_t largest, uint32_t total);
/* The phase that joins. */
void attention_join(struct attention *a);

void attention_tiles(struct attention *a);
/* Chooses to load ahead where that is possible with so many elements in tiles. */
bool attention_load_ahead(struct attention *a, uint64_t most);
/* Elements of the tiles of a group. */
uint64_t attention_tile_elements(const struct attention_sizes *sizes);
void attention_lines(struct attention *a);
void attention_fragments(struct attention *a);
uint64_t attention_fragment_bytes(const struct attention *a);

#endif
