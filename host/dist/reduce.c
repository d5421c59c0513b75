/* SPDX-License-Identifier: Apache-2.0 */
/* Steps without a backward pass: gradients that the program has, and those of other ranks alone. */
#include <stdlib.h>
#include <string.h>

#include "api/report.h"
#include "base/fail.h"
#include "device/device.h"
#include "dist/exchange.h"
#include "dist/reduction.h"
#include "run/rank.h"
#include "tensor/slot.h"
#include "train/cell.h"

/* ---- gradients of the program ---- */

static frit_status check_grad(const frit_replica *r, uint32_t i, frit_tensor *grad, frit_err *err)
{
    const struct schedule_param *param = &r->schedule.params[i];
    struct slot *slot = slot_enter(grad, err);
    char text[128], other[128];
    struct op_type have;
    bool differs;

    if (!slot)
        return fail_context(err, "the gradient of parameter %s", param->name);
    have = slot->value.type;
    differs = slot->device != r->device;
    slot_leave(slot);
    if (frit_tensor_status(grad))
        return fail(err, frit_tensor_status(grad), "the gradient of parameter %s: %s", param->name,
                    frit_tensor_error(grad));
    if (differs)
        return fail(err, FRIT_INVALID, "the gradient of parameter %s is of another device",
                    param->name);
    return op_type_equal(&have, &param->type)
               ? FRIT_OK
               : fail(err, FRIT_INVALID, "the gradient of parameter %s is %s, not %s", param->name,
                      op_type_text(&have, text, sizeof(text)),
                      op_type_text(&param->type, other, sizeof(other)));
}

/* Reduces; `out` gets references. */
static frit_status run_step(frit_replica *r, frit_tensor *const *grads, bool has_batch,
                            frit_tensor **out, frit_err *err)
{
    struct reduction reduction;
    frit_status st = reduction_begin(&reduction, r, err);

    reduction.has_batch = has_batch;
    if (!st && grads)
        memcpy(reduction.grads, grads, r->schedule.n_params * sizeof(frit_tensor *));
    if (!st)
        st = reduction_complete_all(&reduction, err);
    if (st)
        st = replica_give_up(r, err);
    for (uint32_t i = 0; i < r->schedule.n_params && !st; i++) {
        out[i] = reduction.reduced[i];
        reduction.reduced[i] = NULL;
    }
    reduction_end(&reduction);
    return st;
}

static frit_status reduce(frit_replica *r, frit_tensor **grads, frit_tensor **reduced,
                          frit_err *err)
{
    const uint32_t n = r->schedule.n_params;

    for (uint32_t i = 0; i < n; i++) {
        if (grads[i])
            TRY(check_grad(r, i, grads[i], err));
        reduced[i] = grads[i] ? handle_plain(grads[i]) : NULL;
    }
    TRY(run_step(r, reduced, true, reduced, err));
    for (uint32_t i = 0; i < n; i++) {
        frit_release(grads[i]);
        grads[i] = reduced[i];
    }
    return FRIT_OK;
}

frit_status frit_replica_reduce(frit_replica *replica, frit_tensor **grads, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_tensor **reduced;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "replica_reduce");
    if (!replica || !grads)
        return report_null(err, "replica_reduce",
                           !replica ? "the replica" : "the list of gradients");
    st = replica_check(replica, "replica_reduce", &own);
    if (st)
        return report(err, st, &own);
    reduced = calloc(replica->schedule.n_params, sizeof(frit_tensor *));
    if (!reduced)
        return fail_memory(err, replica->schedule.n_params * sizeof(frit_tensor *));
    st = reduce(replica, grads, reduced, &own);
    free(reduced);
    if (st)
        (void)fail_context(&own, "replica_reduce");
    return report(err, st, &own);
}

/* ---- steps of the others ---- */

/* The ranks' flags of the last step, waiting for it. */
static frit_status read_present(const frit_replica *r, float *flags, uint32_t *n_present,
                                frit_err *err)
{
    *n_present = 0;
    TRY(frit_read(r->present, flags, r->rank->size * sizeof(*flags), err));
    for (uint32_t k = 0; k < r->rank->size; k++)
        *n_present += flags[k] != 0;
    return FRIT_OK;
}

static void drop(frit_tensor **tensors, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        cell_release(&tensors[i]);
}

static frit_status shadow(frit_replica *r, frit_tensor **grads, uint32_t *n_present, float *flags,
                          frit_err *err)
{
    const uint32_t n = r->schedule.n_params;
    frit_status st;

    *n_present = 0;
    TRY(run_step(r, NULL, false, grads, err));
    st = read_present(r, flags, n_present, err);
    if (st || !*n_present)
        drop(grads, n);
    return st;
}

/* Steps of the others until there are none.  `*last` gets a rank that made the last step. */
static frit_status shadow_all(frit_replica *r, frit_tensor **grads, float *flags, uint32_t *last,
                              frit_err *err)
{
    uint32_t n_present = 0;

    *last = 0;
    if (r->present)
        TRY(read_present(r, flags, &n_present, err));
    do {
        for (uint32_t k = r->rank->size; k-- > 0 && n_present;) {
            if (flags[k] != 0)
                *last = k;
        }
        TRY(shadow(r, grads, &n_present, flags, err));
        drop(grads, n_present ? r->schedule.n_params : 0);
    } while (n_present);
    return FRIT_OK;
}

static frit_status begin_shadow(const frit_replica *r, const char *call, frit_err *err)
{
    TRY(replica_check(r, call, err));
    return r->schedule.config.flags & FRIT_REPLICA_UNEVEN
               ? FRIT_OK
               : fail(err, FRIT_INVALID, "%s: the replica was made without FRIT_REPLICA_UNEVEN",
                      call);
}

frit_status frit_replica_shadow(frit_replica *replica, frit_tensor **grads, uint32_t *n_present,
                                frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    float *flags;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "replica_shadow");
    if (!replica || !grads || !n_present)
        return report_null(err, "replica_shadow",
                           !replica ? "the replica"
                           : !grads ? "the list of gradients"
                                    : "n_present");
    memset(grads, 0, replica->schedule.n_params * sizeof(frit_tensor *));
    st = begin_shadow(replica, "replica_shadow", &own);
    if (st)
        return report(err, st, &own);
    flags = calloc(replica->rank->size, sizeof(*flags));
    st = flags ? shadow(replica, grads, n_present, flags, &own)
               : fail_memory(&own, replica->rank->size * sizeof(*flags));
    free(flags);
    if (st)
        (void)fail_context(&own, "replica_shadow");
    return report(err, st, &own);
}

static frit_status join(frit_replica *r, frit_tensor **params, frit_err *err)
{
    frit_tensor **grads = calloc(r->schedule.n_params, sizeof(frit_tensor *));
    float *flags = calloc(r->rank->size, sizeof(*flags));
    uint32_t last;
    frit_status st =
        grads && flags ? FRIT_OK : fail_memory(err, r->schedule.n_params * sizeof(frit_tensor *));

    if (!st)
        st = shadow_all(r, grads, flags, &last, err);
    if (!st)
        st = exchange_params(r->rank, r->device, &r->schedule, last, params, err);
    free(grads);
    free(flags);
    return st;
}

frit_status frit_replica_join(frit_replica *replica, frit_tensor **params, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "replica_join");
    if (!replica || !params)
        return report_null(err, "replica_join",
                           !replica ? "the replica" : "the list of parameters");
    st = begin_shadow(replica, "replica_join", &own);
    if (!st && join(replica, params, &own))
        st = fail_context(&own, "replica_join");
    return report(err, st, &own);
}
