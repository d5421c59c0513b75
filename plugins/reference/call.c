/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a launch as the rows see them.  Arguments have a stride that the host chooses,
 * scalars in the order of the row's scalar operands with the REAL attributes after them. */
#include "call.h"

#include <string.h>

#include "reference.h"
#include "util/memory.h"
#include "workspace.h"

uint32_t call_n_in(const struct call *call)
{
    return call->program->n_in;
}

static struct view view_of(const struct call *call, uint32_t argument)
{
    const frit_arg *arg = frit_arg_at(call->launch, argument);
    struct view view = {.data = hosted_element(arg), .dtype = arg->dtype, .rank = arg->rank};

    /* A tensor without elements may have no memory.  Positions are computed for it all the same,
     * from an address that is never read. */
    if (!view.data && arg->dtype != FRIT_NO_DTYPE)
        view.data = (char *)(uintptr_t)arg;
    memcpy(view.dims, arg->dims, sizeof view.dims);
    for (uint32_t d = 0; d < arg->rank; d++)
        view.strides[d] = arg->strides[d] * value_size(arg->dtype);
    return view;
}

struct view call_in(const struct call *call, uint32_t i)
{
    return view_of(call, i);
}

struct view call_out(const struct call *call, uint32_t k)
{
    return view_of(call, call->program->n_in + k);
}

uint32_t call_dtype(const struct call *call, uint32_t i)
{
    return call->program->operand_dtype[i];
}

union value call_scalar(const struct call *call, uint32_t i)
{
    uint32_t slot = 0;
    union value value;

    for (uint32_t before = 0; before < i; before++)
        slot += call->program->operand_kind[before] == FRIT_OPERAND_SCALAR;
    memcpy(&value, &call->launch->scalars[slot].bits, sizeof value);
    return value;
}

/* Launch scalars after the scalar operands. */
static uint64_t scalar_bits(const struct call *call, uint32_t k)
{
    return call->launch->scalars[call->program->n_scalars + k].bits;
}

double call_real(const struct call *call, uint32_t k)
{
    union value value = {.uint = scalar_bits(call, k)};

    return value.real;
}

uint64_t call_seed(const struct call *call)
{
    return scalar_bits(call, 0);
}

uint64_t call_counter(const struct call *call)
{
    return scalar_bits(call, 1);
}

const int64_t *call_bounds(const struct call *call)
{
    return call->launch->bounds;
}

const void *call_attrs(const struct call *call)
{
    return call->program->attrs;
}

void *call_workspace(const struct call *call)
{
    const frit_launch *launch = call->launch;

    return launch->spec->workspace_bytes ? launch->workspace->data + launch->workspace_offset
                                         : NULL;
}

struct view call_wide(const struct call *call, uint32_t k)
{
    struct view wide = call_out(call, k);
    int64_t dense = sizeof(double);
    char *at = call_workspace(call);

    if (!workspace_wide(wide.dtype, wide.rank, wide.dims))
        return wide;
    for (uint32_t before = 0; before < k; before++) {
        struct view other = call_out(call, before);

        at += workspace_wide(other.dtype, other.rank, other.dims);
    }
    wide.data = at;
    wide.dtype = FRIT_F64;
    for (uint32_t d = wide.rank; d-- > 0; dense *= wide.dims[d])
        wide.strides[d] = dense;
    return wide;
}

struct view call_sums(const struct call *call, uint32_t k)
{
    struct view sums = call_wide(call, k);

    if (sums.data)
        view_fill(&sums, (union value){.uint = 0}); /* the 0 of every kind */
    return sums;
}

void call_round(const struct call *call, uint32_t k, const struct view *wide)
{
    struct view out = call_out(call, k);

    if (wide->data != out.data)
        view_convert(&out, wide);
}

/* ---- views ---- */

int64_t view_stride(const struct view *view, uint32_t rank, uint32_t d)
{
    uint32_t own = d + view->rank - rank; /* wraps where the view has no such dim */

    return own < view->rank && view->dims[own] != 1 ? view->strides[own] : 0;
}

struct view view_without(const struct view *view, uint32_t axis)
{
    struct view less = *view;
    size_t after = view->rank - axis - 1;

    memmove(&less.dims[axis], &view->dims[axis + 1], after * sizeof *less.dims);
    memmove(&less.strides[axis], &view->strides[axis + 1], after * sizeof *less.strides);
    less.rank--;
    return less;
}

struct view view_tail(const struct view *view, uint32_t first)
{
    struct view tail = *view;

    for (uint32_t axis = first; axis-- > 0;)
        tail = view_without(&tail, axis);
    return tail;
}

void view_walk(struct walk *walk, enum walk_mode mode, const struct view *const *views, uint32_t n)
{
    const struct view *space = views[0];

    walk_init(walk, mode, n);
    for (uint32_t d = 0; d < space->rank; d++) {
        int64_t strides[WALK_OPERANDS];

        for (uint32_t k = 0; k < n; k++)
            strides[k] = view_stride(views[k], space->rank, d);
        walk_push(walk, space->dims[d], strides);
    }
}

void view_copy(const struct view *to, const struct view *from)
{
    const struct view *views[] = {to, from};
    int64_t size = value_size(to->dtype);
    struct walk walk;

    view_walk(&walk, WALK_ROWS, views, 2);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        value_move(size, to->data + walk.at[0], walk.step[0], from->data + walk.at[1], walk.step[1],
                   walk.count);
}

void view_convert(const struct view *to, const struct view *from)
{
    const struct view *views[] = {to, from};
    union value lanes[VALUE_LANES];
    struct walk walk;

    view_walk(&walk, WALK_ROWS, views, 2);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        for (int64_t done = 0, n; done < walk.count; done += n) {
            n = walk.count - done < VALUE_LANES ? walk.count - done : VALUE_LANES;
            value_load(from->dtype, from->data + walk.at[1] + done * walk.step[1], walk.step[1], n,
                       lanes);
            value_store(to->dtype, to->data + walk.at[0] + done * walk.step[0], walk.step[0], n,
                        lanes);
        }
}

void view_fill(const struct view *to, union value value)
{
    char element[8];
    struct view from = {.data = element, .dtype = to->dtype};

    value_put(to->dtype, element, value);
    view_copy(to, &from);
}
