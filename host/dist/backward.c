/* SPDX-License-Identifier: Apache-2.0 */
/* Backward passes of a replica. */
#include <stdlib.h>

#include "api/report.h"
#include "base/fail.h"
#include "device/device.h"
#include "dist/reduction.h"
#include "grad/backward.h"
#include "grad/completion.h"
#include "run/rank.h"

struct reduced_pass {
    struct reduction reduction;
    struct history *history;
    uint32_t *values; /* of the parameters */
};

/* ---- checks ---- */

static frit_status find_values(const frit_replica *r, struct history *history,
                               frit_tensor *const *params, uint32_t *values, frit_err *err)
{
    for (uint32_t i = 0; i < r->schedule.n_params; i++) {
        const struct schedule_param *param = &r->schedule.params[i];
        char text[128], other[128];

        values[i] = history_value_of(history, params[i]);
        if (!values[i] || !history->values[values[i]].is_watched)
            return fail(err, FRIT_INVALID, "parameter %s is not watched (frit_grad_watch)",
                        param->name);
        if (!op_type_equal(&history->values[values[i]].type, &param->type))
            return fail(err, FRIT_INVALID, "parameter %s is %s, it was %s", param->name,
                        op_type_text(&history->values[values[i]].type, text, sizeof(text)),
                        op_type_text(&param->type, other, sizeof(other)));
    }
    return FRIT_OK;
}

/* Which passes may follow each other on the same gradients. */
static frit_status check_mode(frit_replica *r, const struct history *history, uint32_t mode,
                              frit_err *err)
{
    const uint32_t before = r->session == history->number ? r->mode : 0;

    if (before == FRIT_REPLICA_SYNC)
        return fail(err, FRIT_INVALID,
                    "the gradients are reduced already; begin new ones (frit_grad_begin)");
    if (before && (before == FRIT_REPLICA_LOCAL) != (mode == FRIT_REPLICA_LOCAL))
        return fail(err, FRIT_INVALID,
                    "passes with LOCAL and with other modes cannot add to the same gradients");
    r->session = history->number;
    r->mode = mode;
    return FRIT_OK;
}

/* ---- a pass whose gradients are reduced ---- */

/* Gives a recorded bucket's parameters their reduced gradients, so that those of before end.  Of a
 * parameter that an op has made only `at_end`: its gradient goes on to that op's operands. */
static void install(struct reduced_pass *pass, uint32_t bucket, bool at_end)
{
    const struct schedule_bucket *b = &pass->reduction.replica->schedule.buckets[bucket];

    for (uint32_t k = 0; k < b->n; k++) {
        const uint32_t i = b->params[k], value = pass->values[i];
        const bool is_made = !pass->history->values[value].tensor;

        if (is_made == at_end)
            history_set_grad(pass->history, value, pass->reduction.reduced[i]);
    }
}

static frit_status complete(void *ctx, uint32_t i, frit_err *err)
{
    struct reduced_pass *pass = ctx;
    uint32_t bucket = pass->reduction.n_recorded;
    frit_status st;

    pass->reduction.grads[i] = pass->history->values[pass->values[i]].grad;
    st = reduction_complete(&pass->reduction, i, err);
    for (; bucket < pass->reduction.n_recorded; bucket++)
        install(pass, bucket, false);
    return st;
}

static frit_status run_sync(struct reduced_pass *pass, frit_tensor *loss, frit_err *err)
{
    const struct schedule *s = &pass->reduction.replica->schedule;
    const struct completion_watch watch = {
        .values = pass->values, .n = s->n_params, .complete = complete, .ctx = pass};

    if (loss)
        TRY(backward(pass->history, &loss, NULL, 1, false, &watch, err));
    for (uint32_t i = s->n_params; i-- > 0;) {
        if (!loss)
            TRY(complete(pass, i, err));
        else if (!pass->reduction.is_complete[i])
            return fail(err, FRIT_INVALID, "parameter %s is the tensor of another one, too",
                        s->params[i].name);
    }
    for (uint32_t b = 0; b < s->n_buckets; b++)
        install(pass, b, true);
    return FRIT_OK;
}

static frit_status pass_sync(frit_replica *r, struct reduced_pass *pass, frit_tensor *loss,
                             frit_err *err)
{
    frit_status st = reduction_begin(&pass->reduction, r, err);

    if (!st)
        st = run_sync(pass, loss, err);
    if (st)
        st = replica_give_up(r, err);
    reduction_end(&pass->reduction);
    return st;
}

/* ---- passes ---- */

static frit_status run_pass(frit_replica *r, frit_tensor *const *params, frit_tensor *loss,
                            uint32_t mode, uint32_t *values, frit_err *err)
{
    struct reduced_pass pass = {.history = history_of(r->device), .values = values};

    if (!pass.history)
        return fail(err, FRIT_INVALID, "frit_grad_begin comes first, in the same thread");
    TRY(find_values(r, pass.history, params, values, err));
    TRY(check_mode(r, pass.history, mode, err));
    r->passes += mode != FRIT_REPLICA_SYNC;
    return mode == FRIT_REPLICA_SYNC ? pass_sync(r, &pass, loss, err)
                                     : backward(pass.history, &loss, NULL, 1, false, NULL, err);
}

frit_status frit_replica_backward(frit_replica *replica, frit_tensor *const *params,
                                  frit_tensor *loss, uint32_t mode, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    uint32_t *values;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "replica_backward");
    if (!replica || !params)
        return report_null(err, "replica_backward",
                           !replica ? "the replica" : "the list of parameters");
    if (!loss && mode != FRIT_REPLICA_SYNC)
        return report_null(err, "replica_backward", "the loss");
    if (mode < FRIT_REPLICA_SYNC || mode > FRIT_REPLICA_LOCAL)
        return fail(err, FRIT_INVALID, "replica_backward: there is no mode %u", mode);
    st = replica_check(replica, "replica_backward", &own);
    if (st)
        return report(err, st, &own);
    values = calloc(replica->schedule.n_params, sizeof(*values));
    if (!values)
        return fail_memory(err, replica->schedule.n_params * sizeof(*values));
    st = run_pass(replica, params, loss, mode, values, &own);
    free(values);
    if (st)
        (void)fail_context(&own, "replica_backward");
    return report(err, st, &own);
}
