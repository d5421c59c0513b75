/* SPDX-License-Identifier: Apache-2.0 */
/* Making optimisers: configurations checked, states numbered and computed. */
#include <frit/train.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/report.h"
#include "device/device.h"
#include "tensor/slot.h"
#include "train/optimizer.h"
#include "train/scaler.h"
#include "train/section.h"

static bool is_ratio(double x)
{
    return x >= 0 && x < 1;
}

static frit_status check_config(const frit_optimizer_config *c, frit_err *err)
{
    static const uint32_t known =
        FRIT_OPTIMIZER_NESTEROV | FRIT_OPTIMIZER_AMSGRAD | FRIT_OPTIMIZER_IN_PLACE;

    if (c->kind < FRIT_SGD || c->kind > FRIT_ADAMW)
        return fail(err, FRIT_INVALID, "optimizer_create: there is no kind %u", c->kind);
    if (c->flags & ~known)
        return fail(err, FRIT_INVALID, "optimizer_create: unknown flags %#x", c->flags & ~known);
    if (!(c->rate >= 0 && c->weight_decay >= 0 && c->clip_value >= 0 && c->clip_norm >= 0))
        return fail(
            err, FRIT_INVALID,
            "optimizer_create: rate, weight_decay, clip_value and clip_norm are at least 0");
    if (c->kind != FRIT_SGD && !(is_ratio(c->beta1) && is_ratio(c->beta2) && c->eps >= 0))
        return fail(err, FRIT_INVALID,
                    "optimizer_create: beta1 and beta2 are from 0 to below 1, eps at least 0");
    if (c->kind == FRIT_SGD && !(c->momentum >= 0))
        return fail(err, FRIT_INVALID, "optimizer_create: the momentum is at least 0");
    if (c->flags & FRIT_OPTIMIZER_NESTEROV &&
        (c->kind != FRIT_SGD || c->momentum == 0 || c->dampening != 0))
        return fail(err, FRIT_INVALID,
                    "optimizer_create: NESTEROV wants SGD with momentum and without dampening");
    return FRIT_OK;
}

/* Each parameter has a handle of its own. */
static frit_status check_apart(const frit_optimizer *o, frit_tensor *const *params, frit_err *err)
{
    for (uint32_t i = 1; i < o->n_params; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (handle_plain(params[k]) == handle_plain(params[i]))
                return fail(err, FRIT_INVALID,
                            "optimizer_create: parameter %u is parameter %u, too", k, i);
        }
    }
    return FRIT_OK;
}

/* Reads the types, and checks that all are of one device. */
static frit_status read_params(frit_optimizer *o, frit_tensor *const *params, frit_err *err)
{
    for (uint32_t i = 0; i < o->n_params; i++) {
        struct slot *slot = slot_enter(params[i], err);
        uint32_t dtype;
        bool differs;

        if (!slot)
            return fail_context(err, "optimizer_create: parameter %u", i);
        o->types[i] = slot->value.type;
        o->device = o->device ? o->device : slot->device;
        differs = slot->device != o->device;
        dtype = slot->value.type.dtype;
        slot_leave(slot);
        if (frit_tensor_status(params[i]))
            return fail(err, frit_tensor_status(params[i]), "optimizer_create: parameter %u: %s", i,
                        frit_tensor_error(params[i]));
        if (differs)
            return fail(err, FRIT_INVALID, "optimizer_create: parameter %u is of another device",
                        i);
        if (dtype != FRIT_F16 && dtype != FRIT_BF16 && dtype != FRIT_F32 && dtype != FRIT_F64)
            return fail(err, FRIT_INVALID,
                        "optimizer_create: parameter %u is of %s, not f16, bf16, f32 or f64", i,
                        frit_dtype_name(dtype));
    }
    if (o->config.scaler && scaler_device(o->config.scaler) != o->device)
        return fail(err, FRIT_INVALID, "optimizer_create: the scaler is of another device");
    return FRIT_OK;
}

static const char *const state_names[N_STATES] = {
    [STATE_FIRST] = "exp_avg",
    [STATE_SECOND] = "exp_avg_sq",
    [STATE_MAX_SECOND] = "max_exp_avg_sq",
    [STATE_MASTER] = "master",
};

/* Numbers the states of a parameter. */
static void number_states(frit_optimizer *o, uint32_t param)
{
    for (uint32_t k = 0; k < N_STATES; k++) {
        struct state_name *name = &o->names[o->n_states];

        if (!update_has_state(&o->config, k, o->types[param].dtype))
            continue;
        o->state[param][k] = o->n_params + o->n_states++;
        name->param = param;
        snprintf(name->text, sizeof(name->text), "%u.%s", param,
                 o->config.kind == FRIT_SGD && k == STATE_FIRST ? "momentum" : state_names[k]);
    }
}

