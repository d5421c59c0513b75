/* SPDX-License-Identifier: Apache-2.0 */
#include "device/models.h"

#include <math.h>
#include <string.h>

#include <frit/grad.h>

enum { DIM = 32, HEADS = 4, SHARED = 2, INPUTS = 3, CHANNELS = 32, MORE = 16, CLASSES = 10 };

/* ---- attention with heads that share keys ---- */

static frit_dims tokens(struct model_size size)
{
    return FRIT_SHAPE(size.batch, size.extent, DIM);
}

/* x [batch, tokens, n * DIM / HEADS] with the heads before the tokens. */
static frit_tensor *heads(frit_tensor *x, struct model_size size, int64_t n)
{
    x = frit_reshape(x, FRIT_SHAPE(size.batch, size.extent, n, DIM / HEADS));
    return frit_permute(x, FRIT_AXES(0, 2, 1, 3));
}

static frit_tensor *joined(frit_tensor *x, struct model_size size)
{
    return frit_reshape(frit_permute(x, FRIT_AXES(0, 2, 1, 3)), tokens(size));
}

/* Scores have a bias that falls with the distance, as the keys' numbers have it. */
static frit_tensor *attention_forward(frit_tensor *const *w, frit_tensor *x, struct model_size size)
{
    frit_tensor *q = heads(frit_linear(x, w[0], w[1]), size, HEADS);
    frit_tensor *k = heads(frit_matmul(x, w[2]), size, SHARED);
    frit_tensor *v = heads(frit_matmul(x, w[3]), size, SHARED);
    frit_tensor *bias =
        frit_reshape(frit_sum(x, .axes = FRIT_AXES(2)), FRIT_SHAPE(size.batch, 1, 1, size.extent));
    frit_tensor *y = frit_attention(q, k, v, NULL, bias, .causal = 1);

    return frit_linear(joined(y, size), w[4], w[5]);
}

/* ---- a transformer's block, whose attention is written out ---- */

static frit_tensor *part(frit_tensor *x, struct model_size size, int64_t which)
{
    frit_range range = {which * DIM, (which + 1) * DIM, 1};

    return heads(frit_slice(x, FRIT_SLICES({0}, {0}, range)), size, HEADS);
}

static frit_tensor *transformer_forward(frit_tensor *const *w, frit_tensor *x,
                                        struct model_size size)
{
    frit_tensor *h = frit_linear(frit_layer_norm(x, w[0], w[1]), w[2], w[3]);
    frit_tensor *scores = frit_matmul(part(h, size, 0), frit_transpose(part(h, size, 1), -1, -2));

    scores = frit_softmax(frit_mul_f(scores, 1 / sqrt(DIM / HEADS)), -1);
    h = joined(frit_matmul(scores, part(h, size, 2)), size);
    x = frit_add(x, frit_linear(h, w[4], w[5]));
    h = frit_gelu(frit_linear(frit_layer_norm(x, w[6], w[7]), w[8], w[9]));
    return frit_add(x, frit_linear(h, w[10], w[11]));
}

/* ---- convolutions ---- */

static frit_dims images(struct model_size size)
{
    return FRIT_SHAPE(size.batch, INPUTS, size.extent, size.extent);
}

/* The convolution of all channels is Winograd's on a processor, at the sizes of sizes_test.c. */
static frit_tensor *conv_forward(frit_tensor *const *w, frit_tensor *x, struct model_size size)
{
    x = frit_relu(frit_conv(x, w[0], w[1], .padding = {1, 1}));
    x = frit_max_pool(x, NULL, .kernel = {2, 2});
    x = frit_add(x, frit_conv(x, w[2], w[3], .padding = {1, 1}, .groups = CHANNELS));
    x = frit_relu(frit_conv(x, w[10], w[11], .padding = {1, 1}));
    x = frit_relu(frit_conv(x, w[4], w[5], .stride = {2, 2}, .padding = {1, 1}));
    x = frit_reshape(frit_mean(x, .axes = FRIT_AXES(2, 3)), FRIT_SHAPE(size.batch, MORE));
    return frit_linear(frit_layer_norm(x, w[6], w[7]), w[8], w[9]);
}

/* ---- all of them ---- */

