/* SPDX-License-Identifier: Apache-2.0 */
#include "run/tune.h"

#include <stdio.h>
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
#include "load/breadcrumb.h"
#include "load/registry.h"
#include "load/tried.h"
#include "plan/program.h"
#include "run/batch.h"
#include "run/frame.h"
#include "run/launch.h"
#include "run/launch_parts.h"
#include "run/parts.h"
#include "run/trial.h"
#include "search/fuser.h"
#include "tune/contest.h"
#include "tune/record.h"
#include "tune/store.h"

enum {
    MIN_SAMPLES = 5,
    MAX_DEATHS = 2,     /* the first may have been the user's doing */
    SAMPLE_NS = 200000, /* of one submit: shorter launches are repeated in it */
    MAX_REPEATS = 64
};

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

static bool is_parts(const struct tune_candidate *known)
{
    return known->version == 0 && strcmp(known->identity, TUNE_PARTS) == 0;
}

/* Whether the block is better run in parts than by the candidates that come after `known`. */
static bool wins_in_parts(const struct launch *l, const struct candidates *order,
                          const struct tune_candidate *known)
{
    return is_parts(known) && known->state == TUNE_RIGHT && parts_may_run(l, order->numeric_class);
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
            order->chosen = "measured";
    }
}

/* ---- measuring ---- */

struct measuring {
    struct launch *launch;
    const uint8_t *digest;
    struct launch_trial *trial;
    const struct candidates *order;
    struct contest contest;
    uint32_t n; /* the candidates, then the block in parts where it may run so */
    struct contestant *contestants; /* as in `order` */
    struct tune_candidate *found;   /* likewise */
    const char **names;             /* likewise: of their trials */
    struct trial_time last;
    uint64_t until; /* by the clock */
};

static enum tune_state state_of(enum trial_finding finding)
{
    static const enum tune_state states[] = {
        [TRIAL_RIGHT] = TUNE_RIGHT,   [TRIAL_REFUSED] = TUNE_REFUSED, [TRIAL_FAILED] = TUNE_FAILED,
        [TRIAL_SILENT] = TUNE_SILENT, [TRIAL_BEYOND] = TUNE_WRONG,    [TRIAL_WRONG] = TUNE_WRONG};

    return states[finding];
}

/* What a process that tries it is in, with a slash in front as the files of plugins have. */
static const char *name_of_trial(const struct measuring *m, const frit_candidate *candidate)
{
    char text[2 * TUNE_DIGEST + 32];
    int at = snprintf(text, sizeof(text), "/");

    for (int i = 0; i < TUNE_DIGEST; i++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, "%02x", m->digest[i]);
    (void)snprintf(
        text + at, sizeof(text) - (size_t)at, "/%016llx/%u",
        (unsigned long long)XXH3_64bits(candidate->identity.ptr, candidate->identity.len),
        candidate->version);
    return arena_text(&m->launch->batch->arena, text, strlen(text));
}

static uint32_t number_of(const struct measuring *m, uint32_t i)
{
    return i < m->order->count ? m->order->list[i] : TRIAL_PARTS;
}

static const frit_candidate *candidate_of(const struct measuring *m, uint32_t i)
{
    static const frit_candidate parts = {.struct_size = sizeof(parts),
                                         .numeric_class = FRIT_NUMERIC_REORDERED,
                                         .identity = FRIT_STR_INIT(TUNE_PARTS)};

    return i < m->order->count ? prepared_cache_candidate(m->launch->call->cache, m->order->list[i])
                               : &parts;
}

static bool is_over(const struct measuring *m)
{
    return clock_ns() >= m->until;
}

static void describe(struct measuring *m, uint32_t i)
{
    const frit_candidate *candidate = candidate_of(m, i);

    m->found[i] = (struct tune_candidate){
        .identity =
            arena_text(&m->launch->batch->arena, candidate->identity.ptr, candidate->identity.len),
        .version = candidate->version,
        .numeric_class = candidate->numeric_class,
        .state = TUNE_UNTRIED};
}

