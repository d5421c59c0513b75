/* SPDX-License-Identifier: Apache-2.0 */
#include "run/tune.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"
#include "base/timeline.h"
#include "device/device.h"
#include "device/prepared_cache.h"
#include "load/registry.h"
#include "plan/program.h"
#include "run/batch.h"
#include "run/frame.h"
#include "run/idle.h"
#include "run/launch.h"
#include "run/launch_parts.h"
#include "run/limits.h"
#include "run/measure.h"
#include "run/parts.h"
#include "run/trial.h"
#include "search/fuser.h"
#include "tune/record.h"
#include "tune/store.h"

enum { MIN_SAMPLES = 5 };

/* ---- the key ---- */

/* The digest is kept with the program: it is the same for every launch of it. */
static const uint8_t *digest_of(const struct launch *l, uint8_t own[TUNE_DIGEST])
{
    struct program *program = l->call->program;
    unsigned char *kept = atomic_load_explicit(&program->digest, memory_order_acquire),
                  *none = NULL;

    if (kept)
        return kept;
    if (trial_digest(l, own, NULL))
        return NULL;
    kept = malloc(TUNE_DIGEST);
    if (!kept)
        return own;
    memcpy(kept, own, TUNE_DIGEST);
    if (!atomic_compare_exchange_strong(&program->digest, &none, kept))
        free(kept);
    return own;
}

static frit_str identity_of(const struct launch *l, uint32_t candidate)
{
    return prepared_cache_candidate(l->call->cache, candidate)->identity;
}

/* Those of the program's candidates that are bad, for every key; NULL: none is known. */
static const struct tune_record *find_program(const struct launch *l, const uint8_t *digest)
{
    const struct tune_record *record = NULL;
    struct str key = {0};

    tune_key_program(digest, &key);
    if (!key.failed)
        record = tune_store_find(l->frame->device->tune_store, key.text, key.length);
    str_fini(&key);
    return record;
}

/* ---- a decision ---- */

/* Its place in `order`; `order->count`: it is not offered, or is another version now. */
static uint32_t place_of(const struct launch *l, const struct candidates *order,
                         const struct tune_candidate *known)
{
    uint32_t i = 0;

    while (i < order->count &&
           (prepared_cache_candidate(l->call->cache, order->list[i])->version != known->version ||
            !str_is(identity_of(l, order->list[i]), known->identity)))
        i++;
    return i;
}

/* What was decided stands alone: nothing else is compiled meanwhile. */
static void move(struct candidates *order, uint32_t from, uint32_t to)
{
    const uint32_t candidate = order->list[from];

    for (; from > to; from--)
        order->list[from] = order->list[from - 1];
    order->list[to] = candidate;
    order->n_best = 1;
}

/* The first candidate stays whatever was found, since something has to run. */
static void leave_out(struct candidates *order, uint32_t at)
{
    if (!order->list[at])
        return;
    order->count--;
    if (at < order->n_best && order->n_best > 1)
        order->n_best--;
    for (; at < order->count; at++)
        order->list[at] = order->list[at + 1];
}

/* Whether the block is better run in parts than by the candidates that come after `known`. */
static bool wins_in_parts(const struct launch *l, const struct candidates *order,
                          const struct tune_candidate *known)
{
    return known->version == 0 && strcmp(known->identity, TUNE_PARTS) == 0 &&
           known->state == TUNE_RIGHT && parts_may_run(l, order->numeric_class);
}

/* The order of the record; then those that it does not have. */
static void apply(const struct launch *l, const struct tune_record *record,
                  struct candidates *order)
{
    uint32_t n = 0;

    for (uint32_t c = 0; c < record->n_candidates; c++) {
        const struct tune_candidate *known = &record->candidates[c];
        const uint32_t at = place_of(l, order, known);

        if (!n && wins_in_parts(l, order, known))
            order->in_parts = true;
        if (at == order->count)
            continue;
        if (tune_state_is_quarantined(known->state) || known->state == TUNE_FAILED)
            leave_out(order, at);
        else if (at >= n && known->state == TUNE_RIGHT)
            move(order, at, n++);
        if (n || order->in_parts)
            order->chosen = record->reason == TUNE_LIMIT ? "roofline" : "measured";
    }
}

/* ---- measuring ---- */

/* The candidates, and the block in parts where it may run so. */
static bool list_contestants(const struct launch *l, const struct candidates *order,
                             struct measure_params *params)
{
    uint32_t *list = arena_array(&l->batch->arena, order->count + 1u, sizeof(*list));

    if (!list)
        return false;
    memcpy(list, order->list, order->count * sizeof(*list));
    params->list = list;
    params->n = order->count;
    if (parts_may_run(l, order->numeric_class))
        list[params->n++] = TRIAL_PARTS;
    return true;
}

