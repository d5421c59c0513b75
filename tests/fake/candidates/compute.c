/* SPDX-License-Identifier: Apache-2.0 */
/* The results, and what is wrong with those of some candidates.  Sums are added up in f64; those of
 * `reordered` in f32, in LANES partial sums. */
#include <math.h>
#include <string.h>

#include "candidates.h"
#include "util/walk.h"

enum { LANES = 8, BESIDE_BYTES = 4 };

/* ---- arguments ---- */

static int64_t elements(const frit_arg *arg)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < arg->rank; d++)
        count *= arg->dims[d];
    return count;
}

uint64_t compute_bytes(const frit_launch *launch)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < launch->n_args; i++) {
        const frit_arg *arg = frit_arg_at(launch, i);

        bytes += arg->dtype ? sizeof(float) * (uint64_t)elements(arg) : 0;
    }
    return bytes;
}

int64_t compute_size(const frit_launch *launch)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < launch->n_args; i++) {
        const frit_arg *arg = frit_arg_at(launch, i);
        int64_t count = arg->dtype ? elements(arg) : 0;

        most = count > most ? count : most;
    }
    return most;
}

bool compute_is_in_place(const frit_launch *launch)
{
    const frit_arg *out = frit_arg_at(launch, launch->n_args - 1);

    for (uint32_t i = 0; i + 1 < launch->n_args; i++) {
        const frit_arg *in = frit_arg_at(launch, i);

        if (in->memory && in->memory == out->memory && in->offset == out->offset)
            return true;
    }
    return false;
}

/* Bytes from one element to the next along dim `d` of a result of `rank`; 0 where it broadcasts. */
static int64_t step_along(const frit_arg *arg, uint32_t rank, uint32_t d)
{
    const int64_t own = (int64_t)d - rank + arg->rank;

    if (own < 0 || arg->dims[own] == 1)
        return 0;
    return arg->strides[own] * (int64_t)sizeof(float);
}

/* Whether the elements lie one after the other. */
static bool is_dense(const frit_arg *arg)
{
    int64_t stride = 1;

    for (uint32_t d = arg->rank; d-- > 0;) {
        if (arg->dims[d] != 1 && arg->strides[d] != stride)
            return false;
        stride *= arg->dims[d];
    }
    return true;
}

static float load(const char *at)
{
    float value;

    memcpy(&value, at, sizeof value);
    return value;
}

/* A value as the candidate writes it. */
static void store(char *at, float value, enum kind kind, bool in_place)
{
    if (kind == KIND_class_lies)
        value = nextafterf(value, 0);
    if (kind == KIND_reduced || kind == KIND_far)
        value *= 1 + 0x1p-9f;
    if (kind == KIND_wrong_in_place && in_place)
        value += 1;
    memcpy(at, &value, sizeof value);
}

/* ---- add, mul, div and copy ---- */

float compute_scalar(const frit_launch *launch, uint32_t i)
{
    double wide;

    memcpy(&wide, &launch->scalars[i].bits, sizeof wide);
    return (float)wide;
}

static float combine(uint32_t op, const float value[2])
{
    if (op == FRIT_OP_add)
        return value[0] + value[1];
    if (op == FRIT_OP_div)
        return value[0] / value[1];
    return op == FRIT_OP_mul ? value[0] * value[1] : value[0];
}

/* The results where all arguments are dense and of one size, without a walk.  False: they are not.
 */
static bool map_dense(const struct program *program, const frit_launch *launch, enum kind kind)
{
    const uint32_t n_in = launch->n_args - 1;
    const frit_arg *out = frit_arg_at(launch, n_in);
    const bool in_place = compute_is_in_place(launch);
    const int64_t n = elements(out), bytes = (int64_t)sizeof(float);

    for (uint32_t k = 0; k <= n_in; k++) {
        const frit_arg *arg = frit_arg_at(launch, k);

        if (!arg->dtype || elements(arg) != n || !is_dense(arg))
            return false;
    }
    for (int64_t i = 0; i < n; i++) {
        float value[2] = {0, 0};

        for (uint32_t k = 0; k < n_in; k++)
            value[k] = load(hosted_element(frit_arg_at(launch, k)) + i * bytes);
        store(hosted_element(out) + i * bytes, combine(program->op, value), kind, in_place);
    }
    return true;
}