static void leave_with(struct measuring *m, uint32_t i, enum tune_state state, const char *why)
{
    if (tune_state_is_quarantined(state))
        atomic_fetch_add(&m->launch->frame->device->count.quarantined, 1);
    m->found[i].state = state;
    m->found[i].evidence = arena_text(&m->launch->batch->arena, why, strlen(why));
    log_write(tune_state_is_quarantined(state) || state == TUNE_FAILED ? FRIT_LOG_WARN
                                                                       : FRIT_LOG_DEBUG,
              "tune", "%s: %s: candidate %s is %s: %s", m->launch->frame->device->name,
              m->launch->call->label, m->found[i].identity,
              number_of(m, i) ? "not used" : "used all the same, as the first", why);
}

/* Runs it for the first time; false: it does not take part. */
static bool run_check(struct measuring *m, uint32_t i)
{
    frit_err why = ERR_INIT, err = ERR_INIT;
    enum trial_finding finding;

    if (trial_check(m->trial, number_of(m, i), m->found[i].numeric_class, &finding, &why, &err)) {
        leave_with(m, i, TUNE_UNTRIED, err.text);
        return false;
    }
    m->found[i].state = state_of(finding);
    if (finding != TRIAL_RIGHT)
        leave_with(m, i, state_of(finding), why.text);
    return finding == TRIAL_RIGHT;
}

/* Compares a candidate before it is measured, unless processes died of that. */
static bool check_candidate(struct measuring *m, uint32_t i)
{
    const struct tune_config *config = &m->launch->frame->device->config.tune;
    const char *name = name_of_trial(m, candidate_of(m, i));
    const uint32_t deaths = name ? tried_deaths(config->artefacts, name) : 0;
    unsigned place;
    bool right;

    describe(m, i);
    if (!name || !m->found[i].identity || (i && is_over(m)))
        return false;
    if (deaths >= MAX_DEATHS) {
        leave_with(m, i, TUNE_CRASHED, "processes ended while they tried it");
        return false;
    }
    m->names[i] = name;
    log_write(FRIT_LOG_DEBUG, "tune", "%s: %s: %s is tried", m->launch->frame->device->name,
              m->launch->call->label, m->found[i].identity);
    place = breadcrumb_enter(name, TRIED_SLOT, BREADCRUMB_BLAMED);
    right = run_check(m, i);
    breadcrumb_leave(place);
    if (deaths)
        tried_set_deaths(config->artefacts, config->artefact_bytes, name, 0);
    return right;
}

/* Priorities order a program's candidates where nothing was measured; here all are in one batch. */
static void check_candidates(struct measuring *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        m->contestants[i].priority = check_candidate(m, i) ? 0 : -1;
}

static uint32_t repeats(uint64_t ns)
{
    const uint64_t n = ns ? SAMPLE_NS / ns : MAX_REPEATS;

    return n < 1 ? 1 : n > MAX_REPEATS ? MAX_REPEATS : (uint32_t)n;
}

static frit_status time_candidate(struct measuring *m, const struct contest_turn *turn,
                                  frit_err *err)
{
    const struct contestant *one = &m->contestants[turn->candidate];
    const uint32_t n = turn->is_warm_up ? 1 : repeats(one->n_samples ? one->best_ns : m->last.ns);
    const unsigned place =
        breadcrumb_enter(m->names[turn->candidate], TRIED_SLOT, BREADCRUMB_BLAMED);
    frit_status st = trial_time(m->trial, number_of(m, turn->candidate), n, &m->last, err);

    breadcrumb_leave(place);
    return st;
}

static void take_turn(struct measuring *m, const struct contest_turn *turn)
{
    frit_err err = ERR_INIT;

    if (time_candidate(m, turn, &err)) {
        leave_with(m, turn->candidate, TUNE_FAILED, err.text);
        contest_failed(&m->contest, turn);
        return;
    }
    contest_took(&m->contest, turn, m->last.ns);
}

