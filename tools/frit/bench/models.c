/* SPDX-License-Identifier: Apache-2.0 */
/* Attention alone, and steps of a transformer as in tests/bench/transformer.c: pre-norm blocks with
 * causal attention, each with weights of its own, written op by op.  The figure counts the
 * operations of products and of attention. */
#include "bench/models.h"

#include <math.h>

#include "bench/bench.h"
#include "bench/device.h"
#include "bench/products.h"

enum { MAX_LAYERS = 12, LAYER_TENSORS = 12 };
enum { WEIGHT_FLOPS = 32 /* making one takes as long */ };

/* Of a layer. */
enum {
    NORM_1,
    SHIFT_1,
    QKV,
    QKV_BIAS,
    OUT,
    OUT_BIAS,
    NORM_2,
    SHIFT_2,
    UP,
    UP_BIAS,
    DOWN,
    DOWN_BIAS
};

/* Without layers: attention alone, on heads of `width`. */
struct model {
    const char *name;
    const char *what;
    int64_t batch, tokens, heads, width, layers;
    uint32_t dtype;
    bool causal;
};

static const struct model models[] = {
    {"attention", "12 heads of 64, 512 tokens f32", 1, 512, 12, 64, 0, FRIT_F32, false},
    {"attention-causal", "the same, causal", 1, 512, 12, 64, 0, FRIT_F32, true},
    {"attention-bf16", "8 x 16 heads of 64, 2048 tokens bf16, causal", 8, 2048, 16, 64, 0,
     FRIT_BF16, true},
    {"transformer-256", "4 layers of 256, 128 tokens f32", 1, 128, 4, 64, 4, FRIT_F32, true},
    {"transformer-256-1", "the same, 1 token", 1, 1, 4, 64, 4, FRIT_F32, true},
    {"transformer-768", "12 layers of 768, 128 tokens f32", 1, 128, 12, 64, 12, FRIT_F32, true},
    {"transformer-768-1", "the same, 1 token", 1, 1, 12, 64, 12, FRIT_F32, true},
    {"transformer-bf16", "4 layers of 768, 8 x 1024 tokens bf16", 8, 1024, 12, 64, 4, FRIT_BF16,
     true},
};

enum { N_MODELS = sizeof(models) / sizeof(models[0]) };

const char *bench_model_at(size_t index)
{
    return index < N_MODELS ? models[index].name : NULL;
}

static double flops_of(const struct model *model)
{
    double rows = (double)(model->batch * model->tokens), d = (double)(model->heads * model->width);
    double attention = 4 * rows * d * (double)model->tokens / (model->causal ? 2 : 1);

    return model->layers ? (double)model->layers * (24 * rows * d * d + attention) : attention;
}

/* How large the row is, as an amount of operations. */
static double size_of(const struct model *model)
{
    double d = (double)(model->heads * model->width);

    return flops_of(model) + WEIGHT_FLOPS * 12 * (double)model->layers * d * d;
}

/* ---- tensors ---- */

struct tensors {
    const struct model *model;
    frit_tensor *x, *k, *v; /* attention alone: x is q */
    frit_tensor *layer[MAX_LAYERS][LAYER_TENSORS];
};

static frit_tensor *uniform(frit_device *device, const struct model *model, frit_dims dims,
                            double middle, double width)
{
    return frit_random_uniform(device, model->dtype, dims, middle - width / 2, middle + width / 2);
}

static void make_layer(frit_device *device, const struct model *model, frit_tensor **w)
{
    int64_t d = model->heads * model->width;
    const struct {
        frit_dims dims;
        double middle, width;
    } rows[LAYER_TENSORS] = {
        [NORM_1] = {FRIT_SHAPE(d), 1, 0.2},
        [SHIFT_1] = {FRIT_SHAPE(d), 0, 0.2},
        [QKV] = {FRIT_SHAPE(d, 3 * d), 0, sqrt(12.0 / (double)d)},
        [QKV_BIAS] = {FRIT_SHAPE(3 * d), 0, 0.2},
        [OUT] = {FRIT_SHAPE(d, d), 0, sqrt(12.0 / (double)d)},
        [OUT_BIAS] = {FRIT_SHAPE(d), 0, 0.2},
        [NORM_2] = {FRIT_SHAPE(d), 1, 0.2},
        [SHIFT_2] = {FRIT_SHAPE(d), 0, 0.2},
        [UP] = {FRIT_SHAPE(d, 4 * d), 0, sqrt(12.0 / (double)d)},
        [UP_BIAS] = {FRIT_SHAPE(4 * d), 0, 0.2},
        [DOWN] = {FRIT_SHAPE(4 * d, d), 0, sqrt(3.0 / (double)d)},
        [DOWN_BIAS] = {FRIT_SHAPE(d), 0, 0.2},
    };

    for (int i = 0; i < LAYER_TENSORS; i++)
        w[i] = uniform(device, model, rows[i].dims, rows[i].middle, rows[i].width);
}

