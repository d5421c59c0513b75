/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions.  The dims that stay are walked outside, element by element of the result; the reduced
 * ones inside, in row-major order. */
#include <math.h>

#include "combine.h"
#include "rows.h"

struct reduction {
    struct view x, y;
    struct walk outer; /* operands x, y */
    struct walk inner; /* operand x */
};

static bool has_axis(const frit_axes *axes, uint32_t axis)
{
    for (int64_t i = 0; i < axes->count; i++)
        if (axes->axis[i] == axis)
            return true;
    return false;
}

static void reduce_init(struct reduction *reduction, const struct call *call)
{
    const frit_attrs_reduce *attrs = call_attrs(call);
    struct view *x = &reduction->x, *y = &reduction->y;
    uint32_t left = 0; /* next dim of y */

    *x = call_in(call, 0);
    *y = call_out(call, 0);
    walk_init(&reduction->outer, WALK_ELEMENTS, 2);
    walk_init(&reduction->inner, WALK_ROWS, 1);
    for (uint32_t d = 0; d < x->rank; d++) {
        if (has_axis(&attrs->axes, d)) {
            walk_push(&reduction->inner, x->dims[d], &x->strides[d]);
            left += attrs->keep != 0;
        } else {
            walk_push(&reduction->outer, x->dims[d], (int64_t[]){x->strides[d], y->strides[left]});
            left++;
        }
    }
}

/* ---- folding ---- */

/* A fold takes `n` values into what has been gathered so far. */
struct fold {
    union value gathered;
    union value centre; /* of var */
    combine_fn combine;
    uint32_t dtype;
    int64_t count;
    int64_t place; /* of argmax and argmin */
};

typedef void (*fold_fn)(struct fold *fold, const union value *lanes, int64_t n);

/* Folds the elements of x that belong to the present element of y. */
static void fold_inner(struct reduction *reduction, fold_fn fn, struct fold *fold)
{
    const char *from = reduction->x.data + reduction->outer.at[0];
    struct walk *inner = &reduction->inner;
    union value lanes[VALUE_LANES];

    for (bool more = walk_first(inner); more; more = walk_next(inner))
        for (int64_t done = 0, n; done < inner->count; done += n) {
            n = inner->count - done < VALUE_LANES ? inner->count - done : VALUE_LANES;
            value_load(reduction->x.dtype, from + inner->at[0] + done * inner->step[0],
                       inner->step[0], n, lanes);
            fn(fold, lanes, n);
        }
}

static void fold_combine(struct fold *fold, const union value *lanes, int64_t n)
{
    fold->count += n;
    for (int64_t i = 0; i < n; i++)
        fold->gathered = fold->combine(fold->gathered, lanes[i]);
}

static void fold_squares(struct fold *fold, const union value *lanes, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double distance = lanes[i].real - fold->centre.real;

        fold->gathered.real += distance * distance;
    }
}

/* The absolute value of an integer wraps in its own type, as in the row abs. */
static void fold_abs(struct fold *fold, const union value *lanes, int64_t n)
{
    enum value_kind kind = value_kind(fold->dtype);

    for (int64_t i = 0; i < n; i++) {
        union value value = lanes[i];

        if (kind == VALUE_REAL)
            value.real = fabs(value.real);
        else if (kind == VALUE_SINT && value.sint < 0)
            value = value_round(fold->dtype, (union value){.uint = 0 - value.uint});
        fold->gathered = fold->combine(fold->gathered, value);
    }
}

/* Gathers how many values are not 0. */
static void fold_nonzero(struct fold *fold, const union value *lanes, int64_t n)
{
    bool real = value_kind(fold->dtype) == VALUE_REAL;

    fold->count += n;
    for (int64_t i = 0; i < n; i++)
        fold->gathered.uint += real ? lanes[i].real != 0 : lanes[i].uint != 0;
}

/* ---- rows ---- */