static void hold_contest(struct measuring *m)
{
    const struct contest_rules rules = {.min_samples = MIN_SAMPLES, .max_samples = CONTEST_SAMPLES};
    struct contest_turn turn;

    contest_begin(&m->contest, &rules, m->contestants, m->n);
    while (!is_over(m) && contest_next(&m->contest, &turn))
        take_turn(m, &turn);
}

/* Best first; then those without a time. */
static void rank(const struct measuring *m, struct tune_candidate *out)
{
    uint32_t *ranking = arena_array(&m->launch->batch->arena, m->n, sizeof(*ranking));
    uint32_t n = ranking ? contest_rank(&m->contest, ranking) : 0;
    bool ranked[TUNE_CANDIDATES] = {false};

    for (uint32_t r = 0; r < n; r++) {
        const struct contestant *one = &m->contestants[ranking[r]];

        ranked[ranking[r]] = true;
        out[r] = m->found[ranking[r]];
        out[r].samples = one->samples;
        out[r].n_samples = one->n_samples;
    }
    for (uint32_t i = 0; i < m->n; i++) {
        if (ranked[i])
            continue;
        out[n] = m->found[i];
        if (out[n].state == TUNE_RIGHT)
            out[n].state = m->contestants[i].state == CONTEST_OUT ? TUNE_SLOW : TUNE_UNTRIED;
        n++;
    }
}

static uint64_t best_of(const struct tune_candidate *candidate)
{
    uint64_t best = 0;

    for (uint32_t k = 0; k < candidate->n_samples; k++)
        best = !best || candidate->samples[k] < best ? candidate->samples[k] : best;
    return best;
}

static void log_decision(const struct measuring *m, const char *what,
                         const struct tune_candidate *list)
{
    const frit_device *device = m->launch->frame->device;

    log_write(FRIT_LOG_INFO, "tune", "%s: %s: %s is used, %.3f us", device->name, what,
              list[0].identity, (double)best_of(&list[0]) / 1000);
    for (uint32_t i = 1; i < m->n; i++)
        log_write(FRIT_LOG_INFO, "tune", "%s: %s: %s: %s, %.3f us", device->name, what,
                  list[i].identity, tune_state_name(list[i].state),
                  (double)best_of(&list[i]) / 1000);
}

static void keep(const struct launch *l, const struct tune_record *record)
{
    frit_err err = ERR_INIT;

    if (tune_store_add(l->frame->device->tune_store, record, &err))
        log_write(FRIT_LOG_DEBUG, "tune", "%s: %s: what was found is lost: %s",
                  l->frame->device->name, l->call->label, err.text);
}

/* What was found to be bad is not offered for any key of the program: adds it to the program's
 * record. */
static void quarantine(const struct measuring *m)
{
    const struct launch *l = m->launch;
    const struct tune_record *known = find_program(l, m->digest);
    const uint32_t n_known = known ? known->n_candidates : 0;
    struct tune_candidate *list =
        arena_array(&l->batch->arena, n_known + m->order->count, sizeof(*list));
    struct str key = {0};
    uint32_t n = n_known;

    if (!list)
        return;
    if (n_known)
        memcpy(list, known->candidates, n_known * sizeof(*list));
    for (uint32_t i = 0; i < m->order->count; i++)
        if (m->order->list[i] && tune_state_is_quarantined(m->found[i].state))
            list[n++] = m->found[i];
    tune_key_program(m->digest, &key);
    if (n > n_known && n <= TUNE_CANDIDATES && !key.failed)
        keep(l, &(struct tune_record){.key = key.text,
                                      .key_bytes = key.length,
                                      .what = l->call->label,
                                      .reason = TUNE_ONLY,
                                      .n_candidates = n,
                                      .candidates = list});
    str_fini(&key);
}

