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
 * Lanes of a thread (`chunk` of them, where a form says so) have the same values and do the same;
 * together they move elements to tiles.
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
enum {
    ATTENTION_ROWS = 8,
    ATTENTION_KEYS = 8,
    ATTENTION_OUTS = 16,
    ATTENTION_SUMS = 64,
    ATTENTION_FETCHED = 16 /* elements that are loaded before they are stored */
};

enum { ATTENTION_SIDE = 16 /* of fragments */ };

enum attention_form {
    ATTENTION_FRAGMENTS, /* teams multiply fragments, and have rows each */
    ATTENTION_TILES,     /* lanes along rows and along keys or results; operands go through tiles */
    ATTENTION_LINES      /* lanes along rows, each computes its own alone */
};

/* Sizes of the form.  FRAGMENTS: `down` teams, blocks of `keys`.   TILES: a group is `down` times
 * `across` threads. */
struct attention_sizes {
    uint32_t down, across;     /* powers of two */
    uint32_t rows, keys, outs; /* of a thread; keys: of a group where lines */
    uint32_t depth;            /* of a score, in tiles at a time: a power of two */
    uint32_t values;           /* keys whose values are in a tile at a time */
    uint32_t chunk;            /* lanes of a thread: elements that it moves at a time */
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

/* Plans the space and the operands of an op that begins with those of attention; false: it is
 * something else. */
bool attention_plan_row(struct attention *a, const struct block_op *op);
/* Whether the target multiplies fragments of this type. */
bool attention_has_shape(const struct kir_target *target, uint32_t dtype);

/* What emitting needs at hand. */
struct attention_emitter {
    struct attention *a;
    struct expr *e;
    struct kir_module *m;
    enum kir_type type;
    bool is_rough;             /* results have 16 bits: so may weights */
    uint32_t threads, chunk;   /* of a group; lanes of a thread */
    uint32_t lane;             /* as an index: the thread's first one is `chunk` * `thread`, */
    uint32_t thread, low;      /* the lane's number in its thread */
    uint32_t both, tile, part; /* the group's: number among BOTH, of its rows, of its keys */
    uint32_t first_row;        /* of the group */
    uint32_t first_out;        /* likewise */
    uint32_t begin, end;       /* the group's keys */
    uint32_t row[ATTENTION_ROWS], row_ok[ATTENTION_ROWS]; /* the lane's; KIR_B, KIR_NONE: true */
    uint32_t last_key[ATTENTION_ROWS];                    /* causal: the last one that a row sees */
    uint32_t n_keys;                                      /* parameter */
    uint32_t scale, cap;
    bool by_powers;  /* weights are powers of 2 of scores times log2 e, */
    uint32_t factor; /* that and the scale, which scores do not have then; KIR_NONE: they have */
};

/* Of scores and sums. */
static inline uint32_t attention_dtype(const struct attention *a)
{
    uint32_t dtype = a->e.s->block->values[a->e.nodes[a->result].value].dtype;

    return dtype == FRIT_F64 ? FRIT_F64 : FRIT_F32;
}

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
    return b == 1 ? a : at2(w, KIR_mul, a, at_index(w, b));
}

/* A number's high part, that it has in units of n, a power of two, and the rest. */
static inline uint32_t at_high(const struct attention_emitter *w, uint32_t number, uint32_t n)
{
    return n == 1 ? number : at2(w, KIR_shr, number, at_index(w, __builtin_ctz(n)));
}