static const struct model_kind kinds[] = {
    {"attention",
     6,
     {{2, {DIM, DIM}},
      {1, {DIM}},
      {2, {DIM, DIM / HEADS *SHARED}},
      {2, {DIM, DIM / HEADS *SHARED}},
      {2, {DIM, DIM}},
      {1, {DIM}}},
     tokens,
     attention_forward},
    {"transformer",
     12,
     {{1, {DIM}},
      {1, {DIM}},
      {2, {DIM, 3 * DIM}},
      {1, {3 * DIM}},
      {2, {DIM, DIM}},
      {1, {DIM}},
      {1, {DIM}},
      {1, {DIM}},
      {2, {DIM, 4 * DIM}},
      {1, {4 * DIM}},
      {2, {4 * DIM, DIM}},
      {1, {DIM}}},
     tokens,
     transformer_forward},
    {"conv",
     12,
     {{4, {CHANNELS, INPUTS, 3, 3}},
      {1, {CHANNELS}},
      {4, {CHANNELS, 1, 3, 3}},
      {1, {CHANNELS}},
      {4, {MORE, CHANNELS, 3, 3}},
      {1, {MORE}},
      {1, {MORE}},
      {1, {MORE}},
      {2, {MORE, CLASSES}},
      {1, {CLASSES}},
      {4, {CHANNELS, CHANNELS, 3, 3}},
      {1, {CHANNELS}}},
     images,
     conv_forward},
};

const struct model_kind *model_kind_named(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    fail_msg("no network is named '%s'", name);
}

static uint64_t count_of(frit_dims dims)
{
    uint64_t count = 1;

    for (int64_t d = 0; d < dims.rank; d++)
        count *= (uint64_t)dims.dim[d];
    return count;
}

/* Random, smaller the more of them are summed up; `seed` is below 8. */
static frit_tensor *make(frit_device *device, frit_dims dims, uint64_t seed)
{
    const uint64_t count = count_of(dims), apart = 97;
    const uint64_t summed = dims.rank < 2 ? 8 : dims.rank == 2 ? (uint64_t)dims.dim[0] : 16;
    float *numbers = rig_numbers(count + seed * apart);
    frit_tensor *made;

    for (uint64_t i = 0; i < count; i++)
        numbers[i] = numbers[i + seed * apart] / (float)(2 * sqrt((double)summed));
    made = frit_from_host(device, FRIT_F32, dims, numbers, count * sizeof(*numbers));
    free(numbers);
    return made;
}

void model_open(struct model *model, frit_device *device, const struct model_kind *kind,
                struct model_size size, const frit_optimizer_config *config)
{
    frit_err err = {.struct_size = sizeof(err)};

    *model = (struct model){.kind = kind, .device = device, .size = size};
    model->x = make(device, kind->input(size), 0);
    for (uint32_t i = 0; i < kind->n_weights; i++)
        model->weights[i] = make(device, kind->weights[i], 1 + i % 7);
    if (config &&
        frit_optimizer_create(config, model->weights, kind->n_weights, &model->optimizer, &err))
        fail_msg("%s", err.text);
}

void model_close(struct model *model)
{
    frit_optimizer_destroy(model->optimizer);
    frit_release(model->x);
    for (uint32_t i = 0; i < model->kind->n_weights; i++)
        frit_release(model->weights[i]);
}

static frit_tensor *train(struct model *model)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_status st = frit_grad_begin(model->device, &err);
    frit_tensor *y, *loss = NULL;

    for (uint32_t i = 0; i < model->kind->n_weights && !st; i++)
        st = frit_grad_watch(model->weights[i], &err);
    if (!st) {
        y = frit_sub_f(model->kind->forward(model->weights, model->x, model->size), 0.5);
        loss = frit_mean(frit_mul(y, y));
        st = frit_grad_backward(loss, &err);
    }
    if (!st)
        st = frit_optimizer_step(model->optimizer, model->weights, NULL, &err);
    frit_grad_end(model->device);
    if (st)
        fail_msg("%s: %s", model->kind->name, err.text);
    return loss;
}

frit_tensor *model_step(struct model *model)
{
    const frit_scope scope = frit_scope_begin(model->device);
    frit_tensor *y = model->optimizer ? train(model)
                                      : model->kind->forward(model->weights, model->x, model->size);

    frit_keep(y);
    frit_scope_end(scope);
    return y;
}