static void measure(struct measuring *m, const struct str *key, const frit_signature *sig)
{
    const uint32_t n = m->order->count + parts_may_run(m->launch, m->order->numeric_class);
    struct arena *arena = &m->launch->batch->arena;
    struct tune_candidate *list = arena_array(arena, n, sizeof(*list));
    struct str what = {0};

    m->contestants = arena_array(arena, n, sizeof(*m->contestants));
    m->found = arena_array(arena, n, sizeof(*m->found));
    m->names = arena_array(arena, n, sizeof(*m->names));
    if (!list || !m->contestants || !m->found || !m->names || n > TUNE_CANDIDATES)
        return;
    m->n = n;
    check_candidates(m);
    hold_contest(m);
    rank(m, list);
    str_addf(&what, "%s ", m->launch->call->label);
    tune_key_print(sig, &what);
    if (m->order->numeric_class != m->launch->frame->device->config.numeric_class)
        str_addf(&what, ", %s", tune_class_name(m->order->numeric_class));
    keep(m->launch,
         &(struct tune_record){.key = key->text,
                               .key_bytes = key->length,
                               .what = what.text,
                               .clock = m->last.from_device ? TUNE_DEVICE_CLOCK : TUNE_HOST_CLOCK,
                               .reason = is_over(m) ? TUNE_BUDGET : TUNE_MEASURED,
                               .n_candidates = n,
                               .candidates = list});
    quarantine(m);
    atomic_fetch_add(&m->launch->frame->device->count.tuned, 1);
    log_decision(m, what.text, list);
    str_fini(&what);
}

/* One thread, and one process, measures a key. */
static void measure_once(struct launch *l, const uint8_t *digest, const struct str *key,
                         const frit_signature *sig, const struct candidates *order)
{
    struct tune_store *store = l->frame->device->tune_store;
    struct measuring m = {.launch = l, .digest = digest, .order = order};
    uint64_t begun;
    frit_err err = ERR_INIT;

    if (!tune_store_claim(store, key->text, key->length))
        return;
    begun = timeline_begin();
    m.until = clock_ns() + l->frame->device->config.tune.budget_ms * 1000000;
    if (trial_create(l, &m.trial, &err))
        log_write(FRIT_LOG_DEBUG, "tune", "%s: %s is not measured: %s", l->frame->device->name,
                  l->call->label, err.text);
    else
        measure(&m, key, sig);
    trial_destroy(m.trial);
    timeline_end(begun, "tune", str_of(l->call->label));
    tune_store_release(store, key->text, key->length);
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
static bool may_measure(const struct launch *l)
{
    const frit_device *device = l->frame->device;
    const uint32_t fuser = l->call->program->fuser;

    return device->measures && !l->ahead && !l->frame->is_trial &&
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

/* The order of the key's record, which is made now if there is none and it may be. */
static void decide(struct launch *l, const uint8_t *digest, const frit_signature *sig,
                   struct candidates *order)
{
    const struct tune_config *config = &l->frame->device->config.tune;
    struct tune_store *store = l->frame->device->tune_store;
    const struct tune_record *record;
    struct str key = {0};

    tune_key(digest, sig, config->level, order->numeric_class, &key);
    if (!key.failed) {
        record = tune_store_find(store, key.text, key.length);
        if (!record && may_measure(l)) {
            measure_once(l, digest, &key, sig, order);
            record = tune_store_find(store, key.text, key.length);
        }
        if (!record)
            record = find_looser(l, digest, sig, order->numeric_class);
        if (record)
            apply(l, record, order);
    }
    str_fini(&key);
}

void launch_tune(struct launch *l, const frit_signature *sig, struct candidates *order)
{
    const struct tune_record *bad;
    uint8_t own[TUNE_DIGEST];
    const uint8_t *digest;

    if (force(l, order) || l->frame->device->config.tune.level == TUNE_OFF || l->copy_of ||
        (!may_measure(l) && tune_store_is_empty(l->frame->device->tune_store)) ||
        !(digest = digest_of(l, own)))
        return;
    bad = find_program(l, digest);
    if (bad)
        apply(l, bad, order);
    if (order->count > 1 || parts_may_run(l, order->numeric_class))
        decide(l, digest, sig, order);
}
