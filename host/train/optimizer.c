/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of optimisers: all parameters and states as cells that a step replaces together. */
#include "train/optimizer.h"

#include <frit/grad.h>

#include <stdlib.h>

#include "api/copy_sized.h"
#include "api/report.h"
#include "device/device.h"
#include "tensor/slot.h"
#include "train/scaler.h"
#include "train/section.h"

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
