/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/model.h"

#include <math.h>

enum { ROWS = 60 };

const char *const model_names[N_PARAMS] = {"hidden.w", "hidden.b", "head.w", "head.b"};

static frit_tensor *numbers(const struct model *m, frit_dims dims, int seed)
{
    float data[FEATURES * HIDDEN + HIDDEN * CLASSES];
    uint64_t n = 1;
    frit_tensor *plain;

    for (int64_t d = 0; d < dims.rank; d++)
        n *= (uint64_t)dims.dim[d];
    for (uint64_t i = 0; i < n; i++)
        data[i] = seed ? (float)((int)(i * 7 + (uint64_t)seed * 13) % 17 - 8) / 16 : 0;
    plain = frit_from_host(m->member->device, FRIT_F32, dims, data, n * sizeof(*data));
    return m->dtype == FRIT_F32 ? plain : frit_cast(frit_take(plain), m->dtype);
}

void model_init(struct model *model, struct member *member, uint32_t dtype, int seed)
{
    *model = (struct model){.member = member, .dtype = dtype};
    model->params[0] = numbers(model, FRIT_SHAPE(FEATURES, HIDDEN), seed);
    model->params[1] = numbers(model, FRIT_SHAPE(HIDDEN), seed * 2);
    model->params[2] = numbers(model, FRIT_SHAPE(HIDDEN, CLASSES), seed * 3);
    model->params[3] = numbers(model, FRIT_SHAPE(CLASSES), seed * 4);
}

void model_fini(struct model *model)
{
    frit_replica_destroy(model->replica);
    frit_optimizer_destroy(model->optimizer);
    for (int i = 0; i < N_PARAMS; i++)
        frit_release(model->params[i]);
}

frit_tensor *model_loss(struct model *model, uint32_t first, uint32_t n)
{
    frit_tensor *const *p = model->params;
    frit_device *device = model->member->device;
    float rows[ROWS][FEATURES];
    int32_t labels[ROWS];
    frit_tensor *x, *y, *hidden, *logits;

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = (first + i) % ROWS;

        for (uint32_t k = 0; k < FEATURES; k++)
            rows[i][k] = (float)((row * 7 + k * 5) % 11) / 8 - 0.5f;
        labels[i] = (int32_t)(row % CLASSES);
    }
    x = frit_from_host(device, FRIT_F32, FRIT_SHAPE(n, FEATURES), rows, n * sizeof(*rows));
    y = frit_from_host(device, FRIT_I32, FRIT_SHAPE(n), labels, n * sizeof(*labels));
    if (model->dtype != FRIT_F32)
        x = frit_cast(x, model->dtype);
    hidden = frit_tanh(frit_add(frit_matmul(x, p[0]), p[1]));
    logits = frit_add(frit_matmul(hidden, p[2]), p[3]);
    if (model->dtype != FRIT_F32)
        logits = frit_cast(logits, FRIT_F32);
    return frit_loss_cross_entropy(logits, y, 1);
}

bool model_watch(struct model *model)
{
    struct member *m = model->member;

    MUST(m, frit_grad_begin(m->device, &m->err));
    for (int i = 0; i < N_PARAMS; i++)
        MUST(m, frit_grad_watch(model->params[i], &m->err));
    return true;
}

/* The gradients of the mean of the parts' losses. */
static bool backward_parts(struct model *model, uint32_t first, uint32_t n, uint32_t parts)
{
    struct member *m = model->member;
    const float share = 1.0f / (float)parts;
    frit_tensor *losses[MOST_MEMBERS], *shares[MOST_MEMBERS];

    for (uint32_t i = 0; i < parts; i++) {
        losses[i] = model_loss(model, first + i * (n / parts), n / parts);
        shares[i] = frit_full(m->device, FRIT_F32, FRIT_RANK0, (double)share);
    }
    MUST(m, frit_grad_backward_many(losses, shares, parts, 0, &m->err));
    return true;
}

/* All but the last part accumulate. */
static bool reduce_parts(struct model *model, uint32_t first, uint32_t n, uint32_t parts)
{
    struct member *m = model->member;

    for (uint32_t i = 0; i < parts; i++) {
        frit_tensor *loss = model_loss(model, first + i * (n / parts), n / parts);

        MUST(m, frit_replica_backward(model->replica, model->params, frit_div_f(loss, parts),
                                      i + 1 < parts ? FRIT_REPLICA_ACCUMULATE : FRIT_REPLICA_SYNC,
                                      &m->err));
    }
    return true;
}

static bool run_step(struct model *model, uint32_t first, uint32_t n, uint32_t parts)
{
    struct member *m = model->member;

    if (!model_watch(model))
        return false;
    if (!(model->replica ? reduce_parts : backward_parts)(model, first, n, parts))
        return false;
    MUST(m, frit_optimizer_step(model->optimizer, model->params, NULL, &m->err));
    return true;
}

bool model_step(struct model *model, uint32_t first, uint32_t n, uint32_t parts)
{
    const frit_scope scope = frit_scope_begin(model->member->device);
    const bool good = run_step(model, first, n, parts);

    frit_grad_end(model->member->device);
    frit_scope_end(scope);
    return good;
}

bool model_read(struct model *model, float out[MODEL_FLOATS])
{
    struct member *m = model->member;

    for (int i = 0; i < N_PARAMS; i++) {
        frit_tensor *plain = frit_cast(model->params[i], FRIT_F32);
        const uint64_t bytes = frit_tensor_bytes(plain);

        MUST(m, frit_read(frit_take(plain), out, bytes, &m->err));
        out += bytes / sizeof(*out);
    }
    return true;
}

void expect_equal_models(const float (*models)[MODEL_FLOATS], uint32_t size)
{
    for (uint32_t r = 1; r < size; r++) {
        if (memcmp(models[r], models[0], sizeof(models[0])) != 0)
            fail_msg("rank %u has other bits than rank 0", r);
    }
}

void expect_near_model(const float *have, const float *want, double most)
{
    for (int i = 0; i < MODEL_FLOATS; i++) {
        const double off = fabs((double)have[i] - (double)want[i]);

        if (!(off <= most * fmax(1, fabs((double)want[i]))))
            fail_msg("number %d is %g, not %g", i, (double)have[i], (double)want[i]);
    }
}
