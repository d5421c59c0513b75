/* SPDX-License-Identifier: Apache-2.0 */
/* Making replicas. */
#include <stdlib.h>
#include <string.h>

#include "api/open.h"
#include "api/report.h"
#include "base/fail.h"
#include "device/device.h"
#include "dist/agree.h"
#include "dist/exchange.h"
#include "dist/replica.h"
#include "record/binding.h"
#include "run/rank.h"
#include "tensor/slot.h"
#include "train/cell.h"
#include "train/section.h"

enum { MOST_PARAMS = 1 << 24 };

/* ---- parameters ---- */

static frit_status read_param(const frit_replica *r, uint32_t i, frit_tensor *param,
                              struct op_type *out, frit_err *err)
{
    struct slot *slot = slot_enter(param, err);
    bool differs;

    if (!slot)
        return fail_context(err, "parameter %u", i);
    *out = slot->value.type;
    differs = slot->device != r->device;
    slot_leave(slot);
    if (frit_tensor_status(param))
        return fail(err, frit_tensor_status(param), "parameter %u: %s", i,
                    frit_tensor_error(param));
    if (differs)
        return fail(err, FRIT_INVALID, "parameter %u is of another device than the rank", i);
    if (out->dtype != FRIT_F16 && out->dtype != FRIT_BF16 && out->dtype != FRIT_F32 &&
        out->dtype != FRIT_F64)
        return fail(err, FRIT_INVALID, "parameter %u is of %s, not f16, bf16, f32 or f64", i,
                    frit_dtype_name(out->dtype));
    return FRIT_OK;
}

struct param_place {
    frit_tensor *tensor;
    uint32_t param;
};

static int by_tensor(const void *a, const void *b)
{
    const struct param_place *x = a, *y = b;

    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* Each parameter has a handle of its own. */
static frit_status check_apart(frit_tensor *const *params, uint32_t n, frit_err *err)
{
    struct param_place *places = calloc(n, sizeof(*places));
    frit_status st = FRIT_OK;

    if (!places)
        return fail_memory(err, n * sizeof(*places));
    for (uint32_t i = 0; i < n; i++)
        places[i] = (struct param_place){handle_plain(params[i]), i};
    qsort(places, n, sizeof(*places), by_tensor);
    for (uint32_t i = 1; i < n && !st; i++) {
        if (places[i].tensor == places[i - 1].tensor)
            st = fail(err, FRIT_INVALID, "parameters %u and %u are one tensor", places[i - 1].param,
                      places[i].param);
    }
    free(places);
    return st;
}

static frit_status make_schedule(frit_replica *r, const frit_replica_config *config,
                                 frit_tensor *const *params, uint32_t n, frit_err *err)
{
    static const uint32_t known =
        FRIT_REPLICA_SUM | FRIT_REPLICA_UNEVEN | FRIT_REPLICA_ALL_USED | FRIT_REPLICA_KEEP;
    struct op_type *types;
    frit_status st = FRIT_OK;

    if (config->flags & ~known)
        return fail(err, FRIT_INVALID, "unknown flags %#x", config->flags & ~known);
    types = calloc(n, sizeof(*types));
    if (!types)
        return fail_memory(err, n * sizeof(*types));
    for (uint32_t i = 0; i < n && !st; i++)
        st = read_param(r, i, params[i], &types[i], err);
    if (!st)
        st = check_apart(params, n, err);
    if (!st)
        st = schedule_init(&r->schedule, config, types, n, err);
    free(types);
    return st;
}

/* ---- creation ---- */

/* What says in a step whether this rank has a batch. */
static frit_status make_flags(frit_replica *r, frit_err *err)
{
    const uint32_t n = r->rank->size;
    float *flags = calloc(n, sizeof(*flags));
    struct section section;
    frit_status st =
        flags ? section_begin(&section, r->device, err) : fail_memory(err, n * sizeof(*flags));

    if (!st) {
        r->has_none =
            cell_own(frit_from_host(r->device, FRIT_F32, FRIT_SHAPE(n), flags, n * sizeof(*flags)));
        flags[r->rank->rank] = 1;
        r->has_batch =
            cell_own(frit_from_host(r->device, FRIT_F32, FRIT_SHAPE(n), flags, n * sizeof(*flags)));
        section_end(&section);
        if (frit_tensor_status(r->has_batch))
            st = fail(err, frit_tensor_status(r->has_batch), "%s", frit_tensor_error(r->has_batch));
    }
    free(flags);
    return st;
}

/* With all ranks. */
static frit_status init(frit_replica *r, const frit_replica_config *config, frit_tensor **params,
                        uint32_t n, frit_err *err)
{
    frit_err own = ERR_INIT;

    own.status = make_schedule(r, config, params, n, &own);
    if (!own.status && config->flags & FRIT_REPLICA_UNEVEN)
        own.status = make_flags(r, &own);
    TRY(agree(r->rank, r->device, &r->schedule, &own, err));
    return config->flags & FRIT_REPLICA_KEEP
               ? FRIT_OK
               : exchange_params(r->rank, r->device, &r->schedule, 0, params, err);
}

static frit_status create(frit_rank *rank, const frit_replica_config *config, frit_tensor **params,
                          uint32_t n, frit_replica **out, frit_err *err)
{
    frit_replica *r = calloc(1, sizeof(*r));
    frit_status st;

    if (!r)
        return fail_memory(err, sizeof(*r));
    *r = (frit_replica){.rank = rank, .stream = rank->stream, .device = rank->stream->device};
    st = replica_check(r, "replica_create", err);
    if (!st) {
        st = replica_bind(r, err);
        if (!st)
            st = init(r, config, params, n, err);
        if (st)
            (void)fail_context(err, "replica_create: group %s", rank->name);
    }
    if (st)
        frit_replica_destroy(r);
    else
        *out = r;
    return st;
}

frit_status frit_replica_create(frit_rank *rank, const frit_replica_config *config,
                                frit_tensor **params, uint64_t count, frit_replica **out,
                                frit_err *err)
{
    HOLD_CANCEL;
    frit_replica_config c = {.flags = 0};
    frit_err own = ERR_INIT;

    if (out)
        *out = NULL;
    if (process_is_barred())
        return report_barred(err, "replica_create");
    if (!rank || !params || !out)
        return report_null(err, "replica_create",
                           !rank     ? "the rank"
                           : !params ? "the list of parameters"
                                     : "`out`");
    if (!open_find(rank, NULL))
        return fail(err, FRIT_INVALID,
                    "replica_create: not a rank: it left its group, or its device is closed");
    if (!count || count > MOST_PARAMS)
        return fail(err, FRIT_INVALID, "replica_create: %llu parameters",
                    (unsigned long long)count);
    if (config && !config->struct_size)
        return fail(err, FRIT_INVALID, "replica_create: struct_size of the config is not set");
    if (config)
        memcpy(&c, config, config->struct_size < sizeof(c) ? config->struct_size : sizeof(c));
    return report(err, create(rank, &c, params, (uint32_t)count, out, &own), &own);
}

void frit_replica_destroy(frit_replica *r)
{
    HOLD_CANCEL;

    if (!r)
        return;
    replica_unbind(r);
    cell_release(&r->has_batch);
    cell_release(&r->has_none);
    cell_release(&r->present);
    schedule_fini(&r->schedule);
    free(r);
}

char *frit_replica_text(const frit_replica *replica)
{
    return replica ? schedule_text(&replica->schedule) : NULL;
}
