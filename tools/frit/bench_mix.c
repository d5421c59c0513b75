/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_mix.h"

static frit_tensor *square(frit_device *device, int64_t side, float value)
{
    float data[16];

    for (int i = 0; i < 16; i++)
        data[i] = value + (float)i;
    return frit_from_host(device, FRIT_F32, FRIT_SHAPE(side, side), data,
                          (uint64_t)(side * side) * sizeof(float));
}

static int64_t side_of(int shape)
{
    return shape ? 4 : 2;
}

void mix_weights(frit_device *device, frit_tensor *weights[MIX_SHAPES])
{
    for (int s = 0; s < MIX_SHAPES; s++)
        weights[s] = square(device, side_of(s), 1);
}

void mix_init(struct bench_mix *mix, frit_device *device, frit_tensor *const weights[MIX_SHAPES])
{
    static const float row[4] = {1, 2, 3, 4};

    *mix = (struct bench_mix){.device = device};
    for (int s = 0; s < MIX_SHAPES; s++) {
        mix->weight[s] = weights[s];
        mix->x[s] = square(device, side_of(s), 2);
        mix->row[s] = frit_from_host(device, FRIT_F32, FRIT_SHAPE(side_of(s)), row,
                                     (uint64_t)side_of(s) * sizeof(float));
    }
}

void mix_fini(struct bench_mix *mix)
{
    for (int s = 0; s < MIX_SHAPES; s++) {
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

void mix_run(struct bench_mix *mix, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++, mix->steps++) {
        frit_tensor **kept = &mix->kept[mix->steps % MIX_KEPT];
        int s = (int)(mix->steps % MIX_SHAPES);
        frit_tensor *result = mix_step(mix, s, mix->x[s], 0);

        frit_release(*kept);
        *kept = result;
    }
    (void)frit_flush(mix->device);
}

frit_tensor *mix_chain(struct bench_mix *mix, uint64_t steps)
{
    const int s = MIX_SHAPES - 1;
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
