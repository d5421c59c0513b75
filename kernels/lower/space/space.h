/* SPDX-License-Identifier: Apache-2.0 */
/* Index maps: the coordinates of a value's element as functions of a point of an iteration space.
 *
 * A space is a list of dims, outermost first.  An expression over it is a constant plus a sum of
 * multiples of variables: the dims, and leaves: values that are not affine in the dims, such as
 * quotients, numbers that the kernel loads, and what depends on a bound of the launch (an
 * integer attribute, such as a slice's start, whose value is known only at launch).  Reshapes that
 * split and merge dims evenly need no leaves; space_settle splits dims so that fewer leaves are
 * needed, and merges neighbouring dims that all expressions treat as one.  All numbers are
 * concrete; expr.h decides which of them become parameters of the module. Not thread-safe. */
#ifndef LOWER_SPACE_H
#define LOWER_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/types.h>

enum { SPACE_DIMS = 16, SPACE_LEAVES = 16, SPACE_VARS = SPACE_DIMS + SPACE_LEAVES };

struct space_expr {
    int64_t c;
    int64_t k[SPACE_VARS]; /* factor of dim i at [i], of leaf j at [SPACE_DIMS + j] */
};

/* The coordinates of an element of a value. */
struct space_map {
    uint32_t rank;
    struct space_expr at[FRIT_MAX_RANK];
};

enum space_kind {
    SPACE_QUOTIENT, /* floor(of / by), where 0 <= of and by > 1 */
    SPACE_LOADED,   /* 0 .. by - 1, loaded by the kernel, e.g. from an index tensor */
    SPACE_BOUND,    /* 0 .. by - 1: bound `source` minus of.c, which is the bound's minimum */
    SPACE_STEPS,    /* 0 .. by - 1: bound `source` + bound `step` * of */
    SPACE_RATIO,    /* of / (bound `source` + by), rounded toward 0 */
    SPACE_REST      /* the remainder of that division, with the sign of `of` */
};

/* `of` contains only dims and leaves with a smaller index. */
struct space_leaf {
    struct space_expr of;
    int64_t by;            /* divisor, number of values or addend, depending on the kind */
    uint32_t kind;         /* enum space_kind */
    uint32_t source, step; /* SPACE_LOADED: the caller's number of the loaded value; else numbers of
                              launch bounds */
};

struct space {
    uint32_t n_dims, n_leaves;
    int64_t extent[SPACE_DIMS]; /* > 1 */
    uint32_t tag[SPACE_DIMS]; /* chosen by the schedule: dims of different tags are never merged */
    struct space_leaf leaf[SPACE_LEAVES];
    bool overflow; /* a dim or a leaf did not fit: the space cannot be used */
};

/* Appends a dim and returns the coordinate along it.  An extent of 1 adds no dim and returns 0. */
struct space_expr space_dim(struct space *space, int64_t extent, uint32_t tag);

/* A coordinate below `extent` that the kernel loads.  Equal sources are one leaf. */
struct space_expr space_loaded(struct space *space, int64_t extent, uint32_t source);
/* Bound number `bound` of the launch, between `min` and `max`. */
struct space_expr space_bound(struct space *space, int64_t min, int64_t max, uint32_t bound);
/* bound `start` + bound `step` * expr: a coordinate below `extent`. */
struct space_expr space_steps(struct space *space, const struct space_expr *expr, int64_t extent,
                              uint32_t start, uint32_t step);
/* Quotient, rounded toward 0, and remainder of expr by bound + `more`, which must not be 0. */
void space_ratio(struct space *space, const struct space_expr *expr, uint32_t bound, int64_t more,
                 struct space_expr *quotient, struct space_expr *rest);

/* sum += factor * expr */
void space_add(struct space_expr *sum, const struct space_expr *expr, int64_t factor);
/* floor(expr / by), by > 0; adds a leaf only where the division is not even. */
struct space_expr space_div(struct space *space, const struct space_expr *expr, int64_t by);
bool space_equal(const struct space_expr *a, const struct space_expr *b);
/* The smallest and largest value over the space. */
void space_range(const struct space *space, const struct space_expr *expr, int64_t *low,
                 int64_t *high);

/* The offset of the element from the first one, in a layout with these strides. */
struct space_expr space_offset(const struct space_map *map, const int64_t *strides);
/* The row-major index of the element in a value of these dims. */
struct space_expr space_linear(const struct space_map *map, const int64_t *dims);
/* The coordinates, in `rank` dims, of the element with row-major index `linear`; all 0 where the
 * dims have no element. */
void space_unlinear(struct space *space, const struct space_expr *linear, uint32_t rank,
                    const int64_t *dims, struct space_map *out);
/* The coordinates of the element of an operand that is broadcast to the map's value; its `rank`
 * dims correspond to the last dims of the map. */
void space_broadcast(const struct space_map *map, uint32_t rank, const int64_t *dims,
                     struct space_map *out);

/* Rewrites the space and the `n` expressions, which must be all that are in use: removes unused
 * leaves, splits dims where that removes leaves, and merges neighbouring dims of one tag that every
 * expression treats as one. */
void space_settle(struct space *space, struct space_expr *const *exprs, uint32_t n);

#endif
