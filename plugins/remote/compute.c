/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Element by element.  An element of a result is stored after all that it is made of was loaded, so
 * that a result may take the memory of an input that lies as it does. */
#include "compute.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Where the nest is. */
struct place {
    int64_t index[WIRE_RANK];
    char *at[WIRE_ARGS];
};

static double apply(uint32_t function, double a, double b)
{
    switch (function) {
    case WIRE_ADD:
        return a + b;
    case WIRE_SUB:
        return a - b;
    case WIRE_MUL:
        return a * b;
    case WIRE_DIV:
        return a / b;
    case WIRE_MAXIMUM: /* NaN wins, ties take the first */
        return isnan(a) || a >= b ? a : b;
    case WIRE_EXP:
        return exp(a);
    case WIRE_ERF:
        return erf(a);
    default:
        return a;
    }
}

/* Goes to the next index of the dims [first, end), the last the fastest; false: that was the last,
 * and the place is at the first again. */
static bool step(const struct nest *nest, struct place *place, uint32_t first, uint32_t end)
{
    const struct wire_launch *launch = &nest->launch;

    for (uint32_t d = end; d-- > first;) {
        bool wraps = ++place->index[d] == launch->dims[d];
        int64_t by = wraps ? 1 - launch->dims[d] : 1;

        for (uint32_t i = 0; i < launch->n_in + launch->n_out; i++)
            place->at[i] += by * nest->args[i].strides[d];
        if (!wraps)
            return true;
        place->index[d] = 0;
    }
    return false;
}

/* All values of an element. */
static void run_ops(const struct nest *nest, const struct place *place, double *values)
{
    const bool rounds = nest->launch.n_kept == nest->launch.rank;

    for (uint32_t i = 0; i < nest->launch.n_in; i++) {
        float element;

        memcpy(&element, place->at[i], sizeof element);
        values[nest->args[i].value] = (double)element;
    }
    for (uint32_t k = 0; k < nest->launch.n_ops; k++) {
        const struct wire_op *op = &nest->ops[k];
        double in[2], out;

        for (int i = 0; i < 2; i++)
            in[i] = op->in[i] == WIRE_SCALAR ? op->scalar[i] : values[op->in[i]];
        out = apply(op->function, in[0], in[1]);
        values[op->out] = rounds ? (double)(float)out : out;
    }
}

static void store(const struct nest *nest, const struct place *place, const double *values)
{
    for (uint32_t i = nest->launch.n_in; i < nest->launch.n_in + nest->launch.n_out; i++) {
        float element = (float)values[nest->args[i].value];

        memcpy(place->at[i], &element, sizeof element);
    }
}

/* True: some dim of [first, end) has no index. */
static bool is_empty(const struct wire_launch *launch, uint32_t first, uint32_t end)
{
    for (uint32_t d = first; d < end; d++)
        if (launch->dims[d] == 0)
            return true;
    return false;
}

void compute(const struct nest *nest)
{
    const struct wire_launch *launch = &nest->launch;
    const bool sums = launch->n_kept < launch->rank;
    const bool nothing = is_empty(launch, launch->n_kept, launch->rank);
    struct place place = {{0}, {0}};
    double values[WIRE_VALUES] = {0};

    memcpy(place.at, nest->data, sizeof place.at);
    if (is_empty(launch, 0, launch->n_kept))
        return;
    do {
        double sum[WIRE_VALUES] = {0};

        while (sums && !nothing) {
            run_ops(nest, &place, values);
            for (uint32_t v = 0; v < launch->n_values; v++)
                sum[v] += values[v];
            if (!step(nest, &place, launch->n_kept, launch->rank))
                break;
        }
        if (!sums)
            run_ops(nest, &place, values);
        store(nest, &place, sums ? sum : values);
    } while (step(nest, &place, 0, launch->n_kept));
}
