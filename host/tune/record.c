/* SPDX-License-Identifier: Apache-2.0 */
/* A record lies in an arena of its own, which is freed whole. */
#include "tune/record.h"

#include <stdlib.h>
#include <string.h>

#include <frit/program.h>

#include "base/arena.h"
#include "base/fail.h"
#include "base/text.h"

/* ---- words ---- */

static const char *const clocks[TUNE_CLOCKS] = {
    [TUNE_HOST_CLOCK] = "host", [TUNE_DEVICE_CLOCK] = "device"};

static const char *const reasons[TUNE_REASONS] = {[TUNE_MEASURED] = "measured",
                                                  [TUNE_LIMIT] = "roofline",
                                                  [TUNE_BUDGET] = "budget",
                                                  [TUNE_ONLY] = "only"};

static const char *const states[TUNE_STATES] = {
    [TUNE_UNTRIED] = "untried", [TUNE_RIGHT] = "right",     [TUNE_SLOW] = "slow",
    [TUNE_REFUSED] = "refused", [TUNE_FAILED] = "failed",   [TUNE_WRONG] = "wrong",
    [TUNE_SILENT] = "silent",   [TUNE_CRASHED] = "crashed", [TUNE_HUNG] = "hung"};

static const char *const classes[] = {[FRIT_NUMERIC_EXACT] = "exact",
                                      [FRIT_NUMERIC_REORDERED] = "reordered",
                                      [FRIT_NUMERIC_REDUCED] = "reduced",
                                      [FRIT_NUMERIC_RELAXED] = "relaxed"};

const char *tune_clock_name(enum tune_clock clock)
{
    return (uint32_t)clock < TUNE_CLOCKS ? clocks[clock] : "unknown";
}

const char *tune_reason_name(enum tune_reason reason)
{
    return (uint32_t)reason < TUNE_REASONS ? reasons[reason] : "unknown";
}

const char *tune_state_name(enum tune_state state)
{
    return (uint32_t)state < TUNE_STATES ? states[state] : "unknown";
}

const char *tune_class_name(uint32_t numeric_class)
{
    return numeric_class < sizeof(classes) / sizeof(classes[0]) ? classes[numeric_class]
                                                                : "unknown";
}

/* ---- checking ---- */

static frit_status verify_text(const char *text, const char *what, frit_err *err)
{
    char clean[TUNE_TEXT_BYTES + 1];
    size_t length = text ? strlen(text) : 0;

    if (length > TUNE_TEXT_BYTES)
        return fail(err, FRIT_INVALID, "%s has %zu bytes; at most %d", what, length,
                    TUNE_TEXT_BYTES);
    text_clean(text, length, clean, sizeof(clean));
    if (length && strcmp(clean, text) != 0)
        return fail(err, FRIT_INVALID, "%s has control characters or is not UTF-8", what);
    return FRIT_OK;
}

static frit_status verify_candidate(const struct tune_candidate *candidate, frit_err *err)
{
    TRY(verify_text(candidate->identity, "the identity", err));
    TRY(verify_text(candidate->evidence, "the evidence", err));
    if (!candidate->identity || !candidate->identity[0])
        return fail(err, FRIT_INVALID, "no identity");
    if ((uint32_t)candidate->state >= TUNE_STATES)
        return fail(err, FRIT_INVALID, "state %u is unknown", (unsigned)candidate->state);
    if (candidate->numeric_class >= sizeof(classes) / sizeof(classes[0]))
        return fail(err, FRIT_INVALID, "numeric class %u is unknown",
                    (unsigned)candidate->numeric_class);
    if (candidate->n_samples > TUNE_SAMPLES)
        return fail(err, FRIT_INVALID, "%u samples; at most %d", (unsigned)candidate->n_samples,
                    TUNE_SAMPLES);
    return FRIT_OK;
}