/* The trial of a key and what is to be found in it. */
static frit_status begin_measuring(const struct launch *l, const struct measure_params *params,
                                   struct measure **out, frit_err *err)
{
    struct launch_trial *trial;

    TRY(trial_create(l, &trial, err));
    return measure_create(trial, params, out, err);
}

/* False: the budget was spent before.  The limits of the device are not measured at the key's
 * expense. */
static bool measure_within(struct measure *m, uint64_t budget_ns)
{
    const uint64_t until = clock_ns() + budget_ns;
    uint64_t checked;
    bool complete = measure_check(m, until);

    checked = clock_ns();
    if (complete)
        limits_apply(m);
    complete = complete && measure_run(m, until + clock_ns() - checked);
    limits_review(m);
    measure_keep(m, complete);
    return complete;
}

/* For `frit tune`, which shows how far a program is. */
static void log_step(const struct launch *l)
{
    const struct frame *frame = l->frame;

    if (frame->plan)
        log_write(FRIT_LOG_DEBUG, "tune", "%s: step %u of %u: %s", frame->device->name,
                  frame->at.step + 1, frame->n_steps, l->call->label);
}

/* One thread, and one process, measures a key. */
static void measure_once(struct launch *l, const uint8_t *digest, const struct str *key,
                         const frit_signature *sig, const struct candidates *order)
{
    frit_device *device = l->frame->device;
    struct measure_params params = {
        .digest = digest,
        .key = key->text,
        .key_bytes = key->length,
        .checks = true,
        .rules = {.min_samples = MIN_SAMPLES, .max_samples = CONTEST_SAMPLES}};
    struct measure *m = NULL;
    struct str what = {0};
    uint64_t begun;
    frit_err err = ERR_INIT;

    if (!list_contestants(l, order, &params) ||
        !tune_store_claim(device->tune_store, key->text, key->length))
        return;
    atomic_fetch_add(&device->n_measuring, 1);
    begun = timeline_begin();
    log_step(l);
    str_addf(&what, "%s ", l->call->label);
    tune_key_print(sig, &what);
    if (order->numeric_class != device->config.numeric_class)
        str_addf(&what, ", %s", tune_class_name(order->numeric_class));
    params.what = what.text ? what.text : "";
    if (begin_measuring(l, &params, &m, &err)) {
        log_write(FRIT_LOG_DEBUG, "tune", "%s: %s is not measured: %s", device->name,
                  l->call->label, err.text);
    } else {
        const bool complete = measure_within(m, device->config.tune.budget_ms * 1000000);

        atomic_fetch_add(&device->count.tuned, 1);
        if (!complete && idle_add(device, m))
            m = NULL;
    }
    measure_destroy(m);
    str_fini(&what);
    timeline_end(begun, "tune", str_of(l->call->label));
    atomic_fetch_sub(&device->n_measuring, 1);
    tune_store_release(device->tune_store, key->text, key->length);
}

/* ---- the order of a launch ---- */

static bool force(const struct launch *l, struct candidates *order)
{
    const char *identity = l->frame->device->config.tune.force;

    if (identity && strcmp(identity, TUNE_PARTS) == 0 && parts_may_run(l, order->numeric_class)) {
        order->in_parts = true;
        order->chosen = "forced";
        return true;
    }
    for (uint32_t i = 0; identity && i < order->count; i++)
        if (str_is(identity_of(l, order->list[i]), identity)) {
            move(order, i, 0);
            order->chosen = "forced";
            return true;
        }
    return false;
}

/* A launch that is made, of a program of the device's own plugin, or where all are tried. */
bool launch_may_be_measured(const struct launch *l)
{
    const frit_device *device = l->frame->device;
    const uint32_t fuser = l->call->program->fuser;

    return device->measures && !l->ahead && !l->frame->is_trial && !l->copy_of &&
           (device->config.tune.tries || fuser == PROGRAM_OF_OP ||
            strcmp(device->fusers->list[fuser].plugin, device->entry->plugin->id) == 0);
}

/* The record of a looser class: those of its candidates that are not allowed are not offered. */
static const struct tune_record *find_looser(const struct launch *l, const uint8_t *digest,
                                             const frit_signature *sig, uint32_t numeric_class)
{
    const struct tune_record *record = NULL;

    while (!record && ++numeric_class <= FRIT_NUMERIC_RELAXED) {
        struct str key = {0};

        tune_key(digest, sig, l->frame->device->config.tune.level, numeric_class, &key);
        if (!key.failed)
            record = tune_store_find(l->frame->device->tune_store, key.text, key.length);
        str_fini(&key);
    }
    return record;
}

