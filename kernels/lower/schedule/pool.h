/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: the plan of windows that slide over spatial dims, and the code that both layouts of lanes
 * share.
 *
 * By points, a lane has one element of the result, and a window's elements are loaded under masks.
 * By lines, lanes lie along the innermost dim of the result, so that all other dims are the same in
 * a group: there the loops over a window are from its first element inside of the operand to its
 * last one, and only blocks of lanes at the ends of a line have masks. */
#ifndef LOWER_POOL_H
#define LOWER_POOL_H

#include "lower/expr/anchor.h"
#include "lower/expr/partition.h"

enum {
    POOL_SPATIAL = 3, /* maximum number of spatial dims */
    POOL_STEP = 3,    /* from window to window, at most, that is a constant of the module */
    POOL_STATES = 2
};

enum { POOL_OUT, POOL_WINDOW }; /* tags of dims */

enum pool_fold { POOL_NONE, POOL_MEAN, POOL_MAX };

/* A window along one spatial dim: first .. end - 1 in steps of `dilation`, at most `kernel`
 * elements. */
struct pool_window {
    struct space_expr first, end;
    int64_t kernel, dilation;
    int64_t stride, padding;   /* of windows of one size; stride 0: sizes differ (adaptive) */
    bool varies;               /* the number of elements that a mean counts differs between windows:
                                  end - first, else it is `kernel` */
    int64_t extent;            /* of the operand */
    int64_t low, high;         /* by lines: the lowest and the highest `first` */
    uint32_t first_at, end_at; /* coordinates: bounds, where they are needed */
};

struct pool_schedule {
    struct expr e;
    struct kir_module *m; /* s->module */
    struct anchor anchor;
    struct space_map root; /* map of the result */
    enum pool_fold fold;
    bool by_lines;
    uint32_t dtype, rank; /* of the operand */
    uint32_t y, x;        /* the result and the operand */
    uint32_t n_windows;
    struct pool_window windows[POOL_SPATIAL];
    bool exclude_pad;
    uint32_t node;          /* an element of the operand */
    uint32_t number;        /* coordinate: the element's row-major index over the spatial dims */
    uint32_t column;        /* by lines, coordinate: along the innermost dim, if windows cross */
    uint32_t result, index; /* nodes; BLOCK_NONE: not used */
    int64_t count;          /* of points */
    int64_t groups, rounds; /* rounds: of a lane's loops */
    /* During emission: */
    uint32_t dims[SPACE_DIMS], n_dims;         /* the window's dims */
    uint32_t from[SPACE_DIMS], to[SPACE_DIMS]; /* values: of the elements that are folded */
    uint32_t counted[POOL_SPATIAL][2];         /* values: range of coordinates that a mean counts */
    uint32_t row_dim;        /* of the result, next to the innermost, if windows roll along it; else
                                BLOCK_NONE */
    uint32_t columns;        /* value: extent of the innermost dim */
    bool unrolls;            /* the loop over the innermost of `dims` is unrolled */
    int64_t tap;             /* of an unrolled loop: the number of the window's element; else -1 */
    bool masks;              /* elements may lie outside along the innermost dim */
    bool finds_nan;          /* the maximum ignores NaN; state 1 says whether there was one */
    uint32_t neutral;        /* constant: what an element outside of the operand counts as */
    uint32_t is_nan, no_nan; /* constants: of state 1 */
    uint32_t untested; /* value: an element that is still to be tested for NaN; KIR_NONE: none */
    uint32_t n_states;
    uint32_t state[POOL_STATES]; /* the sum; or the maximum and its index */
};

/* Whether element number `tap` of some windows along a dim is outside of the operand. */
static inline bool pool_crosses(const struct pool_window *w, int64_t tap)
{
    return w->low + tap * w->dilation < 0 || w->high + tap * w->dilation >= w->extent;
}

/* Whether some windows along a dim are not inside of the operand. */
static inline bool pool_any_crosses(const struct pool_window *w)
{
    return pool_crosses(w, 0) || pool_crosses(w, w->kernel - 1);
}

/* ---- pool_emit.c ---- */

/* Collects the window's dims, and emits parameters. */
void pool_parameters(struct pool_schedule *p);
/* Folds the dims of the window from number `dim` on, where the others are set: the states. */
void pool_fold(struct pool_schedule *p, uint32_t dim);
/* The states of no element. */
void pool_states_init(struct pool_schedule *p);
/* Folds the states of what comes after p->state with it; not with an index. */
void pool_combine(struct pool_schedule *p, const uint32_t *after);
/* Opens a loop that carries the states, and closes it; its results are the phis `was`. */
uint32_t pool_open_loop(struct pool_schedule *p, uint32_t from, uint32_t to, uint32_t step);
void pool_close_loop(struct pool_schedule *p, const uint32_t *was);
/* Emits the rest of the block from the states of the window, with its loads and stores under the
 * mask; KIR_NONE: there is none. */
void pool_emit_results(struct pool_schedule *p, uint32_t mask);

/* ---- pool_lines.c ---- */

/* Whether lanes along lines are worthwhile: lines are long enough, and all loads along them are of
 * vectors. */
bool pool_has_lines(const struct pool_schedule *p);
/* Emits the phase. */
frit_status pool_emit_lines(struct pool_schedule *p, frit_err *err);

/* ---- pool_roll.c ---- */

/* Whether windows have rows in common that may be folded once. */
bool pool_rolls(const struct pool_schedule *p);
/* Emits all of rows from .. to - 1 of the result. */
void pool_emit_rows(struct pool_schedule *p, uint32_t from, uint32_t to, uint32_t mask);

#endif
