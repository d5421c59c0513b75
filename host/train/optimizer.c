/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers: all parameters and states as cells that a step replaces together. */
#include <frit/grad.h>
#include <frit/train.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/copy_sized.h"
#include "api/report.h"
#include "device/device.h"
#include "tensor/slot.h"
#include "train/cell.h"
#include "train/scaler.h"
#include "train/section.h"
#include "train/update.h"

enum { NAME_BYTES = 40, MOST_CORRECTIONS = 2 };

struct state_name {
    uint64_t param; /* UINT64_MAX: none */
    char text[NAME_BYTES];
};

/* Cells are the parameters, whose tensors are the program's between steps, then states by
 * parameter, then corrections. */
struct frit_optimizer {
    frit_optimizer_config config;
    frit_device *device;
    uint32_t n_params, n_states, n_corrections;
    struct op_type *types;       /* of the parameters */
    uint32_t (*state)[N_STATES]; /* by parameter: the cell, 0: none */
    struct state_name *names;    /* of states and corrections */
    struct cells cells;
    uint32_t correction; /* the first cell of corrections */
    uint64_t steps, steps_before;
    frit_tensor *norm; /* of the last step; NULL: none */
};

/* ---- creation ---- */

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

/* ---- a step ---- */

static frit_status check_tensor(const frit_optimizer *o, const char *what, uint32_t i,
                                frit_tensor *tensor, frit_err *err)
{
    struct slot *slot = slot_enter(tensor, err);
    struct op_type have;
    char text[128], other[128];
    bool differs;

    if (!slot)
        return fail_context(err, "optimizer_step: %s %u", what, i);
    have = slot->value.type;
    differs = slot->device != o->device;
    slot_leave(slot);
    if (frit_tensor_status(tensor))
        return fail(err, frit_tensor_status(tensor), "optimizer_step: %s %u: %s", what, i,
                    frit_tensor_error(tensor));
    if (differs)
        return fail(err, FRIT_INVALID, "optimizer_step: %s %u is of another device", what, i);
    if (!op_type_equal(&have, &o->types[i]))
        return fail(err, FRIT_INVALID, "optimizer_step: %s %u is %s, the parameter was %s", what, i,
                    op_type_text(&have, text, sizeof(text)),
                    op_type_text(&o->types[i], other, sizeof(other)));
    return FRIT_OK;
}

/* The gradients of all parameters; on failure the program's tensors are as they were. */
static frit_status read_grads(const frit_optimizer *o, frit_tensor *const *params,
                              frit_tensor *const *grads, term *out, frit_err *err)
{
    for (uint32_t i = 0; i < o->n_params; i++) {
        out[i] = t_of(grads ? handle_plain(grads[i]) : frit_grad_of(params[i]));
        TRY(check_tensor(o, "the gradient of parameter", i, out[i].tensor, err));
    }
    return FRIT_OK;
}

/* Numbers of the step; with a scaler also whether it is skipped, and new corrections.  `flat`: the
 * gradients for sums. */
static frit_status record_numbers(frit_optimizer *o, struct update *update, const term *flat,
                                  uint32_t n_flat, frit_err *err)
{
    const frit_optimizer_config *c = &o->config;
    struct cell *at = &o->cells.cell[o->correction];
    term corrections[MOST_CORRECTIONS] = {{0}}, before = t_none();

    if (!c->scaler) {
        update_numbers(update, o->steps + 1);
        return FRIT_OK;
    }
    update->inverse = scaler_inverse(c->scaler);
    update->ok = update_is_finite(flat, n_flat);
    for (uint32_t k = 0; k < o->n_corrections; k++) {
        const double beta = c->kind == FRIT_SGD ? 0 : k ? c->beta2 : c->beta1;

        corrections[k] = update_correction(t_of(at[k].now), beta);
        at[k].next = cell_own(t_where(update->ok, corrections[k], t_of(at[k].now)).tensor);
    }
    if (o->n_corrections && c->kind == FRIT_SGD)
        before = t_of(at[0].now);
    update_numbers_on_device(update, corrections, before);
    return scaler_note(c->scaler, update->ok, err);
}

