/* SPDX-License-Identifier: Apache-2.0 */
/* The ops one by one are a frame without a plan over the same values as the launch. */
#include "run/trial.h"

#include <string.h>

#include "base/fail.h"
#include "device/device.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/launch.h"
#include "run/run_frame.h"
#include "run/trial_run.h"
#include "tensor/failure.h"
#include "tune/sample.h"

enum {
    ZONE = 4096,     /* bytes on both sides of new memory */
    MORE_ZONES = 16, /* than outputs: a workspace, and what is derived */
    UNTOUCHED = 0xff /* NaN in every float type */
};

/* ---- what is expected ---- */

static frit_status run_ops(struct launch_trial *t, frit_err *err)
{
    struct frame frame;
    frit_status st = trial_fill(t, err);

    if (st || t->of_ops[0])
        return st;
    frame = trial_begin(t, false);
    frame.plan = NULL;
    TRY(run_without_plan(&frame, &t->arena, err));
    run_frame(&frame);
    st = frame.first ? fail(err, frame.first->status, "%s", frame.first->text)
                     : trial_read_results(t, t->of_ops, err);
    if (st)
        memset(t->of_ops, 0, t->n_out * sizeof(*t->of_ops));
    trial_end(t, &frame);
    return st;
}

static frit_status run_first(struct launch_trial *t, frit_err *err)
{
    struct frame frame;
    bool failed;
    frit_status st = trial_fill(t, err);

    if (st || t->of_first[0])
        return st;
    frame = trial_begin(t, false);
    st = trial_add(t, &frame, 0, err);
    if (!st)
        st = trial_finish(t, &frame, &failed, err);
    if (!st)
        st = trial_read_results(t, t->of_first, err);
    if (st)
        memset(t->of_first, 0, t->n_out * sizeof(*t->of_first));
    trial_end(t, &frame);
    return st;
}

/* ---- checking ---- */

/* One run of a candidate whose results are compared. */
struct candidate_check {
    struct launch_trial *trial;
    struct frame frame;
    uint32_t candidate, numeric_class;
    void *const *expected;
    bool in_place;
    enum trial_finding finding;
    frit_err *why;
};

static void find(struct candidate_check *c, enum trial_finding finding, const frit_err *why)
{
    c->finding = finding;
    *c->why = *why;
}

/* The zones before and after an output or a workspace. */
static frit_status check_zone(struct candidate_check *c, const struct buffer *whole, frit_err *err)
{
    const uint64_t zone = c->frame.zone_bytes, inner = whole->bytes - 2 * zone;
    struct value value = {.buffer = (struct buffer *)(uintptr_t)whole,
                          .type = {.dtype = FRIT_U8, .rank = 1, .dims = {(int64_t)whole->bytes}}};
    unsigned char *bytes = arena_alloc(&c->trial->arena, whole->bytes);

    if (!bytes)
        return fail_memory(err, whole->bytes);
    layout_dense(&value.type, &value.layout);
    TRY(trial_read(c->trial, &value, bytes, err));
    if (sample_is_untouched(bytes, zone, UNTOUCHED) &&
        sample_is_untouched(bytes + zone + inner, zone, UNTOUCHED))
        return FRIT_OK;
    c->finding = TRIAL_BEYOND;
    (void)fail(c->why, FRIT_INTERNAL, "it writes %s the %llu bytes of its output or workspace",
               sample_is_untouched(bytes, zone, UNTOUCHED) ? "after" : "before",
               (unsigned long long)inner);
    return FRIT_OK;
}

static bool is_silent(const struct candidate_check *c, void *const *got)
{
    const struct launch_trial *t = c->trial;
    uint64_t n_bytes = 0;

    for (uint32_t k = 0; k < t->n_out && !c->in_place; k++) {
        const struct op_type *type;
        uint64_t bytes;

        if (t->out[k] == GRAPH_NO_VALUE)
            continue;
        type = &t->graph.values[t->out[k]].type;
        bytes = frit_storage_bytes(type->dtype, op_elements(type));
        if (!sample_is_untouched(got[k], bytes, UNTOUCHED) ||
            sample_is_untouched(c->expected[k], bytes, UNTOUCHED))
            return false;
        n_bytes += bytes;
    }
    return n_bytes;
}

