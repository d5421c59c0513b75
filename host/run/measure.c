/* SPDX-License-Identifier: Apache-2.0 */
#include "run/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"
#include "device/device.h"
#include "device/prepared_cache.h"
#include "load/breadcrumb.h"
#include "load/tried.h"
#include "run/trial_run.h"
#include "tune/store.h"

enum {
    MAX_DEATHS = 2,     /* the first may have been the user's doing */
    SAMPLE_NS = 200000, /* of one submit: shorter launches are repeated in it */
    MAX_REPEATS = 64
};

static const frit_candidate *candidate_of(const struct measure *m, uint32_t i)
{
#define OF_THE_HOST(name)                                                               \
    {                                                                                   \
        .struct_size = sizeof(frit_candidate), .numeric_class = FRIT_NUMERIC_REORDERED, \
        .identity = FRIT_STR_INIT(name)                                                 \
    }
    static const frit_candidate of_host[] = {OF_THE_HOST(TUNE_PARTS), OF_THE_HOST(TUNE_NATIVE),
                                             OF_THE_HOST(TUNE_DECOMPOSED)};

    return trial_is_in_parts(m->list[i]) ? &of_host[TRIAL_PARTS - m->list[i]]
                                         : prepared_cache_candidate(m->trial->cache, m->list[i]);
}

/* ---- checking ---- */

static enum tune_state state_of(enum trial_finding finding)
{
    static const enum tune_state states[] = {
        [TRIAL_RIGHT] = TUNE_RIGHT,   [TRIAL_REFUSED] = TUNE_REFUSED, [TRIAL_FAILED] = TUNE_FAILED,
        [TRIAL_SILENT] = TUNE_SILENT, [TRIAL_BEYOND] = TUNE_WRONG,    [TRIAL_WRONG] = TUNE_WRONG};

    return states[finding];
}

