/* SPDX-License-Identifier: Apache-2.0 */
/* Loss scaling.  The scale is a tensor; `good` counts steps without overflow since it changed. */
#include "train/scaler.h"

#include <stdlib.h>
#include <string.h>

#include "api/copy_sized.h"
#include "api/report.h"
#include "api/tensor.h"
#include "device/device.h"
#include "record/binding.h"
#include "tensor/slot.h"
#include "train/cell.h"
#include "train/section.h"

enum { SCALE, GOOD, N_CELLS };

struct frit_scaler {
    frit_scaler_config config;
    frit_device *device;
    struct cell cell[N_CELLS];
    struct cells cells;
    frit_tensor *ok; /* of the steps since the last update; NULL: there were none */
};

static term number(frit_device *device, double value)
{
    const struct grad_rule rule = {.device = device};

    return t_full(&rule, &(struct op_type){.dtype = FRIT_F32}, value);
}

static frit_status check_config(const frit_scaler_config *c, frit_err *err)
{
    if (!c->struct_size)
        return fail(err, FRIT_INVALID, "scaler_create: struct_size of the config is not set");
    if (!(c->scale >= 0 && c->growth >= 0 && c->backoff >= 0))
        return fail(err, FRIT_INVALID,
                    "scaler_create: scale %g, growth %g and backoff %g are not "
                    "all positive",
                    c->scale, c->growth, c->backoff);
    return FRIT_OK;
}

frit_status frit_scaler_create(frit_device *device, const frit_scaler_config *config,
                               frit_scaler **out, frit_err *err)
{
    HOLD_CANCEL;
    frit_scaler_config c = {.struct_size = sizeof(c)};
    frit_err own = ERR_INIT;
    struct section section;
    frit_scaler *scaler;
    frit_status st;

    if (!out)
        return report_null(err, "scaler_create", "out");
    *out = NULL;
    if (process_is_barred())
        return report_barred(err, "scaler_create");
    if (!device)
        return report_null(err, "scaler_create", "the device");
    if (config) {
        TRY(check_config(config, err));
        memcpy(&c, config, config->struct_size < sizeof(c) ? config->struct_size : sizeof(c));
    }
    c.scale = c.scale > 0 ? c.scale : 65536;
    c.growth = c.growth > 0 ? c.growth : 2;
    c.backoff = c.backoff > 0 ? c.backoff : 0.5;
    c.interval = c.interval ? c.interval : 2000;
    scaler = calloc(1, sizeof(*scaler));
    if (!scaler)
        return fail_memory(err, sizeof(*scaler));
    *scaler = (frit_scaler){.config = c,
                            .device = device,
                            .cells = {.cell = scaler->cell, .n = N_CELLS, .keeps = true}};
    st = section_begin(&section, device, &own);
    if (!st) {
        scaler->cell[SCALE].now = cell_own(number(device, c.scale).tensor);
        scaler->cell[GOOD].now = cell_own(number(device, 0).tensor);
        section_end(&section);
        st = frit_sync(device, &own);
        st = st ? st : cells_settle(&scaler->cells, "scaler_create", &own);
    }
    if (st)
        frit_scaler_destroy(scaler);
    else
        *out = scaler;
    return report(err, st, &own);
}

void frit_scaler_destroy(frit_scaler *scaler)
{
    if (!scaler)
        return;
    cells_fini(&scaler->cells);
    cell_release(&scaler->ok);
    free(scaler);
}

frit_device *scaler_device(const frit_scaler *scaler)
{
    return scaler->device;
}

term scaler_inverse(const frit_scaler *scaler)
{
    return t_op1(FRIT_OP_recip, t_of(scaler->cell[SCALE].now));
}

frit_status scaler_settle(frit_scaler *scaler, const char *call, frit_err *err)
{
    if (scaler->ok && frit_tensor_status(scaler->ok))
        cell_release(&scaler->ok);
    return cells_settle(&scaler->cells, call, err);
}

void scaler_go_back(frit_scaler *scaler)
{
    cells_go_back(&scaler->cells);
    cell_release(&scaler->ok);
}

