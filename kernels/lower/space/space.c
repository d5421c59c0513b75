/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions over a space, and rewriting of spaces.
 *
 * floor(e / by) is computed term by term: a term whose factor is a multiple of `by` moves out of
 * the floor.  If the remaining terms stay within 0 .. by - 1, their quotient is 0; otherwise it
 * becomes a leaf.  space_settle can later split a dim of extent n and factor k, in a leaf's
 * remaining terms, into an inner part of extent by / k and an outer part: the outer part's factor
 * is then a multiple of `by`. */
#include "lower/space/space.h"

#include <string.h>

struct space_expr space_dim(struct space *space, int64_t extent, uint32_t tag)
{
    struct space_expr expr = {0};

    if (extent == 1)
        return expr;
    if (space->n_dims == SPACE_DIMS) {
        space->overflow = true;
        return expr;
    }
    space->extent[space->n_dims] = extent;
    space->tag[space->n_dims] = tag;
    expr.k[space->n_dims++] = 1;
    return expr;
}

void space_add(struct space_expr *sum, const struct space_expr *expr, int64_t factor)
{
    sum->c += factor * expr->c;
    for (uint32_t v = 0; v < SPACE_VARS; v++)
        sum->k[v] += factor * expr->k[v];
}

bool space_equal(const struct space_expr *a, const struct space_expr *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static void var_range(const struct space *space, uint32_t var, int64_t *low, int64_t *high)
{
    const struct space_leaf *leaf;

    *low = 0;
    if (var < SPACE_DIMS) {
        *high = space->extent[var] - 1;
        return;
    }
    leaf = &space->leaf[var - SPACE_DIMS];
    *high = leaf->by - 1;
    if (leaf->kind == SPACE_QUOTIENT) {
        space_range(space, &leaf->of, low, high);
        *low = 0;
        *high /= leaf->by;
    } else if (leaf->kind == SPACE_RATIO || leaf->kind == SPACE_REST) {
        space_range(space, &leaf->of, low, high);
        *high = *high > -*low ? *high : -*low;
        *low = -*high;
    }
}

void space_range(const struct space *space, const struct space_expr *expr, int64_t *low,
                 int64_t *high)
{
    *low = *high = expr->c;
    for (uint32_t v = 0; v < SPACE_VARS; v++) {
        int64_t k = expr->k[v], min, max;

        if (!k)
            continue;
        var_range(space, v, &min, &max);
        *low += k * (k > 0 ? min : max);
        *high += k * (k > 0 ? max : min);
    }
}

/* ---- division ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* The variable of this leaf, which is added unless an equal one exists. */
static uint32_t leaf_var(struct space *space, const struct space_leaf *leaf)
{
    uint32_t i;

    for (i = 0; i < space->n_leaves; i++)
        if (space->leaf[i].kind == leaf->kind && space->leaf[i].by == leaf->by &&
            space->leaf[i].source == leaf->source && space->leaf[i].step == leaf->step &&
            space_equal(&space->leaf[i].of, &leaf->of))
            return SPACE_DIMS + i;
    if (i == SPACE_LEAVES) {
        space->overflow = true;
        return SPACE_DIMS;
    }
    space->leaf[space->n_leaves++] = *leaf;
    return SPACE_DIMS + i;
}

static struct space_expr leaf_expr(struct space *space, const struct space_leaf *leaf)
{
    struct space_expr expr = {0};

    expr.k[leaf_var(space, leaf)] = 1;
    return expr;
}

struct space_expr space_loaded(struct space *space, int64_t extent, uint32_t source)
{
    if (extent <= 1)
        return (struct space_expr){0};
    return leaf_expr(space,
                     &(struct space_leaf){.by = extent, .kind = SPACE_LOADED, .source = source});
}

struct space_expr space_bound(struct space *space, int64_t min, int64_t max, uint32_t bound)
{
    struct space_expr expr = {0};

    if (min < max)
        expr = leaf_expr(space, &(struct space_leaf){.of = {.c = min},
                                                     .by = max - min + 1,
                                                     .kind = SPACE_BOUND,
                                                     .source = bound});
    expr.c = min;
    return expr;
}

struct space_expr space_steps(struct space *space, const struct space_expr *expr, int64_t extent,
                              uint32_t start, uint32_t step)
{
    return leaf_expr(space, &(struct space_leaf){*expr, extent, SPACE_STEPS, start, step});
}

void space_ratio(struct space *space, const struct space_expr *expr, uint32_t bound, int64_t more,
                 struct space_expr *quotient, struct space_expr *rest)
{
    *quotient = leaf_expr(space, &(struct space_leaf){*expr, more, SPACE_RATIO, bound, 0});
    *rest = leaf_expr(space, &(struct space_leaf){*expr, more, SPACE_REST, bound, 0});
}

/* Splits expr = by * quotient + rest: `rest` gets the terms whose factor is not a multiple of `by`,
 * with 0 <= rest.c < by. */
static void split_terms(const struct space_expr *expr, int64_t by, struct space_expr *quotient,
                        struct space_expr *rest)
{
    *quotient = *rest = (struct space_expr){0};
    quotient->c = floor_div(expr->c, by);
    rest->c = expr->c - by * quotient->c;
    for (uint32_t v = 0; v < SPACE_VARS; v++)
        if (expr->k[v] % by == 0)
            quotient->k[v] = expr->k[v] / by;
        else
            rest->k[v] = expr->k[v];
}

struct space_expr space_div(struct space *space, const struct space_expr *expr, int64_t by)
{
    struct space_expr quotient, rest;
    int64_t low, high, common = by;

    split_terms(expr, by, &quotient, &rest);
    space_range(space, &rest, &low, &high);
    if (low < 0) {
        int64_t up = -floor_div(low, by);

        rest.c += up * by;
        high += up * by;
        quotient.c -= up;
    } else if (high < by) {
        return quotient;
    }
    for (uint32_t v = 0; v < SPACE_VARS; v++)
        common = gcd(common, rest.k[v]);
    rest.c /= common;
    by /= common;
    for (uint32_t v = 0; v < SPACE_VARS; v++)
        rest.k[v] /= common;
    if (by == 1)
        space_add(&quotient, &rest, 1);
    else
        quotient.k[leaf_var(space, &(struct space_leaf){.of = rest, .by = by})] += 1;
    return quotient;
}

/* ---- maps ---- */

struct space_expr space_offset(const struct space_map *map, const int64_t *strides)
{
    struct space_expr sum = {0};

    for (uint32_t d = 0; d < map->rank; d++)
        space_add(&sum, &map->at[d], strides[d]);
    return sum;
}

struct space_expr space_linear(const struct space_map *map, const int64_t *dims)
{
    struct space_expr sum = {0};
    int64_t stride = 1;

    for (uint32_t d = map->rank; d-- > 0;) {
        space_add(&sum, &map->at[d], stride);
        stride *= dims[d];
    }
    return sum;
}

/* With S the row-major stride of dim d, coordinate d is floor(linear / S) minus dims[d] times the
 * quotient of the dim before. */
void space_unlinear(struct space *space, const struct space_expr *linear, uint32_t rank,
                    const int64_t *dims, struct space_map *out)
{
    struct space_expr before = {0};
    int64_t stride = 1;

    *out = (struct space_map){.rank = rank};
    for (uint32_t d = 0; d < rank; d++)
        stride *= dims[d];
    if (stride == 0)
        return;
    for (uint32_t d = 0; d < rank; d++) {
        struct space_expr quotient;

        stride /= dims[d];
        quotient = space_div(space, linear, stride);
        out->at[d] = quotient;
        space_add(&out->at[d], &before, -dims[d]);
        before = quotient;
    }
}

void space_broadcast(const struct space_map *map, uint32_t rank, const int64_t *dims,
                     struct space_map *out)
{
    out->rank = rank;
    for (uint32_t d = 0; d < rank; d++)
        out->at[d] = dims[d] == 1 ? (struct space_expr){0} : map->at[map->rank - rank + d];
}

/* ---- settling ---- */

struct settle {
    struct space *space;
    struct space_expr *const *exprs;
    uint32_t n;
};

static bool uses_var(const struct settle *settle, uint32_t var)
{
    for (uint32_t i = 0; i < settle->n; i++)
        if (settle->exprs[i]->k[var])
            return true;
    for (uint32_t i = 0; i < settle->space->n_leaves; i++)
        if (settle->space->leaf[i].of.k[var])
            return true;
    return false;
}

/* Removes an unused variable from the numbering: [var + 1, end) move down by one. */
static void drop_var(struct space_expr *expr, uint32_t var, uint32_t end)
{
    memmove(expr->k + var, expr->k + var + 1, (end - var - 1) * sizeof(*expr->k));
    expr->k[end - 1] = 0;
}

static void drop_leaf(const struct settle *settle, uint32_t leaf)
{
    struct space *space = settle->space;

    for (uint32_t i = leaf + 1; i < space->n_leaves; i++)
        space->leaf[i - 1] = space->leaf[i];
    space->n_leaves--;
    for (uint32_t i = 0; i < settle->n; i++)
        drop_var(settle->exprs[i], SPACE_DIMS + leaf, SPACE_VARS);
    for (uint32_t i = 0; i < space->n_leaves; i++)
        drop_var(&space->leaf[i].of, SPACE_DIMS + leaf, SPACE_VARS);
}

static void drop_unused(const struct settle *settle)
{
    for (uint32_t i = settle->space->n_leaves; i-- > 0;)
        if (!uses_var(settle, SPACE_DIMS + i))
            drop_leaf(settle, i);
}

/* Whether every expression has `dim` and `dim` + 1 only as dim * extent(dim + 1) + (dim + 1). */
static bool are_contiguous(const struct settle *settle, uint32_t dim)
{
    const struct space *space = settle->space;
    int64_t inner = space->extent[dim + 1];

    if (space->tag[dim] != space->tag[dim + 1])
        return false;
    for (uint32_t i = 0; i < settle->n; i++)
        if (settle->exprs[i]->k[dim] != settle->exprs[i]->k[dim + 1] * inner)
            return false;
    for (uint32_t i = 0; i < space->n_leaves; i++)
        if (space->leaf[i].of.k[dim] != space->leaf[i].of.k[dim + 1] * inner)
            return false;
    return true;
}

static void merge(const struct settle *settle)
{
    struct space *space = settle->space;

    for (uint32_t dim = space->n_dims; dim-- > 0;) {
        if (dim + 1 >= space->n_dims || !are_contiguous(settle, dim))
            continue;
        space->extent[dim] *= space->extent[dim + 1];
        for (uint32_t i = dim + 1; i + 1 < space->n_dims; i++) {
            space->extent[i] = space->extent[i + 1];
            space->tag[i] = space->tag[i + 1];
        }
        space->n_dims--;
        for (uint32_t i = 0; i < settle->n; i++)
            drop_var(settle->exprs[i], dim, SPACE_DIMS);
        for (uint32_t i = 0; i < space->n_leaves; i++)
            drop_var(&space->leaf[i].of, dim, SPACE_DIMS);
    }
}

/* Finds a dim whose split simplifies a leaf, and the extent of its inner part. */
static bool splittable(const struct space *space, uint32_t *dim, int64_t *inner)
{
    for (uint32_t i = 0; i < space->n_leaves; i++)
        for (uint32_t d = 0; d < space->n_dims; d++) {
            int64_t k = space->leaf[i].of.k[d], by = space->leaf[i].by;

            if (space->leaf[i].kind != SPACE_QUOTIENT || k <= 0 || by % k || by == k ||
                space->extent[d] % (by / k) || space->extent[d] == by / k)
                continue;
            *dim = d;
            *inner = by / k;
            return true;
        }
    return false;
}

static void insert_var(struct space_expr *expr, uint32_t dim, int64_t inner)
{
    memmove(expr->k + dim + 1, expr->k + dim, (SPACE_DIMS - dim - 1) * sizeof(*expr->k));
    expr->k[dim] *= inner;
}

static void split(const struct settle *settle, uint32_t dim, int64_t inner)
{
    struct space *space = settle->space;

    for (uint32_t i = space->n_dims++; i > dim; i--) {
        space->extent[i] = space->extent[i - 1];
        space->tag[i] = space->tag[i - 1];
    }
    space->extent[dim] /= inner;
    space->extent[dim + 1] = inner;
    for (uint32_t i = 0; i < settle->n; i++)
        insert_var(settle->exprs[i], dim, inner);
    for (uint32_t i = 0; i < space->n_leaves; i++)
        insert_var(&space->leaf[i].of, dim, inner);
}

/* Divides again for each leaf and replaces the leaf by the result, in order, so that later leaves
 * see the replaced ones.  Since a division may append a leaf after one that needs it, the list is
 * rebuilt. */
static void redivide_leaves(const struct settle *settle)
{
    struct space *space = settle->space;
    struct space_leaf old[SPACE_LEAVES];
    struct space_expr now[SPACE_LEAVES];
    uint32_t n = space->n_leaves;

    memcpy(old, space->leaf, sizeof(old));
    space->n_leaves = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct space_expr of = old[i].of;

        memset(of.k + SPACE_DIMS, 0, SPACE_LEAVES * sizeof(*of.k));
        for (uint32_t j = 0; j < i; j++)
            space_add(&of, &now[j], old[i].of.k[SPACE_DIMS + j]);
        if (old[i].kind == SPACE_QUOTIENT) {
            now[i] = space_div(space, &of, old[i].by);
        } else {
            old[i].of = of;
            now[i] = leaf_expr(space, &old[i]);
        }
    }
    for (uint32_t e = 0; e < settle->n; e++) {
        struct space_expr was = *settle->exprs[e];

        memset(settle->exprs[e]->k + SPACE_DIMS, 0, SPACE_LEAVES * sizeof(*was.k));
        for (uint32_t j = 0; j < n; j++)
            space_add(settle->exprs[e], &now[j], was.k[SPACE_DIMS + j]);
    }
}

void space_settle(struct space *space, struct space_expr *const *exprs, uint32_t n)
{
    const struct settle settle = {space, exprs, n};
    uint32_t dim;
    int64_t inner;

    drop_unused(&settle);
    merge(&settle);
    while (space->n_dims < SPACE_DIMS && splittable(space, &dim, &inner)) {
        split(&settle, dim, inner);
        redivide_leaves(&settle);
        drop_unused(&settle);
    }
    merge(&settle);
}