frit_status tune_record_verify(const struct tune_record *record, frit_err *err)
{
    if (!record->key_bytes || record->key_bytes > TUNE_KEY_BYTES)
        return fail(err, FRIT_INVALID, "a key of %zu bytes; it has 1 to %d", record->key_bytes,
                    TUNE_KEY_BYTES);
    TRY(verify_text(record->what, "the label", err));
    if ((uint32_t)record->clock >= TUNE_CLOCKS || (uint32_t)record->reason >= TUNE_REASONS)
        return fail(err, FRIT_INVALID, "clock %u or reason %u is unknown", (unsigned)record->clock,
                    (unsigned)record->reason);
    if (record->n_splits > TUNE_SPLITS)
        return fail(err, FRIT_INVALID, "%u separated keys; at most %d", (unsigned)record->n_splits,
                    TUNE_SPLITS);
    if (record->n_candidates > TUNE_CANDIDATES)
        return fail(err, FRIT_INVALID, "%u candidates; at most %d", (unsigned)record->n_candidates,
                    TUNE_CANDIDATES);
    for (uint32_t i = 0; i < record->n_candidates; i++)
        TRY(verify_candidate(&record->candidates[i], err));
    return FRIT_OK;
}

bool tune_record_is_split(const struct tune_record *record, uint64_t key)
{
    for (uint32_t i = 0; i < record->n_splits; i++) {
        if (record->splits[i] == key)
            return true;
    }
    return false;
}

const struct tune_candidate *tune_record_find(const struct tune_record *record, frit_str identity,
                                              uint32_t version)
{
    char clean[TUNE_TEXT_BYTES + 1];

    text_clean(identity.ptr, identity.len, clean, sizeof(clean));
    for (uint32_t i = 0; i < record->n_candidates; i++) {
        if (record->candidates[i].version == version &&
            strcmp(record->candidates[i].identity, clean) == 0)
            return &record->candidates[i];
    }
    return NULL;
}

/* ---- copying ---- */

/* In memory of its own, which is freed whole. */
struct owned_record {
    struct tune_record record; /* first */
    struct arena arena;
};

/* A clean copy of at most `max_bytes`; NULL if there is no memory. */
static const char *copy_text(struct arena *arena, const char *text, size_t max_bytes)
{
    const size_t length = text ? strlen(text) : 0;
    const size_t size = (length < max_bytes ? length : max_bytes) + 1;
    char *copy = arena_alloc(arena, size);

    if (copy)
        text_clean(text, length, copy, size);
    return copy;
}

static bool copy_candidate(struct arena *arena, const struct tune_candidate *from,
                           struct tune_candidate *to)
{
    const size_t bytes = from->n_samples * sizeof(*from->samples);
    uint64_t *samples = arena_array(arena, from->n_samples, sizeof(*samples));

    *to = *from;
    to->identity = copy_text(arena, from->identity, SIZE_MAX / 2);
    to->evidence = copy_text(arena, from->evidence, TUNE_TEXT_BYTES);
    to->samples = samples;
    if (!to->identity || !to->evidence || !samples)
        return false;
    if (bytes)
        memcpy(samples, from->samples, bytes);
    return true;
}

static bool copy_into(struct owned_record *owned, const struct tune_record *from)
{
    struct tune_record *to = &owned->record;
    struct tune_candidate *candidates =
        arena_array(&owned->arena, from->n_candidates, sizeof(*candidates));
    uint64_t *splits = arena_array(&owned->arena, from->n_splits, sizeof(*splits));
    void *key = arena_alloc(&owned->arena, from->key_bytes);

    *to = *from;
    to->splits = splits;
    to->what = copy_text(&owned->arena, from->what, TUNE_TEXT_BYTES);
    to->candidates = candidates;
    to->key = key;
    if (!key || !splits || !candidates || !to->what)
        return false;
    if (from->n_splits)
        memcpy(splits, from->splits, from->n_splits * sizeof(*splits));
    if (from->key_bytes)
        memcpy(key, from->key, from->key_bytes);
    for (uint32_t i = 0; i < from->n_candidates; i++) {
        if (!copy_candidate(&owned->arena, &from->candidates[i], &candidates[i]))
            return false;
    }
    return true;
}

frit_status tune_record_copy(const struct tune_record *from, struct tune_record **out,
                             frit_err *err)
{
    struct owned_record *owned = calloc(1, sizeof(*owned));
    frit_status status = FRIT_OK;

    *out = NULL;
    if (!owned || !copy_into(owned, from))
        status = fail_memory(err, sizeof(*owned));
    else
        status = tune_record_verify(&owned->record, err);
    if (!status)
        *out = &owned->record;
    else if (owned)
        tune_record_destroy(&owned->record);
    return status;
}

void tune_record_destroy(struct tune_record *record)
{
    struct owned_record *owned = (struct owned_record *)record;

    if (!owned)
        return;
    arena_fini(&owned->arena);
    free(owned);
}