static inline uint32_t at_low(const struct attention_emitter *w, uint32_t number, uint32_t n)
{
    return at2(w, KIR_and, number, at_index(w, n - 1));
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

/* Begins a phase of groups of so many threads, each of `chunk` lanes. */
void attention_threads(struct attention_emitter *w, uint32_t threads, uint32_t chunk);
/* The number of the group, and what is left of a number when its last part, below n, is taken off;
 * returns that part. */
uint32_t attention_group(const struct attention_emitter *w);
uint32_t attention_take_part(const struct attention_emitter *w, uint32_t *number, int64_t n);
/* The end of the keys that the last of the group's rows sees. */
uint32_t attention_last_end(const struct attention_emitter *w, uint32_t rows);
void attention_set_scale(struct attention_emitter *w);
/* Begins the phase of a form: the group's numbers, its keys, and the rows of its threads, `rows` of
 * a group, of which a thread has `each` from `first` on, `step` apart. */
void attention_begin(struct attention_emitter *w, uint32_t threads, uint32_t chunk, uint32_t rows);
void attention_set_rows(struct attention_emitter *w, uint32_t first, uint32_t each, uint32_t step);

/* The score of the lane's row number `row` and a key, from the sum of products; -infinity where
 * the row does not see the key. `inside`: the key is one; KIR_NONE: surely. */
uint32_t attention_score(const struct attention_emitter *w, uint32_t row, uint32_t key,
                         uint32_t inside, uint32_t sum);
/* The larger of a maximum and a score.  NaNs may be left out, as their weights are NaN anyway. */
uint32_t attention_larger(const struct attention_emitter *w, uint32_t largest, uint32_t score);
/* What is subtracted from exponents of scores whose maximum is `largest`: 0 where that is
 * -infinity. */
uint32_t attention_base(const struct attention_emitter *w, uint32_t largest);
/* e^(score - base) */
uint32_t attention_weight(const struct attention_emitter *w, uint32_t score, uint32_t base);
/* The same of a maximum: what sums relative to it are multiplied by where `base` takes its place.
 */
uint32_t attention_rescale(const struct attention_emitter *w, uint32_t largest, uint32_t base);
/* Whether scores are sums of products but for keys that are hidden from a row, and for which of a
 * group's blocks: B, of one that begins at `key`; KIR_NONE: of none surely. */
bool attention_is_plain(const struct attention_emitter *w);
uint32_t attention_hides(const struct attention_emitter *w, uint32_t key, uint32_t n_keys);

/* What a lane has of a row at the end: the results' sums, of which results are at `out`, with the
 * row's maximum and sum of weights: stored as a result, or for the phase that joins. `first`: of
 * lanes that store the latter. */
void attention_finish(const struct attention_emitter *w, uint32_t row, uint32_t out,
                      uint32_t out_ok, uint32_t sum, uint32_t total);
/* The same of results at `first` + the lane's number in its thread, as attention_set_chunk. */
void attention_finish_chunk(const struct attention_emitter *w, uint32_t row, uint32_t first,
                            uint32_t out_ok, uint32_t sum, uint32_t total);
void attention_keep(const struct attention_emitter *w, uint32_t row, uint32_t first,
                    uint32_t largest, uint32_t total);
/* The phase that joins. */
void attention_join(struct attention *a);

/* ---- attention_stage.c ---- */

/* An operand that is staged: each row in a line of a tile. */
struct attention_source {
    uint32_t node, tile, pitch;
    bool copies; /* by tcopy; else loaded and stored */
    uint32_t row_tag, column_tag;
    int64_t rows, columns; /* of the operand */
    uint32_t line;         /* columns that are staged, a power of two */
};

/* What is staged of it at a time: `n` rows from `row` on, which is a multiple of n and the rows are
 * not all beyond the end, columns from `column` on; to the tile from line `to` on. */
struct attention_part {
    uint32_t row, column, n, to;
};

/* What a lane loaded and has not stored. */
struct attention_fetched {
    uint32_t n, at[ATTENTION_FETCHED], value[ATTENTION_FETCHED];
};

/* Sets the point of a tag: `first`, a multiple of a thread's lanes, + the lane's number in its
 * thread. */
void attention_set_chunk(const struct attention_emitter *w, uint32_t tag, uint32_t first);
/* Whether an operand's elements are those of an argument, of that type, and the target copies. */
bool attention_can_copy(const struct attention *a, uint32_t node, uint32_t dtype);
/* Stages a part: copies are on the way then. */
void attention_stage(const struct attention_emitter *w, const struct attention_source *s,
                     const struct attention_part *p);
/* The same in two steps: loads or begins to copy, and stores what was loaded.  As many elements of
 * a lane as `out` holds; all lanes have some. */
void attention_fetch(const struct attention_emitter *w, const struct attention_source *s,
                     const struct attention_part *p, struct attention_fetched *out);
void attention_put(const struct attention_emitter *w, const struct attention_source *s,
                   const struct attention_fetched *fetched);
/* Waits for all copies, and for the group. */
void attention_arrive(const struct attention_emitter *w);

/* ---- forms ---- */

void attention_tiles(struct attention *a);
/* Chooses to load ahead where that is possible with so many elements in tiles. */
bool attention_load_ahead(struct attention *a, uint64_t most);
/* Elements of the tiles of a group. */
uint64_t attention_tile_elements(const struct attention_sizes *sizes);
void attention_lines(struct attention *a);
void attention_fragments(struct attention *a);
uint64_t attention_fragment_bytes(const struct attention *a);

#endif