frit_status scaler_note(frit_scaler *scaler, term ok, frit_err *err)
{
    const term all = scaler->ok ? t_and(t_of(scaler->ok), ok) : ok;

    if (frit_tensor_status(all.tensor))
        return fail(err, frit_tensor_status(all.tensor), "optimizer_step: %s",
                    frit_tensor_error(all.tensor));
    cell_release(&scaler->ok);
    scaler->ok = cell_own(all.tensor);
    return FRIT_OK;
}

frit_tensor *frit_scaler_scale(frit_scaler *scaler, frit_tensor *loss)
{
    HOLD_CANCEL;
    frit_err err = ERR_INIT;
    frit_tensor *plain = handle_plain(loss), *out;
    struct section section;
    frit_status st = scaler ? FRIT_OK : report_null(&err, "scaler_scale", "the scaler");

    if (!st)
        st = scaler_settle(scaler, "scaler_scale", &err);
    if (!st && frit_tensor_status(plain))
        st = fail(&err, frit_tensor_status(plain), "scaler_scale: %s", frit_tensor_error(plain));
    if (!st)
        st = section_begin_followed(&section, scaler->device, &err);
    if (!st) {
        term x = t_of(plain);

        if (frit_tensor_dtype(plain) != FRIT_F32)
            x = t_cast(x, FRIT_F32);
        out = frit_keep(t_mul(x, t_of(scaler->cell[SCALE].now)).tensor);
        section_end(&section);
    } else {
        out = tensor_error(NULL, &err);
    }
    if (loss)
        tensor_consume(loss);
    return out;
}

/* The rules of Micikevicius et al. 2018: shrink after an overflow, grow after `interval` steps
 * without one, unless the scale would become infinite. */
static void record_update(frit_scaler *scaler)
{
    const frit_scaler_config *c = &scaler->config;
    const term ok = t_of(scaler->ok), scale = t_of(scaler->cell[SCALE].now);
    const term good = t_add(t_of(scaler->cell[GOOD].now), t_num(1));
    const term is_due = t_le(t_num((double)c->interval), good);
    const term grown = t_mul(scale, t_num(c->growth));
    const term fits = t_where(t_op1(FRIT_OP_is_inf, grown), scale, grown);
    const term kept = t_where(is_due, fits, scale);
    const term next = t_where(ok, kept, t_mul(scale, t_num(c->backoff)));
    const term count = t_where(t_and(ok, t_op1(FRIT_OP_not, is_due)), good, t_num(0));

    scaler->cell[SCALE].next = cell_own(next.tensor);
    scaler->cell[GOOD].next = cell_own(count.tensor);
}

frit_status frit_scaler_update(frit_scaler *scaler, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    struct section section;
    frit_status st;

    if (!scaler)
        return report_null(err, "scaler_update", "the scaler");
    if (!scaler->ok)
        return fail(err, FRIT_INVALID, "scaler_update: there was no step since the last update");
    st = scaler_settle(scaler, "scaler_update", &own);
    if (!st && !scaler->ok)
        st = fail(&own, FRIT_INVALID, "scaler_update: the step has failed");
    if (!st)
        st = section_begin(&section, scaler->device, &own);
    if (st)
        return report(err, st, &own);
    record_update(scaler);
    section_end(&section);
    st = cells_commit(&scaler->cells, "scaler_update", &own);
    if (!st)
        cell_release(&scaler->ok);
    return report(err, st, &own);
}

frit_status frit_scaler_state_at(frit_scaler *scaler, uint64_t index, frit_state_desc *out)
{
    static const char *const names[N_CELLS] = {"scale", "good_steps"};

    if (!scaler || !out || index >= N_CELLS)
        return FRIT_INVALID;
    return copy_sized(
        out, &(frit_state_desc){sizeof(*out), names[index], UINT64_MAX, scaler->cell[index].now},
        sizeof(*out));
}

frit_status frit_scaler_set_state(frit_scaler *scaler, uint64_t index, frit_tensor *tensor,
                                  frit_err *err)
{
    frit_err own = ERR_INIT;

    if (!scaler)
        return report_null(err, "scaler_set_state", "the scaler");
    if (index >= N_CELLS)
        return fail(err, FRIT_INVALID, "scaler_set_state: there is no state %llu",
                    (unsigned long long)index);
    return report(err, cells_set(&scaler->cells, (uint32_t)index, tensor, "scaler_set_state", &own),
                  &own);
}