static void compute_map(const struct program *program, const frit_launch *launch, enum kind kind)
{
    const uint32_t n_in = launch->n_args - 1;
    const frit_arg *out = frit_arg_at(launch, n_in);
    const bool in_place = compute_is_in_place(launch);
    float value[2] = {0, 0};
    const char *from[2] = {NULL, NULL};
    uint32_t scalars = 0;
    struct walk walk;

    if (map_dense(program, launch, kind))
        return;
    walk_init(&walk, WALK_ELEMENTS, 3);
    for (uint32_t k = 0; k < n_in; k++) {
        const frit_arg *in = frit_arg_at(launch, k);

        from[k] = in->dtype ? hosted_element(in) : NULL;
        if (!in->dtype)
            value[k] = compute_scalar(launch, scalars++);
    }
    for (uint32_t d = 0; d < out->rank; d++) {
        int64_t steps[3] = {0, 0, step_along(out, out->rank, d)};

        for (uint32_t k = 0; k < n_in; k++)
            if (from[k])
                steps[k] = step_along(frit_arg_at(launch, k), out->rank, d);
        walk_push(&walk, out->dims[d], steps);
    }
    for (bool more = walk_first(&walk); more; more = walk_next(&walk)) {
        for (uint32_t k = 0; k < n_in; k++)
            if (from[k])
                value[k] = load(from[k] + walk.at[k]);
        store(hosted_element(out) + walk.at[2], combine(program->op, value), kind, in_place);
    }
}

/* ---- sum and mean ---- */

static float add_up(struct walk *terms, const char *from, bool reordered)
{
    float lanes[LANES] = {0}, total = 0;
    double sum = 0;
    uint64_t n = 0;

    for (bool more = walk_first(terms); more; more = walk_next(terms)) {
        float term = load(from + terms->at[0]);

        sum += (double)term;
        lanes[n++ % LANES] += term;
    }
    for (uint32_t i = 0; i < LANES; i++)
        total += lanes[i];
    return reordered ? total : (float)sum;
}

/* The same sum, without a walk. */
static void sum_all(const frit_arg *x, const frit_arg *y, enum kind kind)
{
    const char *from = hosted_element(x);
    double sum = 0;

    for (int64_t i = 0, n = elements(x); i < n; i++)
        sum += (double)load(from + i * (int64_t)sizeof(float));
    store(hosted_element(y), (float)sum, kind, false);
}

static void compute_sum(const struct program *program, const frit_launch *launch, enum kind kind)
{
    const frit_arg *x = frit_arg_at(launch, 0), *y = frit_arg_at(launch, 1);
    float count = 1;
    struct walk results, terms;
    uint32_t own = 0;

    if (program->op == FRIT_OP_sum && kind != KIND_reordered && elements(y) == 1 && is_dense(x)) {
        sum_all(x, y, kind);
        return;
    }
    walk_init(&results, WALK_ELEMENTS, 2);
    walk_init(&terms, WALK_ELEMENTS, 1);
    if (program->op == FRIT_OP_mean)
        count = (float)elements(x) / (float)elements(y);
    for (uint32_t d = 0; d < x->rank; d++) {
        int64_t step = step_along(x, x->rank, d);

        if (program->is_reduced[d])
            walk_push(&terms, x->dims[d], &step);
        else
            walk_push(&results, x->dims[d], (int64_t[]){step_along(y, y->rank, own), step});
        own += !program->is_reduced[d] || program->keeps;
    }
    for (bool more = walk_first(&results); more; more = walk_next(&results))
        store(hosted_element(y) + results.at[0],
              add_up(&terms, hosted_element(x) + results.at[1], kind == KIND_reordered) / count,
              kind, false);
}

/* ---- what is wrong ---- */

static void write_beside(const frit_arg *out, int64_t offset)
{
    static const char bytes[BESIDE_BYTES] = {0x13, 0x57, 0x24, 0x68};

    if (out->memory)
        memcpy(hosted_element(out) - out->origin + offset, bytes, sizeof bytes);
}

void compute(const struct program *program, const frit_launch *launch, enum kind kind)
{
    const frit_arg *out = frit_arg_at(launch, launch->n_args - 1);

    if (kind == KIND_silent || !out->memory)
        return;
    if (kind == KIND_varies)
        kind = atomic_load(&program->instance->launches[kind]) % 2 ? KIND_class_lies : KIND_first;
    if (program->n_steps)
        fused_compute(program, launch);
    else if (program->reduces)
        compute_sum(program, launch, kind);
    else
        compute_map(program, launch, kind);
    if (kind == KIND_wrong_odd && compute_size(launch) % 2)
        store(hosted_element(out), load(hosted_element(out)) + 1, kind, false);
    if (kind == KIND_beyond)
        write_beside(out, (int64_t)out->extent);
    if (kind == KIND_before)
        write_beside(out, -BESIDE_BYTES);
}