static void number_corrections(frit_optimizer *o)
{
    o->n_corrections = update_n_corrections(&o->config);
    o->correction = o->n_params + o->n_states;
    for (uint32_t k = 0; k < o->n_corrections; k++) {
        struct state_name *name = &o->names[o->n_states++];

        name->param = UINT64_MAX;
        snprintf(name->text, sizeof(name->text), "correction%u", k + 1);
    }
}

static frit_status allocate(frit_optimizer *o, frit_err *err)
{
    const size_t n = o->n_params, most = n * N_STATES + MOST_CORRECTIONS;

    o->types = calloc(n, sizeof(*o->types));
    o->state = calloc(n, sizeof(*o->state));
    o->names = calloc(most, sizeof(*o->names));
    o->cells.cell = calloc(n + most, sizeof(*o->cells.cell));
    return o->types && o->state && o->names && o->cells.cell
               ? FRIT_OK
               : fail_memory(err, n * sizeof(struct cell) * (1 + N_STATES));
}

/* States are zero at first, a master is its parameter. */
static void record_states(frit_optimizer *o, frit_tensor *const *params)
{
    const struct grad_rule rule = {.device = o->device};

    for (uint32_t i = 0; i < o->n_params; i++) {
        struct op_type type = o->types[i];

        type.dtype = update_dtype(type.dtype);
        for (uint32_t k = 0; k < N_STATES; k++) {
            const uint32_t at = o->state[i][k];

            if (at && k == STATE_MASTER)
                o->cells.cell[at].now = cell_own(t_cast(t_of(params[i]), type.dtype).tensor);
            else if (at)
                o->cells.cell[at].now = cell_own(t_full(&rule, &type, 0).tensor);
        }
    }
    for (uint32_t k = 0; k < o->n_corrections; k++)
        o->cells.cell[o->correction + k].now =
            cell_own(t_full(&rule, &(struct op_type){.dtype = FRIT_F32}, 0).tensor);
}

/* Computes the states, so that the first step has something to go back to. */
static frit_status compute_states(const frit_optimizer *o, frit_err *err)
{
    const frit_status st = frit_sync(o->device, err);

    if (st)
        return fail_context(err, "optimizer_create");
    for (uint32_t i = o->n_params; i < o->cells.n; i++) {
        frit_tensor *now = o->cells.cell[i].now;

        if (frit_tensor_status(now))
            return fail(err, frit_tensor_status(now), "optimizer_create: %s",
                        frit_tensor_error(now));
    }
    return FRIT_OK;
}

static frit_status init(frit_optimizer *o, frit_tensor *const *params, frit_err *err)
{
    struct section section;

    TRY(allocate(o, err));
    TRY(read_params(o, params, err));
    TRY(check_apart(o, params, err));
    for (uint32_t i = 0; i < o->n_params; i++)
        number_states(o, i);
    number_corrections(o);
    TRY(section_begin(&section, o->device, err));
    record_states(o, params);
    section_end(&section);
    o->cells.n = o->n_params + o->n_states;
    o->cells.keeps = !(o->config.flags & FRIT_OPTIMIZER_IN_PLACE);
    return compute_states(o, err);
}

frit_status frit_optimizer_create(const frit_optimizer_config *config, frit_tensor *const *params,
                                  uint64_t count, frit_optimizer **out, frit_err *err)
{
    HOLD_CANCEL;
    frit_optimizer_config c = frit_sgd_config(0);
    frit_err own = ERR_INIT;
    frit_optimizer *o;
    frit_status st;

    if (out)
        *out = NULL;
    if (process_is_barred())
        return report_barred(err, "optimizer_create");
    if (!out || !config || !params)
        return report_null(err, "optimizer_create",
                           !out      ? "out"
                           : !config ? "the config"
                                     : "the list of parameters");
    if (!count || count > INT32_MAX / (N_STATES + 2))
        return fail(err, FRIT_INVALID, "optimizer_create: %llu parameters",
                    (unsigned long long)count);
    if (!config->struct_size)
        return fail(err, FRIT_INVALID, "optimizer_create: struct_size of the config is not set");
    memcpy(&c, config, config->struct_size < sizeof(c) ? config->struct_size : sizeof(c));
    TRY(check_config(&c, err));
    o = calloc(1, sizeof(*o));
    if (!o)
        return fail_memory(err, sizeof(*o));
    o->config = c;
    o->n_params = (uint32_t)count;
    st = init(o, params, &own);
    if (st)
        frit_optimizer_destroy(o);
    else
        *out = o;
    return report(err, st, &own);
}

void frit_optimizer_destroy(frit_optimizer *o)
{
    if (!o)
        return;
    for (uint32_t i = 0; i < o->n_params && o->cells.cell; i++)
        o->cells.cell[i].now = NULL; /* the program's */
    if (o->cells.cell)
        cells_fini(&o->cells);
    cell_release(&o->norm);
    free(o->cells.cell);
    free(o->types);
    free(o->state);
    free(o->names);
    free(o);
}
