/* SPDX-License-Identifier: Apache-2.0 */
/* ctc_loss and its gradient (Graves et al. 2006, equations 6 to 16), in logarithms.
 *
 * A target of n classes has 2 n + 1 states: blanks at the even ones, its classes in between.  From
 * a step to the next a path stays, goes one state on, or passes over a blank between two different
 * classes.  `before` holds the logarithm of the probability of all paths that reach a state at a
 * step, `after` of all that go on from it, both with the step's own probability. */
#include <math.h>

#include "rows.h"

struct ctc {
    struct view log_probs, targets, input_lengths, target_lengths;
    int64_t blank;
    double *before, *after; /* by step, then by state */
    /* Of one sequence. */
    int64_t item, steps, states;
};

static int64_t clipped(int64_t i, int64_t low, int64_t high)
{
    if (i < low)
        return low;
    return i < high ? i : high;
}

static int64_t length_of(const struct view *lengths, int64_t item, int64_t most)
{
    return clipped(value_get(lengths->dtype, lengths->data + item * lengths->strides[0]).sint, 0,
                   most);
}

/* The class of a state; a number that is not a class is the nearest. */
static int64_t class_of(const struct ctc *c, int64_t state)
{
    const struct view *targets = &c->targets;

    if (state % 2 == 0)
        return c->blank;
    return clipped(value_get(targets->dtype, targets->data + c->item * targets->strides[0] +
                                                 state / 2 * targets->strides[1])
                       .sint,
                   0, c->log_probs.dims[2] - 1);
}

static double log_prob(const struct ctc *c, int64_t step, int64_t class)
{
    const struct view *p = &c->log_probs;

    return value_get(p->dtype, p->data + step * p->strides[0] + c->item * p->strides[1] +
                                   class * p->strides[2])
        .real;
}

/* log(e^a + e^b). */
static double log_add(double a, double b)
{
    double larger = fmax(a, b);

    if (larger == -INFINITY)
        return isnan(a) || isnan(b) ? (double)NAN : -(double)INFINITY;
    return larger + log(exp(a - larger) + exp(b - larger));
}

static bool may_pass(const struct ctc *c, int64_t from, int64_t to)
{
    return class_of(c, from) != class_of(c, to); /* of two blanks it is the same */
}

/* One entry of a table from the row of its neighbour step; `way` is 1 for `before`, -1 for `after`:
 * where the paths come from. */
static double entry(const struct ctc *c, const double *row, int64_t state, int way)
{
    int64_t one = state - way, two = state - 2 * way;
    double sum = row[state];

    if (one >= 0 && one < c->states)
        sum = log_add(sum, row[one]);
    if (two >= 0 && two < c->states && may_pass(c, two, state))
        sum = log_add(sum, row[two]);
    return sum;
}

/* Paths begin, and in the other direction end, in one of two states. */
static void fill_table(const struct ctc *c, double *table, int way)
{
    int64_t first = way > 0 ? 0 : c->steps - 1, start = way > 0 ? 0 : c->states - 1;

    for (int64_t t = 0; t < c->steps; t++) {
        int64_t step = first + way * t;
        double *row = table + step * c->states;

        for (int64_t state = 0; state < c->states; state++) {
            bool begins = state == start || state == start + way;
            double paths = begins ? 0 : -INFINITY;

            if (t > 0)
                paths = entry(c, row - way * c->states, state, way);
            row[state] = paths + log_prob(c, step, class_of(c, state));
        }
    }
}

/* The logarithm of the target's probability; `before` is filled.  Without a step only the empty
 * target is certain. */
static double log_likelihood(const struct ctc *c)
{
    const double *last;

    if (c->steps == 0)
        return c->states == 1 ? 0 : -INFINITY;
    last = c->before + c->steps * c->states - 1;
    return c->states == 1 ? last[0] : log_add(last[0], last[-1]);
}

static struct ctc ctc_of(const struct call *call)
{
    struct ctc c = {.log_probs = call_in(call, 0),
                    .targets = call_in(call, 1),
                    .input_lengths = call_in(call, 2),
                    .target_lengths = call_in(call, 3),
                    .blank = ((const frit_attrs_ctc *)call_attrs(call))->blank,
                    .before = call_workspace(call)};

    c.after = c.before + c.log_probs.dims[0] * (2 * c.targets.dims[1] + 1);
    return c;
}

static void begin_item(struct ctc *c, int64_t item)
{
    c->item = item;
    c->steps = length_of(&c->input_lengths, item, c->log_probs.dims[0]);
    c->states = 2 * length_of(&c->target_lengths, item, c->targets.dims[1]) + 1;
    fill_table(c, c->before, 1);
}

void ref_ctc_loss(const struct call *call)
{
    const struct view y = call_out(call, 0);
    struct ctc c = ctc_of(call);

    for (int64_t item = 0; item < y.dims[0]; item++) {
        begin_item(&c, item);
        value_put(y.dtype, y.data + item * y.strides[0],
                  (union value){.real = -log_likelihood(&c)});
    }
}

/* ---- the gradient ---- */

/* The probability that the path of the target is in a state of this class at this step. */
static double occupation(const struct ctc *c, int64_t step, int64_t class, double likelihood)
{
    double sum = -INFINITY, own = log_prob(c, step, class);

    for (int64_t state = 0; state < c->states; state++)
        if (class_of(c, state) == class)
            sum = log_add(sum,
                          c->before[step * c->states + state] + c->after[step * c->states + state]);
    /* The step's own probability is in both tables. */
    return sum == -INFINITY && likelihood != -INFINITY ? 0 : exp(sum - own - likelihood);
}

static void gradient_step(const struct ctc *c, const struct view *dx, int64_t step, double grad,
                          double likelihood)
{
    for (int64_t class = 0; class < dx->dims[2]; class ++) {
        double value = 0;

        if (step < c->steps)
            value = grad * (exp(log_prob(c, step, class)) - occupation(c, step, class, likelihood));
        value_put(dx->dtype,
                  dx->data + step * dx->strides[0] + c->item * dx->strides[1] +
                      class * dx->strides[2],
                  (union value){.real = value});
    }
}

/* As it stands in front of log_softmax: e^log_prob less the occupation, 0 beyond the sequence. */
void ref_ctc_loss_backward(const struct call *call)
{
    const struct view grad = call_in(call, 4), dx = call_out(call, 0);
    struct ctc c = ctc_of(call);

    for (int64_t item = 0; item < dx.dims[1]; item++) {
        double reach = value_get(grad.dtype, grad.data + item * grad.strides[0]).real, likelihood;

        begin_item(&c, item);
        fill_table(&c, c.after, -1);
        likelihood = log_likelihood(&c);
        for (int64_t step = 0; step < dx.dims[0]; step++)
            gradient_step(&c, &dx, step, reach, likelihood);
    }
}
