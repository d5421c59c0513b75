/* SPDX-License-Identifier: Apache-2.0 */
/* Index maps: where an element of a value lies, as a function of a point of an iteration space.
 *
 * A space is a list of dims, outer first.  An expression is a constant plus multiples of variables:
 * the dims, then atoms: quotients of expressions by numbers, values that code finds out, or what
 * the numbers of one launch make of an expression.
 * Reshapes that split and merge dims cleanly leave no atoms; space_settle splits dims of the space
 * so that fewer of them need atoms, and merges neighbouring dims that nothing tells apart.  All
 * numbers are concrete; what of them shows in a module is decided when code is emitted (expr.h).
 * Not thread-safe. */
#ifndef LOWER_SPACE_H
#define LOWER_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/types.h>

enum { SPACE_DIMS = 16, SPACE_ATOMS = 16, SPACE_VARS = SPACE_DIMS + SPACE_ATOMS };

struct space_expr {
    int64_t c;
    int64_t k[SPACE_VARS]; /* of dim i at i, of atom j at SPACE_DIMS + j */
};

/* The coordinates of an element of a value. */
struct space_map {
    uint32_t rank;
    struct space_expr at[FRIT_MAX_RANK];
};

enum space_kind {
    SPACE_QUOTIENT, /* floor(of / by): 0 <= of, by > 1 */
    SPACE_FOUND,    /* 0 .. by - 1, found out when the code runs */
    SPACE_NUMBER,   /* 0 .. by - 1: a bound of the launch less of.c, the least it can be */
    SPACE_STEPS,    /* 0 .. by - 1: a bound + another * of */
    SPACE_RATIO,    /* of / (a bound + by), toward 0 */
    SPACE_REST      /* what is left of `of` then, with its sign */
};

/* `of` has only dims and earlier atoms. */
struct space_atom {
    struct space_expr of;
    int64_t by;
    uint32_t kind;        /* enum space_kind */
    uint32_t name, other; /* what is found, or bounds: the caller's numbers */
};

struct space {
    uint32_t n_dims, n_atoms;
    int64_t extent[SPACE_DIMS]; /* > 1 */
    uint32_t tag[SPACE_DIMS];   /* the schedule's: dims of different tags stay apart */
    struct space_atom atom[SPACE_ATOMS];
    bool full; /* there was no room for a dim or an atom: the space is of no use */
};

/* Appends a dim and gives the coordinate along it; of extent 1 that is 0 and no dim. */
struct space_expr space_dim(struct space *space, int64_t extent, uint32_t tag);

/* A coordinate below `extent` that the code finds out; the same name is the same one. */
struct space_expr space_found(struct space *space, int64_t extent, uint32_t name);
/* A bound of the launch, between `least` and `most`. */
struct space_expr space_bound(struct space *space, int64_t least, int64_t most, uint32_t bound);
/* start + step * expr, both bounds: a coordinate below `extent`. */
struct space_expr space_steps(struct space *space, const struct space_expr *expr, int64_t extent,
                              uint32_t start, uint32_t step);
/* Quotient toward 0 and rest, by a bound plus `more`: not 0. */
void space_ratio(struct space *space, const struct space_expr *expr, uint32_t bound, int64_t more,
                 struct space_expr *quotient, struct space_expr *rest);

/* sum += factor * expr */
void space_add(struct space_expr *sum, const struct space_expr *expr, int64_t factor);
/* floor(expr / by), by > 0, where possible without an atom. */
struct space_expr space_div(struct space *space, const struct space_expr *expr, int64_t by);
bool space_equal(const struct space_expr *a, const struct space_expr *b);
/* The least and largest value. */
void space_range(const struct space *space, const struct space_expr *expr, int64_t *low,
                 int64_t *high);

/* The sum of coordinate * stride. */
struct space_expr space_offset(const struct space_map *map, const int64_t *strides);
/* Row-major number of the element in a value of these dims. */
struct space_expr space_linear(const struct space_map *map, const int64_t *dims);
/* The coordinates in `rank` dims of the element with this row-major number; 0 where the dims have
 * no element. */
void space_unlinear(struct space *space, const struct space_expr *linear, uint32_t rank,
                    const int64_t *dims, struct space_map *out);
/* Coordinates of an operand that broadcasts, its dims aligned at the right, to the map's value. */
void space_broadcast(const struct space_map *map, uint32_t rank, const int64_t *dims,
                     struct space_map *out);

/* Rewrites the space, and with it `n` expressions that are all that is in use: atoms that nothing
 * needs go, dims are split where atoms go by it, neighbouring dims of one tag that every expression
 * treats as one become one. */
void space_settle(struct space *space, struct space_expr *const *exprs, uint32_t n);

#endif