static void make(frit_device *device, struct tensors *t)
{
    const struct model *m = t->model;
    frit_dims alone = FRIT_SHAPE(m->batch, m->heads, m->tokens, m->width);

    if (m->layers) {
        t->x = uniform(device, m, FRIT_SHAPE(m->batch, m->tokens, m->heads * m->width), 0, 2);
    } else {
        t->x = uniform(device, m, alone, 0, 2);
        t->k = uniform(device, m, alone, 0, 2);
        t->v = uniform(device, m, alone, 0, 2);
    }
    for (int64_t i = 0; i < m->layers; i++)
        make_layer(device, m, t->layer[i]);
}

static void release(struct tensors *t)
{
    frit_release(t->x);
    frit_release(t->k);
    frit_release(t->v);
    for (int64_t i = 0; i < t->model->layers; i++)
        for (int k = 0; k < LAYER_TENSORS; k++)
            frit_release(t->layer[i][k]);
}

/* ---- the step ---- */

/* Part `which` of q, k, v, with the heads before the tokens. */
static frit_tensor *heads_of(const struct model *m, frit_tensor *qkv, int64_t which)
{
    int64_t d = m->heads * m->width;
    frit_tensor *part = frit_slice(
        qkv, FRIT_SLICES({0, m->batch, 1}, {0, m->tokens, 1}, {which * d, (which + 1) * d, 1}));

    part = frit_reshape(part, FRIT_SHAPE(m->batch, m->tokens, m->heads, m->width));
    return frit_permute(part, FRIT_AXES(0, 2, 1, 3));
}

static frit_tensor *attend(const struct model *m, frit_tensor *x, frit_tensor *const *w)
{
    frit_tensor *h = frit_layer_norm(x, w[NORM_1], w[SHIFT_1]);
    frit_tensor *qkv = frit_linear(h, w[QKV], w[QKV_BIAS]);

    h = frit_attention(heads_of(m, qkv, 0), heads_of(m, qkv, 1), heads_of(m, qkv, 2), NULL, NULL,
                       .causal = m->causal);
    h = frit_permute(h, FRIT_AXES(0, 2, 1, 3));
    h = frit_reshape(h, FRIT_SHAPE(m->batch, m->tokens, m->heads * m->width));
    return frit_add(x, frit_linear(h, w[OUT], w[OUT_BIAS]));
}

static frit_tensor *feed(frit_tensor *x, frit_tensor *const *w)
{
    frit_tensor *h = frit_layer_norm(x, w[NORM_2], w[SHIFT_2]);

    h = frit_gelu(frit_linear(h, w[UP], w[UP_BIAS]));
    return frit_add(x, frit_linear(h, w[DOWN], w[DOWN_BIAS]));
}

struct step {
    const struct tensors *tensors;
    frit_device *device;
};

static frit_tensor *run(const void *self)
{
    const struct step *step = self;
    const struct tensors *t = step->tensors;
    const struct model *m = t->model;
    frit_scope scope;
    frit_tensor *x = t->x;

    if (!m->layers)
        return frit_attention(t->x, t->k, t->v, NULL, NULL, .causal = m->causal);
    scope = frit_scope_begin(step->device);
    for (int64_t i = 0; i < m->layers; i++)
        x = feed(attend(m, x, t->layer[i]), t->layer[i]);
    x = frit_keep(frit_sum(frit_cast(x, FRIT_F32)));
    frit_scope_end(scope);
    return x;
}

int bench_models(const struct bench *bench, frit_device *device, const frit_device_desc *desc)
{
    int status = CLI_FINE;

    for (size_t i = 0; i < N_MODELS && status == CLI_FINE; i++) {
        struct tensors tensors = {.model = &models[i]};
        const struct step step = {&tensors, device};

        if (!bench_wants_rate(bench, desc, models[i].name, size_of(&models[i])))
            continue;
        make(device, &tensors);
        status = bench_rate(
            bench, device,
            &(struct bench_rate){models[i].name, models[i].what, flops_of(&models[i]), run, &step});
        release(&tensors);
    }
    return status;
}