/* The record of a key, which is made now if there is none and it may be. */
static const struct tune_record *find_or_measure(struct launch *l, const uint8_t *digest,
                                                 const struct str *key, const frit_signature *sig,
                                                 const struct candidates *order)
{
    struct tune_store *store = l->frame->device->tune_store;
    const struct tune_record *record = tune_store_find(store, key->text, key->length);

    if (record || !launch_may_be_measured(l))
        return record;
    measure_once(l, digest, key, sig, order);
    return tune_store_find(store, key->text, key->length);
}

/* The key of this signature alone. */
static uint64_t add_exact_key(const uint8_t *digest, const frit_signature *sig,
                              uint32_t numeric_class, struct str *out)
{
    tune_key(digest, sig, TUNE_FULL, numeric_class, out);
    return out->failed ? 0 : XXH3_64bits(out->text, out->length);
}

/* What was decided for the signature alone, where it has left its bucket; NULL: nothing. */
static const struct tune_record *decide_apart(struct launch *l, const uint8_t *digest,
                                              const frit_signature *sig,
                                              const struct candidates *order,
                                              const struct tune_record *bucket)
{
    const struct tune_record *record = NULL;
    struct str key = {0};

    if (bucket->n_splits) {
        const uint64_t exact = add_exact_key(digest, sig, order->numeric_class, &key);

        if (tune_record_is_split(bucket, exact) && !key.failed)
            record = find_or_measure(l, digest, &key, sig, order);
    }
    str_fini(&key);
    return record;
}

/* The order of the key's record. */
static void decide(struct launch *l, const uint8_t *digest, const frit_signature *sig,
                   struct candidates *order)
{
    const struct tune_config *config = &l->frame->device->config.tune;
    const struct tune_record *record = NULL, *apart = NULL;
    struct str key = {0};

    tune_key(digest, sig, config->level, order->numeric_class, &key);
    if (!key.failed)
        record = find_or_measure(l, digest, &key, sig, order);
    if (!record)
        record = find_looser(l, digest, sig, order->numeric_class);
    if (record)
        apart = decide_apart(l, digest, sig, order, record);
    order->is_split = apart;
    order->record = apart ? apart : record;
    if (order->record)
        apply(l, order->record, order);
    str_fini(&key);
}

void launch_tune(struct launch *l, const frit_signature *sig, struct candidates *order)
{
    const struct tune_record *bad;
    uint8_t own[TUNE_DIGEST];
    const uint8_t *digest;

    if (force(l, order) || l->frame->device->config.tune.level == TUNE_OFF || l->copy_of ||
        (!launch_may_be_measured(l) && tune_store_is_empty(l->frame->device->tune_store)) ||
        !(digest = digest_of(l, own)))
        return;
    bad = find_program(l, digest);
    if (bad)
        apply(l, bad, order);
    if (order->count > 1 || parts_may_run(l, order->numeric_class))
        decide(l, digest, sig, order);
}

static void add_split(const struct launch *l, const struct tune_record *record, uint64_t exact)
{
    struct tune_record more = *record;
    uint64_t *splits = arena_array(&l->batch->arena, record->n_splits + 1u, sizeof(*splits));
    frit_err err = ERR_INIT;

    if (!splits || record->n_splits == TUNE_SPLITS)
        return;
    if (record->n_splits)
        memcpy(splits, record->splits, record->n_splits * sizeof(*splits));
    splits[more.n_splits++] = exact;
    more.splits = splits;
    log_write(FRIT_LOG_INFO, "tune", "%s: %s: these sizes are tuned apart: %s is refused",
              l->frame->device->name, record->what, record->candidates[0].identity);
    if (tune_store_add(l->frame->device->tune_store, &more, &err))
        log_write(FRIT_LOG_DEBUG, "tune", "%s: %s: it is not noted: %s", l->frame->device->name,
                  record->what, err.text);
    device_note_decision(l->frame->device);
}

void launch_split(const struct launch *l, const frit_signature *sig, const struct candidates *order)
{
    struct str key = {0};
    uint8_t own[TUNE_DIGEST];
    const uint8_t *digest = digest_of(l, own);
    uint64_t exact;

    /* The winner may be another one that is not offered here. */
    if (!digest || order->is_split || l->frame->is_trial ||
        l->frame->device->config.tune.level == TUNE_FULL || !order->record->n_candidates ||
        place_of(l, order, &order->record->candidates[0]) != 0)
        return;
    exact = add_exact_key(digest, sig, order->numeric_class, &key);
    if (!key.failed && !tune_record_is_split(order->record, exact))
        add_split(l, order->record, exact);
    str_fini(&key);
}
