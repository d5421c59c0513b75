/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions over a space, and the rewriting of spaces.
 *
 * floor(e / by) is taken term by term: what divides evenly leaves the floor, and where the rest
 * stays within 0 .. by - 1 nothing else is left.  Only another rest makes an atom.  Later a dim of
 * extent n with factor k in an atom's rest can be split into n * k / by times by / k: its outer
 * part then divides evenly. */
#include "lower/space/space.h"

#include <string.h>

struct space_expr space_dim(struct space *space, int64_t extent, uint32_t tag)
{
    struct space_expr expr = {0};

    if (extent == 1)
        return expr;
    if (space->n_dims == SPACE_DIMS) {
        space->full = true;
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
    const struct space_atom *atom;

    *low = 0;
    if (var < SPACE_DIMS) {
        *high = space->extent[var] - 1;
        return;
    }
    atom = &space->atom[var - SPACE_DIMS];
    *high = atom->by - 1;
    if (atom->kind == SPACE_QUOTIENT) {
        space_range(space, &atom->of, low, high);
        *low = 0;
        *high /= atom->by;
    } else if (atom->kind == SPACE_RATIO || atom->kind == SPACE_REST) {
        space_range(space, &atom->of, low, high);
        *high = *high > -*low ? *high : -*low;
        *low = -*high;
    }
}

void space_range(const struct space *space, const struct space_expr *expr, int64_t *low,
                 int64_t *high)
{
    *low = *high = expr->c;
    for (uint32_t v = 0; v < SPACE_VARS; v++) {
        int64_t k = expr->k[v], least, most;

        if (!k)
            continue;
        var_range(space, v, &least, &most);
        *low += k * (k > 0 ? least : most);
        *high += k * (k > 0 ? most : least);
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

/* The variable for an atom: an old one or a new one. */
static uint32_t atom_var(struct space *space, const struct space_atom *atom)
{
    uint32_t i;

    for (i = 0; i < space->n_atoms; i++)
        if (space->atom[i].kind == atom->kind && space->atom[i].by == atom->by &&
            space->atom[i].name == atom->name && space->atom[i].other == atom->other &&
            space_equal(&space->atom[i].of, &atom->of))
            return SPACE_DIMS + i;
    if (i == SPACE_ATOMS) {
        space->full = true;
        return SPACE_DIMS;
    }
    space->atom[space->n_atoms++] = *atom;
    return SPACE_DIMS + i;
}

static struct space_expr atom_expr(struct space *space, const struct space_atom *atom)
{
    struct space_expr expr = {0};

    expr.k[atom_var(space, atom)] = 1;
    return expr;
}

struct space_expr space_found(struct space *space, int64_t extent, uint32_t name)
{
    if (extent <= 1)
        return (struct space_expr){0};
    return atom_expr(space, &(struct space_atom){.by = extent, .kind = SPACE_FOUND, .name = name});
}

struct space_expr space_bound(struct space *space, int64_t least, int64_t most, uint32_t bound)
{
    struct space_expr expr = {0};

    if (least < most)
        expr = atom_expr(space, &(struct space_atom){.of = {.c = least},
                                                     .by = most - least + 1,
                                                     .kind = SPACE_NUMBER,
                                                     .name = bound});
    expr.c = least;
    return expr;
}

struct space_expr space_steps(struct space *space, const struct space_expr *expr, int64_t extent,
                              uint32_t start, uint32_t step)
{
    return atom_expr(space, &(struct space_atom){*expr, extent, SPACE_STEPS, start, step});
}

void space_ratio(struct space *space, const struct space_expr *expr, uint32_t bound, int64_t more,
                 struct space_expr *quotient, struct space_expr *rest)
{
    *quotient = atom_expr(space, &(struct space_atom){*expr, more, SPACE_RATIO, bound, 0});
    *rest = atom_expr(space, &(struct space_atom){*expr, more, SPACE_REST, bound, 0});
}

/* Parts of expr: quotient and rest, expr = by * quotient + rest, the rest with the terms that do
 * not divide evenly and 0 <= rest.c < by. */
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
        quotient.k[atom_var(space, &(struct space_atom){.of = rest, .by = by})] += 1;
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

/* With S the row-major stride of dim d, coordinate d is linear / S less what the dims before have:
 * dims[d] times the quotient before. */
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
    for (uint32_t i = 0; i < settle->space->n_atoms; i++)
        if (settle->space->atom[i].of.k[var])
            return true;
    return false;
}

/* Takes a variable that nothing uses out of the numbering: [var + 1, end) move down. */
static void drop_var(struct space_expr *expr, uint32_t var, uint32_t end)
{
    memmove(expr->k + var, expr->k + var + 1, (end - var - 1) * sizeof(*expr->k));
    expr->k[end - 1] = 0;
}

static void drop_atom(const struct settle *settle, uint32_t atom)
{
    struct space *space = settle->space;

    for (uint32_t i = atom + 1; i < space->n_atoms; i++)
        space->atom[i - 1] = space->atom[i];
    space->n_atoms--;
    for (uint32_t i = 0; i < settle->n; i++)
        drop_var(settle->exprs[i], SPACE_DIMS + atom, SPACE_VARS);
    for (uint32_t i = 0; i < space->n_atoms; i++)
        drop_var(&space->atom[i].of, SPACE_DIMS + atom, SPACE_VARS);
}

static void drop_unused(const struct settle *settle)
{
    for (uint32_t i = settle->space->n_atoms; i-- > 0;)
        if (!uses_var(settle, SPACE_DIMS + i))
            drop_atom(settle, i);
}

/* Whether the dims are dim * extent(dim + 1) + (dim + 1) to every expression. */
static bool treats_as_one(const struct settle *settle, uint32_t dim)
{
    const struct space *space = settle->space;
    int64_t inner = space->extent[dim + 1];

    if (space->tag[dim] != space->tag[dim + 1])
        return false;
    for (uint32_t i = 0; i < settle->n; i++)
        if (settle->exprs[i]->k[dim] != settle->exprs[i]->k[dim + 1] * inner)
            return false;
    for (uint32_t i = 0; i < space->n_atoms; i++)
        if (space->atom[i].of.k[dim] != space->atom[i].of.k[dim + 1] * inner)
            return false;
    return true;
}

static void merge(const struct settle *settle)
{
    struct space *space = settle->space;

    for (uint32_t dim = space->n_dims; dim-- > 0;) {
        if (dim + 1 >= space->n_dims || !treats_as_one(settle, dim))
            continue;
        space->extent[dim] *= space->extent[dim + 1];
        for (uint32_t i = dim + 1; i + 1 < space->n_dims; i++) {
            space->extent[i] = space->extent[i + 1];
            space->tag[i] = space->tag[i + 1];
        }
        space->n_dims--;
        for (uint32_t i = 0; i < settle->n; i++)
            drop_var(settle->exprs[i], dim, SPACE_DIMS);
        for (uint32_t i = 0; i < space->n_atoms; i++)
            drop_var(&space->atom[i].of, dim, SPACE_DIMS);
    }
}

/* A dim that makes an atom simpler when it is split, and the extent of its inner part. */
static bool splittable(const struct space *space, uint32_t *dim, int64_t *inner)
{
    for (uint32_t i = 0; i < space->n_atoms; i++)
        for (uint32_t d = 0; d < space->n_dims; d++) {
            int64_t k = space->atom[i].of.k[d], by = space->atom[i].by;

            if (space->atom[i].kind != SPACE_QUOTIENT || k <= 0 || by % k || by == k ||
                space->extent[d] % (by / k) || space->extent[d] == by / k)
                continue;
            *dim = d;
            *inner = by / k;
            return true;
        }
    return false;
}

static void open_var(struct space_expr *expr, uint32_t dim, int64_t inner)
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
        open_var(settle->exprs[i], dim, inner);
    for (uint32_t i = 0; i < space->n_atoms; i++)
        open_var(&space->atom[i].of, dim, inner);
}

/* Takes each atom's quotient again: what it became replaces it, in order, so that those that use it
 * see the new one.  A new atom may go behind those that need it, so all are made anew. */
static void divide_again(const struct settle *settle)
{
    struct space *space = settle->space;
    struct space_atom old[SPACE_ATOMS];
    struct space_expr now[SPACE_ATOMS];
    uint32_t n = space->n_atoms;

    memcpy(old, space->atom, sizeof(old));
    space->n_atoms = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct space_expr of = old[i].of;

        memset(of.k + SPACE_DIMS, 0, SPACE_ATOMS * sizeof(*of.k));
        for (uint32_t j = 0; j < i; j++)
            space_add(&of, &now[j], old[i].of.k[SPACE_DIMS + j]);
        if (old[i].kind == SPACE_QUOTIENT) {
            now[i] = space_div(space, &of, old[i].by);
        } else {
            old[i].of = of;
            now[i] = atom_expr(space, &old[i]);
        }
    }
    for (uint32_t e = 0; e < settle->n; e++) {
        struct space_expr was = *settle->exprs[e];

        memset(settle->exprs[e]->k + SPACE_DIMS, 0, SPACE_ATOMS * sizeof(*was.k));
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
        divide_again(&settle);
        drop_unused(&settle);
    }
    merge(&settle);
}