/* The norm of the flat gradients, made ready, and the factor that limits it. */
static void record_clip(frit_optimizer *o, struct update *update, term *flat, uint32_t n_flat)
{
    term norm;

    cell_release(&o->norm);
    if (o->config.clip_norm <= 0)
        return;
    for (uint32_t i = 0; i < n_flat; i++)
        flat[i] = update_gradient(update, flat[i], frit_tensor_dtype(flat[i].tensor));
    norm = update_norm(flat, n_flat);
    o->norm = cell_own(norm.tensor);
    update->clip = update_clip(norm, o->config.clip_norm);
}

static void record_param(frit_optimizer *o, const struct update *update, uint32_t i, term grad)
{
    struct cell *cells = o->cells.cell;
    term states[N_STATES], made[N_STATES], param;

    for (uint32_t k = 0; k < N_STATES; k++) {
        states[k] = o->state[i][k] ? t_of(cells[o->state[i][k]].now) : t_none();
        made[k] = t_none();
    }
    update_param(update, t_of(cells[i].now), grad, states, &param, made);
    cells[i].next = cell_own(param.tensor);
    for (uint32_t k = 0; k < N_STATES; k++) {
        if (o->state[i][k])
            cells[o->state[i][k]].next = cell_own(made[k].tensor);
    }
}

/* Records the step; every cell has a `next` afterwards.  `terms`: the gradients, and as many after
 * them to work with. */
static frit_status record_step(frit_optimizer *o, term *terms, frit_err *err)
{
    struct update update = {.config = &o->config, .rate = o->config.rate};
    term *flat = terms + o->n_params;
    const bool has_sums = o->config.scaler || o->config.clip_norm > 0;
    const bool joins = !(o->device->info->caps & FRIT_CAP_INLINE_QUEUE);
    const uint32_t n_flat = has_sums ? update_flatten(terms, o->n_params, joins, flat) : 0;

    TRY(record_numbers(o, &update, flat, n_flat, err));
    record_clip(o, &update, flat, n_flat);
    for (uint32_t i = 0; i < o->n_params; i++) {
        const uint32_t dtype = update_dtype(o->types[i].dtype);

        record_param(o, &update, i, update_gradient(&update, terms[i], dtype));
    }
    return FRIT_OK;
}

/* What of the steps before is known; undoes them if one has failed. */
static frit_status settle(frit_optimizer *o, frit_tensor **params, const char *call, frit_err *err)
{
    const bool could = o->cells.is_pending;
    frit_status st;

    for (uint32_t i = 0; i < o->n_params; i++) {
        struct slot *slot = slot_enter(params[i], err);

        if (!slot)
            return fail_context(err, "%s: parameter %u", call, i);
        slot_leave(slot);
    }
    for (uint32_t i = 0; i < o->n_params; i++)
        o->cells.cell[i].now = handle_plain(params[i]);
    st = cells_settle(&o->cells, call, err);
    for (uint32_t i = 0; i < o->n_params; i++)
        params[i] = o->cells.cell[i].now;
    if (st && could && !o->cells.is_pending) {
        o->steps = o->steps_before;
        if (o->config.scaler)
            scaler_go_back(o->config.scaler);
    }
    if (o->config.scaler) {
        frit_err own = ERR_INIT;
        frit_status other = scaler_settle(o->config.scaler, call, &own);

        st = st ? st : report(err, other, &own);
    }
    return st;
}