typedef union value (*finish_fn)(const struct fold *fold);

static union value finish_gathered(const struct fold *fold)
{
    return fold->gathered;
}

static void reduce(const struct call *call, enum combine how, fold_fn fn, finish_fn finish)
{
    struct reduction reduction;
    enum value_kind kind;

    reduce_init(&reduction, call);
    kind = value_kind(reduction.x.dtype);
    for (bool more = walk_first(&reduction.outer); more; more = walk_next(&reduction.outer)) {
        struct fold fold = {.gathered = combine_start(how, kind),
                            .combine = combine_of(how, kind),
                            .dtype = reduction.x.dtype};

        fold_inner(&reduction, fn, &fold);
        value_put(reduction.y.dtype, reduction.y.data + reduction.outer.at[1], finish(&fold));
    }
}

void ref_sum(const struct call *call)
{
    reduce(call, COMBINE_ADD, fold_combine, finish_gathered);
}

void ref_prod(const struct call *call)
{
    reduce(call, COMBINE_MUL, fold_combine, finish_gathered);
}

void ref_max(const struct call *call)
{
    reduce(call, COMBINE_MAX, fold_combine, finish_gathered);
}

void ref_min(const struct call *call)
{
    reduce(call, COMBINE_MIN, fold_combine, finish_gathered);
}

void ref_max_abs(const struct call *call)
{
    reduce(call, COMBINE_MAX, fold_abs, finish_gathered);
}

static union value finish_mean(const struct fold *fold)
{
    return (union value){.real = fold->gathered.real / (double)fold->count};
}

void ref_mean(const struct call *call)
{
    reduce(call, COMBINE_ADD, fold_combine, finish_mean);
}

static union value finish_any(const struct fold *fold)
{
    return (union value){.uint = fold->gathered.uint > 0};
}

static union value finish_all(const struct fold *fold)
{
    return (union value){.uint = fold->gathered.uint == (uint64_t)fold->count};
}

/* All bits 0 is the number 0 of every kind. */
void ref_any(const struct call *call)
{
    reduce(call, COMBINE_ADD, fold_nonzero, finish_any);
}

void ref_all(const struct call *call)
{
    reduce(call, COMBINE_ADD, fold_nonzero, finish_all);
}

void ref_var(const struct call *call)
{
    struct reduction reduction;

    reduce_init(&reduction, call);
    for (bool more = walk_first(&reduction.outer); more; more = walk_next(&reduction.outer)) {
        struct fold fold = {.combine = combine_of(COMBINE_ADD, VALUE_REAL)};

        fold_inner(&reduction, fold_combine, &fold);
        fold.centre = finish_mean(&fold);
        fold.gathered.real = 0;
        fold_inner(&reduction, fold_squares, &fold);
        value_put(reduction.y.dtype, reduction.y.data + reduction.outer.at[1], finish_mean(&fold));
    }
}

/* ---- places of extremes ---- */

static bool same(union value a, union value b, enum value_kind kind)
{
    if (kind == VALUE_REAL)
        return a.real == b.real || isnan(a.real);
    return a.uint == b.uint;
}

/* Where the running extreme changes, the place is kept; of all NaNs only the first changes it. */
static void fold_place(struct fold *fold, const union value *lanes, int64_t n)
{
    enum value_kind kind = value_kind(fold->dtype);

    for (int64_t i = 0; i < n; i++) {
        union value next = fold->combine(fold->gathered, lanes[i]);

        if (!same(fold->gathered, next, kind))
            fold->place = fold->count + i;
        fold->gathered = next;
    }
    fold->count += n;
}

static union value finish_place(const struct fold *fold)
{
    return (union value){.sint = fold->place};
}

void ref_argmax(const struct call *call)
{
    reduce(call, COMBINE_MAX, fold_place, finish_place);
}

void ref_argmin(const struct call *call)
{
    reduce(call, COMBINE_MIN, fold_place, finish_place);
}