static void compare(struct candidate_check *c, void *const *got)
{
    const struct launch_trial *t = c->trial;

    for (uint32_t k = 0; k < t->n_out && c->finding == TRIAL_RIGHT; k++) {
        struct sample_difference difference;
        const struct op_type *type;

        if (t->out[k] == GRAPH_NO_VALUE)
            continue;
        type = &t->graph.values[t->out[k]].type;
        sample_compare(got[k], c->expected[k], type->dtype, op_elements(type), c->numeric_class,
                       &difference);
        if (!difference.count)
            continue;
        c->finding = TRIAL_WRONG;
        (void)fail(c->why, FRIT_INTERNAL,
                   "output %u, element %lld is %.9g, not %.9g%s; %lld of %lld differ", k,
                   (long long)difference.index, difference.got, difference.expected,
                   c->in_place ? " where it takes an operand's memory" : "",
                   (long long)difference.count, (long long)op_elements(type));
    }
}

static frit_status look(struct candidate_check *c, frit_err *err)
{
    void **got = arena_array(&c->trial->arena, c->trial->n_out + 1u, sizeof(*got));

    if (!got)
        return fail_memory(err, sizeof(*got));
    for (uint32_t i = 0; i < c->frame.n_zones && c->finding == TRIAL_RIGHT; i++)
        TRY(check_zone(c, c->frame.zones[i], err));
    if (c->finding != TRIAL_RIGHT)
        return FRIT_OK;
    TRY(trial_read_results(c->trial, got, err));
    if (is_silent(c, got)) {
        c->finding = TRIAL_SILENT;
        (void)fail(c->why, FRIT_INTERNAL, "it writes nothing");
        return FRIT_OK;
    }
    compare(c, got);
    return FRIT_OK;
}

/* The ops' own programs are what is compared with. */
static bool may_take_zones(const struct candidate_check *c)
{
    return !trial_is_in_parts(c->candidate) &&
           !(c->trial->device->info->caps & FRIT_CAP_NO_SUBALLOC);
}

static frit_status run_check(struct candidate_check *c, frit_err *err)
{
    struct launch_trial *t = c->trial;
    frit_err own = ERR_INIT;
    bool failed = false;
    frit_status st;

    TRY(trial_fill(t, err));
    c->frame = trial_begin(t, c->in_place);
    if (may_take_zones(c)) {
        c->frame.zone_bytes = ZONE;
        c->frame.zones_capacity = t->n_out + MORE_ZONES;
        c->frame.zones = arena_array(&t->arena, c->frame.zones_capacity, sizeof(struct buffer *));
        if (!c->frame.zones)
            return fail_memory(err, c->frame.zones_capacity * sizeof(struct buffer *));
    }
    t->is_filled = !c->in_place;
    st = trial_add(t, &c->frame, c->candidate, &own);
    if (!st)
        st = trial_finish(t, &c->frame, &failed, &own);
    if (launch_lacked_memory(st)) {
        if (err)
            *err = own;
    } else if (st) {
        find(c, failed ? TRIAL_FAILED : TRIAL_REFUSED, &own);
        st = FRIT_OK;
    } else {
        st = look(c, err);
    }
    trial_end(t, &c->frame);
    return st;
}

frit_status trial_check(struct launch_trial *trial, uint32_t candidate, uint32_t numeric_class,
                        enum trial_finding *finding, frit_err *why, frit_err *err)
{
    const bool like_first = candidate && numeric_class == FRIT_NUMERIC_EXACT;
    struct candidate_check check = {
        .trial = candidate == TRIAL_DECOMPOSED ? trial->decomposed : trial,
        .candidate = candidate,
        .numeric_class = candidate ? numeric_class : FRIT_NUMERIC_REORDERED,
        .expected = like_first ? trial->of_first : trial->of_ops,
        .why = why};
    frit_status st;

    *finding = TRIAL_RIGHT;
    TRY(like_first ? run_first(trial, err) : run_ops(trial, err));
    st = run_check(&check, err);
    if (!st && check.finding == TRIAL_RIGHT && trial->n_memories) {
        check.in_place = true;
        st = run_check(&check, err);
    }
    *finding = check.finding;
    return st;
}