static frit_status run_step(frit_optimizer *o, frit_tensor **params, frit_tensor *const *grads,
                            term *terms, frit_err *err)
{
    struct section section;
    const bool was_pending = o->cells.is_pending;
    frit_status st;

    for (uint32_t i = 0; i < o->n_params; i++)
        TRY(check_tensor(o, "parameter", i, params[i], err));
    TRY(section_begin(&section, o->device, err));
    st = read_grads(o, params, grads, terms, err);
    if (!st)
        st = record_step(o, terms, err);
    section_end(&section);
    if (st)
        cells_drop(&o->cells);
    else
        st = cells_commit(&o->cells, "optimizer_step", err);
    if (st)
        return st;
    if (!was_pending)
        o->steps_before = o->steps;
    o->steps++;
    for (uint32_t i = 0; i < o->n_params; i++)
        params[i] = o->cells.cell[i].now;
    return FRIT_OK;
}

frit_status frit_optimizer_step(frit_optimizer *optimizer, frit_tensor **params,
                                frit_tensor *const *grads, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    term *terms;
    frit_status st;

    if (!optimizer || !params)
        return report_null(err, "optimizer_step",
                           !optimizer ? "the optimizer" : "the list of parameters");
    st = settle(optimizer, params, "optimizer_step", &own);
    if (st)
        return report(err, st, &own);
    terms = calloc(optimizer->n_params, 2 * sizeof(*terms));
    if (!terms)
        return fail_memory(err, optimizer->n_params * 2 * sizeof(*terms));
    st = run_step(optimizer, params, grads, terms, &own);
    free(terms);
    return report(err, st, &own);
}

frit_status frit_optimizer_sync(frit_optimizer *optimizer, frit_tensor **params, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT, synced = ERR_INIT;
    frit_status st, sync;

    if (!optimizer || !params)
        return report_null(err, "optimizer_sync",
                           !optimizer ? "the optimizer" : "the list of parameters");
    if (frit_tensor_device(params[0]) != optimizer->device)
        return fail(err, FRIT_INVALID, "optimizer_sync: parameter 0 is gone or of another device");
    sync = frit_sync(optimizer->device, &synced);
    st = settle(optimizer, params, "optimizer_sync", &own);
    return st ? report(err, st, &own) : report(err, sync, &synced);
}

/* ---- properties and states ---- */

double frit_optimizer_rate(const frit_optimizer *optimizer)
{
    return optimizer ? optimizer->config.rate : 0;
}

void frit_optimizer_set_rate(frit_optimizer *optimizer, double rate)
{
    if (optimizer)
        optimizer->config.rate = rate;
}

uint64_t frit_optimizer_steps(const frit_optimizer *optimizer)
{
    return optimizer ? optimizer->steps : 0;
}

void frit_optimizer_set_steps(frit_optimizer *optimizer, uint64_t steps)
{
    if (optimizer)
        optimizer->steps = optimizer->steps_before = steps;
}

frit_tensor *frit_optimizer_norm(frit_optimizer *optimizer)
{
    return optimizer ? optimizer->norm : NULL;
}

frit_status frit_optimizer_state_at(frit_optimizer *optimizer, uint64_t index, frit_state_desc *out)
{
    frit_state_desc desc = {.struct_size = sizeof(desc)};

    if (!optimizer || !out || index >= optimizer->n_states)
        return FRIT_INVALID;
    desc.name = optimizer->names[index].text;
    desc.param = optimizer->names[index].param;
    desc.tensor = optimizer->cells.cell[optimizer->n_params + index].now;
    return copy_sized(out, &desc, sizeof(desc));
}

frit_status frit_optimizer_set_state(frit_optimizer *optimizer, uint64_t index, frit_tensor *tensor,
                                     frit_err *err)
{
    frit_err own = ERR_INIT;

    if (!optimizer)
        return report_null(err, "optimizer_set_state", "the optimizer");
    if (index >= optimizer->n_states)
        return fail(err, FRIT_INVALID, "optimizer_set_state: there is no state %llu",
                    (unsigned long long)index);
    return report(err,
                  cells_set(&optimizer->cells, optimizer->n_params + (uint32_t)index, tensor,
                            "optimizer_set_state", &own),
                  &own);
}