/* What a process that tries it is in, with a slash in front as the files of plugins have. */
static const char *name_of_trial(const struct measure *m, const frit_candidate *candidate)
{
    char text[2 * TUNE_DIGEST + 32];
    int at = snprintf(text, sizeof(text), "/");

    for (int i = 0; i < TUNE_DIGEST; i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%02x", m->digest[i]);
    (void)snprintf(
        text + at, sizeof(text) - (size_t)at, "/%016llx/%u",
        (unsigned long long)XXH3_64bits(candidate->identity.ptr, candidate->identity.len),
        candidate->version);
    return arena_text(&m->trial->arena, text, strlen(text));
}

static void describe(struct measure *m, uint32_t i)
{
    const frit_candidate *candidate = candidate_of(m, i);

    m->found[i] = (struct tune_candidate){
        .identity = arena_text(&m->trial->arena, candidate->identity.ptr, candidate->identity.len),
        .version = candidate->version,
        .numeric_class = candidate->numeric_class,
        .state = TUNE_UNTRIED};
}

static void leave_with(struct measure *m, uint32_t i, enum tune_state state, const char *why)
{
    const bool bad = m->checks && (tune_state_is_quarantined(state) || state == TUNE_FAILED);

    if (m->checks && tune_state_is_quarantined(state) && !trial_is_in_parts(m->list[i]))
        atomic_fetch_add(&m->device->count.quarantined, 1);
    m->found[i].state = state;
    m->found[i].evidence = arena_text(&m->trial->arena, why, strlen(why));
    log_write(bad ? FRIT_LOG_WARN : FRIT_LOG_DEBUG, "tune", "%s: %s: candidate %s is %s: %s",
              m->device->name, m->trial->label, m->found[i].identity,
              m->list[i] ? "not used" : "used all the same, as the first", why);
}

/* Runs it for the first time; false: it does not take part. */
static bool run_check(struct measure *m, uint32_t i)
{
    frit_err why = ERR_INIT, err = ERR_INIT;
    enum trial_finding finding;

    if (!m->checks) {
        m->found[i].state = TUNE_RIGHT;
        return true;
    }
    if (trial_check(m->trial, m->list[i], m->found[i].numeric_class, &finding, &why, &err)) {
        leave_with(m, i, TUNE_UNTRIED, err.text);
        return false;
    }
    m->found[i].state = state_of(finding);
    if (finding != TRIAL_RIGHT)
        leave_with(m, i, state_of(finding), why.text);
    return finding == TRIAL_RIGHT;
}

/* Compares a candidate before it is measured, unless processes died of that. */
static bool check_candidate(struct measure *m, uint32_t i)
{
    const struct tune_config *config = &m->device->config.tune;
    const char *name = name_of_trial(m, candidate_of(m, i));
    const uint32_t deaths = name ? tried_deaths(config->artefacts, name) : 0;
    unsigned place;
    bool right;

    if (!name || !m->found[i].identity)
        return false;
    if (deaths >= MAX_DEATHS) {
        leave_with(m, i, TUNE_CRASHED, "processes ended while they tried it");
        return false;
    }
    m->names[i] = name;
    log_write(FRIT_LOG_DEBUG, "tune", "%s: %s: %s is tried", m->device->name, m->trial->label,
              m->found[i].identity);
    place = breadcrumb_enter(name, TRIED_SLOT, BREADCRUMB_BLAMED);
    right = run_check(m, i);
    breadcrumb_leave(place);
    if (deaths && m->checks) /* else it has not run yet */
        tried_set_deaths(config->artefacts, config->artefact_bytes, name, 0);
    return right;
}

/* Priorities order a program's candidates where nothing was measured; here all are in one batch. */
static void check_next(struct measure *m)
{
    m->contestants[m->n_checked].priority = check_candidate(m, m->n_checked) ? 0 : -1;
    m->n_checked++;
}

bool measure_check(struct measure *m, uint64_t until)
{
    while (m->n_checked < m->n) {
        if (m->n_checked && clock_ns() >= until)
            return false;
        check_next(m);
    }
    return true;
}

/* ---- timing ---- */

static uint32_t repeats(uint64_t ns)
{
    const uint64_t n = ns ? SAMPLE_NS / ns : MAX_REPEATS;

    return n < 1 ? 1 : n > MAX_REPEATS ? MAX_REPEATS : (uint32_t)n;
}

static frit_status time_candidate(struct measure *m, const struct contest_turn *turn, frit_err *err)
{
    const struct contestant *one = &m->contestants[turn->candidate];
    const uint32_t n = turn->is_warm_up ? 1 : repeats(one->n_samples ? one->best_ns : m->last.ns);
    const unsigned place =
        breadcrumb_enter(m->names[turn->candidate], TRIED_SLOT, BREADCRUMB_BLAMED);
    frit_status st = trial_time(m->trial, m->list[turn->candidate], n, &m->last, err);

    breadcrumb_leave(place);
    return st;
}

/* Whether the launches that were timed last had the device for themselves, and were timed by the
 * clock of those before. */
static bool was_alone(struct measure *m, uint64_t n_submits, bool from_device)
{
    const uint64_t now = device_submits(m->device);
    const bool first = m->contest.spent_ns == 0;

    if (now - n_submits != 1 || !device_is_idle(m->device) ||
        (!first && m->last.from_device != from_device))
        return false;
    m->n_submits = now;
    return true;
}

static void take_turn(struct measure *m, const struct contest_turn *turn)
{
    const uint64_t n_submits = device_submits(m->device);
    const struct trial_time before = m->last;
    frit_err err = ERR_INIT;

    if (time_candidate(m, turn, &err)) {
        leave_with(m, turn->candidate, m->checks ? TUNE_FAILED : TUNE_REFUSED, err.text);
        contest_failed(&m->contest, turn);
        return;
    }
    if (m->is_shared && !was_alone(m, n_submits, before.from_device)) {
        m->last = before;
        return;
    }
    contest_took(&m->contest, turn, m->last.ns);
}

bool measure_step(struct measure *m)
{
    struct contest_turn turn;

    m->n_submits = UINT64_MAX;
    if (m->n_checked < m->n) {
        check_next(m);
        return true;
    }
    if (!m->is_held)
        contest_begin(&m->contest, &m->rules, m->contestants, m->n);
    m->is_held = true;
    if (!contest_next(&m->contest, &turn))
        return false;
    take_turn(m, &turn);
    return true;
}

bool measure_run(struct measure *m, uint64_t until)
{
    if (!measure_check(m, until))
        return false;
    while (clock_ns() < until) {
        if (!measure_step(m))
            return true;
    }
    return false;
}

/* ---- what was found ---- */

/* Best first; then those without a time, where it matters why.  Returns their number. */
static uint32_t rank(const struct measure *m, struct tune_candidate *out)
{
    uint32_t *ranking = arena_array(&m->trial->arena, m->n, sizeof(*ranking));
    uint32_t n = ranking && m->is_held ? contest_rank(&m->contest, ranking) : 0;
    bool ranked[TUNE_CANDIDATES] = {false};

    for (uint32_t r = 0; r < n; r++) {
        const struct contestant *one = &m->contestants[ranking[r]];

        ranked[ranking[r]] = true;
        out[r] = m->found[ranking[r]];
        out[r].samples = one->samples;
        out[r].n_samples = one->n_samples;
    }
    for (uint32_t i = 0; i < m->n && m->checks; i++) {
        if (ranked[i])
            continue;
        out[n] = m->found[i];
        if (out[n].state == TUNE_RIGHT)
            out[n].state = m->contestants[i].state == CONTEST_OUT ? TUNE_SLOW : TUNE_UNTRIED;
        n++;
    }
    return n;
}

static uint64_t best_of(const struct tune_candidate *candidate)
{
    uint64_t best = 0;

    for (uint32_t k = 0; k < candidate->n_samples; k++)
        best = !best || candidate->samples[k] < best ? candidate->samples[k] : best;
    return best;
}

static void log_decision(const struct measure *m, const struct tune_candidate *list, uint32_t n)
{
    const uint32_t level = m->checks ? FRIT_LOG_INFO : FRIT_LOG_DEBUG;

    if (n)
        log_write(level, "tune", "%s: %s: %s is used, %.3f us", m->device->name, m->what,
                  list[0].identity, (double)best_of(&list[0]) / 1000);
    for (uint32_t i = 1; i < n; i++)
        log_write(level, "tune", "%s: %s: %s: %s, %.3f us", m->device->name, m->what,
                  list[i].identity, tune_state_name(list[i].state),
                  (double)best_of(&list[i]) / 1000);
}

static void add_record(const struct measure *m, const struct tune_record *record)
{
    frit_err err = ERR_INIT;

    if (tune_store_add(m->device->tune_store, record, &err))
        log_write(FRIT_LOG_DEBUG, "tune", "%s: %s: what was found is lost: %s", m->device->name,
                  m->trial->label, err.text);
}

/* What was found to be bad is not offered for any key of the program: adds it to the program's
 * record. */
static void quarantine(const struct measure *m)
{
    const struct tune_record *known = NULL;
    struct tune_candidate *list;
    struct str key = {0};
    uint32_t n, n_known;

    tune_key_program(m->digest, &key);
    if (!key.failed)
        known = tune_store_find(m->device->tune_store, key.text, key.length);
    n = n_known = known ? known->n_candidates : 0;
    list = arena_array(&m->trial->arena, n_known + m->n, sizeof(*list));
    if (list && n_known)
        memcpy(list, known->candidates, n_known * sizeof(*list));
    for (uint32_t i = 0; list && i < m->n; i++) {
        const struct tune_candidate *found = &m->found[i];

        if (m->list[i] && !trial_is_in_parts(m->list[i]) &&
            tune_state_is_quarantined(found->state) &&
            !(known && tune_record_find(known, str_of(found->identity), found->version)))
            list[n++] = *found;
    }
    if (n > n_known && n <= TUNE_CANDIDATES && !key.failed)
        add_record(m, &(struct tune_record){.key = key.text,
                                            .key_bytes = key.length,
                                            .what = m->trial->label,
                                            .reason = TUNE_ONLY,
                                            .n_candidates = n,
                                            .candidates = list});
    str_fini(&key);
}

void measure_keep(struct measure *m, bool is_complete)
{
    struct tune_candidate *list = arena_array(&m->trial->arena, m->n, sizeof(*list));
    const struct tune_record *before = tune_store_find(m->device->tune_store, m->key, m->key_bytes);
    uint32_t n;

    if (!list)
        return;
    n = rank(m, list);
    add_record(
        m, &(struct tune_record){.key = m->key,
                                 .key_bytes = m->key_bytes,
                                 .what = m->what,
                                 .clock = m->last.from_device ? TUNE_DEVICE_CLOCK : TUNE_HOST_CLOCK,
                                 .reason = !is_complete        ? TUNE_BUDGET
                                           : m->contest.enough ? TUNE_LIMIT
                                                               : TUNE_MEASURED,
                                 .n_splits = before ? before->n_splits : 0,
                                 .splits = before ? before->splits : NULL,
                                 .n_candidates = n,
                                 .candidates = list});
    if (m->checks) {
        quarantine(m);
        device_note_decision(m->device);
    }
    log_decision(m, list, n);
}

/* ---- life ---- */

static frit_status init(struct measure *m, const struct measure_params *params, frit_err *err)
{
    struct arena *arena = &m->trial->arena;
    void *key = arena_alloc(arena, params->key_bytes);

    m->n = params->n;
    m->checks = params->checks;
    m->rules = params->rules;
    m->key = key;
    m->key_bytes = params->key_bytes;
    m->what = arena_text(arena, params->what, strlen(params->what));
    m->list = arena_array(arena, m->n, sizeof(*m->list));
    m->contestants = arena_array(arena, m->n, sizeof(*m->contestants));
    m->found = arena_array(arena, m->n, sizeof(*m->found));
    m->names = arena_array(arena, m->n, sizeof(*m->names));
    if (!key || !m->what || !m->list || !m->contestants || !m->found || !m->names)
        return fail_memory(err, m->n * sizeof(*m->contestants));
    memcpy(key, params->key, params->key_bytes);
    memcpy(m->digest, params->digest, sizeof(m->digest));
    memcpy(m->list, params->list, m->n * sizeof(*m->list));
    for (uint32_t i = 0; i < m->n; i++)
        describe(m, i);
    return FRIT_OK;
}

frit_status measure_create(struct launch_trial *trial, const struct measure_params *params,
                           struct measure **out, frit_err *err)
{
    struct measure *m = params->n <= TUNE_CANDIDATES ? calloc(1, sizeof(*m)) : NULL;
    frit_status st;

    *out = NULL;
    if (!m) {
        trial_destroy(trial);
        return fail_memory(err, sizeof(*m));
    }
    m->trial = trial;
    m->device = trial->device;
    st = init(m, params, err);
    if (st)
        measure_destroy(m);
    else
        *out = m;
    return st;
}

void measure_destroy(struct measure *m)
{
    if (!m)
        return;
    trial_destroy(m->trial);
    free(m);
}
