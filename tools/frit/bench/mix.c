/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/mix.h"

#include <stdlib.h>

const struct mix_form mix_plain = {
    .n_shapes = 2, .side = 2, .grows = 2, .steps_per_shape = 1, .steps_per_scope = 0};

/* Elements value, value + 1, ... */
static frit_tensor *counting(frit_device *device, frit_dims dims, float value)
{
    uint64_t n = 1;
    frit_tensor *made;
    float *data;

    for (int64_t d = 0; d < dims.rank; d++)
        n *= (uint64_t)dims.dim[d];
    data = malloc(n * sizeof(*data));
    for (uint64_t i = 0; data && i < n; i++)
        data[i] = value + (float)i;
    made = frit_from_host(device, FRIT_F32, dims, data, n * sizeof(*data));
    free(data);
    return made;
}

static int64_t side_of(const struct mix_form *form, uint32_t shape)
{
    return form->side + form->grows * shape;
}

static frit_tensor *square(frit_device *device, int64_t side, float value)
{
    return counting(device, FRIT_SHAPE(side, side), value);
}

void mix_weights(frit_device *device, const struct mix_form *form, frit_tensor *weights[MIX_SHAPES])
{
    for (uint32_t s = 0; s < MIX_SHAPES; s++)
        weights[s] = s < form->n_shapes ? square(device, side_of(form, s), 1) : NULL;
}

void mix_release(frit_tensor *weights[MIX_SHAPES])
{
    for (uint32_t s = 0; s < MIX_SHAPES; s++)
        frit_release(weights[s]);
}

void mix_init(struct bench_mix *mix, frit_device *device, const struct mix_form *form,
              frit_tensor *const weights[MIX_SHAPES])
{
    *mix = (struct bench_mix){.form = form, .device = device};
    for (uint32_t s = 0; s < form->n_shapes; s++) {
        int64_t side = side_of(form, s);

        mix->weight[s] = weights[s];
        mix->x[s] = square(device, side, 2);
        mix->row[s] = counting(device, FRIT_SHAPE(side), 1);
    }
}

void mix_fini(struct bench_mix *mix)
{
    for (uint32_t s = 0; s < mix->form->n_shapes; s++) {
        frit_release(mix->x[s]);
        frit_release(mix->row[s]);
    }
    for (int i = 0; i < MIX_KEPT; i++)
        frit_release(mix->kept[i]);
}

/* The eighth op is a sum along the rows; b, d, f and what is returned are released, the others
 * taken. */
static frit_tensor *mix_step(const struct bench_mix *mix, int s, frit_tensor *x, int64_t keep_dim)
{
    frit_tensor *a, *b, *c, *d, *e, *f, *g;

    a = frit_add(x, mix->weight[s]);
    b = frit_mul_f(frit_take(a), 0.5);
    c = frit_sub(b, mix->x[s]);
    frit_release(b);
    d = frit_add(frit_take(c), mix->row[s]);
    e = frit_permute(d, FRIT_AXES(1, 0));
    frit_release(d);
    f = frit_mul(frit_take(e), mix->x[s]);
    g = frit_add_f(f, 1.0);
    frit_release(f);
    return frit_sum(frit_take(g), .axes = FRIT_AXES(1), .keep = keep_dim);
}

/* The next step; its result, which is kept for a while, belongs to the enclosing scope or to the
 * mix. */
static void step_on(struct bench_mix *mix)
{
    frit_tensor **kept = &mix->kept[mix->steps % MIX_KEPT];
    int s = (int)(mix->steps / mix->form->steps_per_shape % mix->form->n_shapes);
    frit_tensor *result = mix_step(mix, s, mix->x[s], 0);

    frit_release(*kept);
    *kept = mix->form->steps_per_scope ? frit_keep(result) : result;
    mix->steps++;
}

void mix_run(struct bench_mix *mix, uint64_t steps)
{
    uint32_t in_scope = mix->form->steps_per_scope;

    for (uint64_t i = 0; i < steps;) {
        frit_scope scope = {0};

        if (in_scope)
            scope = frit_scope_begin(mix->device);
        for (uint64_t end = in_scope ? i + in_scope : steps; i < end; i++)
            step_on(mix);
        if (in_scope)
            frit_scope_end(scope);
    }
    (void)frit_flush(mix->device, NULL);
}

frit_tensor *mix_chain(struct bench_mix *mix, uint64_t steps)
{
    const int s = (int)mix->form->n_shapes - 1;
    frit_scope scope = frit_scope_begin(mix->device);
    frit_tensor *x = mix->x[s];

    for (uint64_t i = 0; i < steps; i++) {
        frit_tensor *next = mix_step(mix, s, x, 1);

        if (x != mix->x[s])
            frit_release(x);
        x = next;
    }
    frit_keep(x);
    frit_scope_end(scope);
    return x;
}
