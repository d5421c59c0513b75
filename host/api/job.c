/* SPDX-License-Identifier: Apache-2.0 */
#include "api/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/host.h"
#include "base/fail.h"
#include "conf/conf.h"
#include "job/job.h"
#include "job/place.h"
#include "job/program.h"
#include "load/registry.h"
#include "run/rank.h"

enum { MAX_FACTS = 64, FACT_NAME = 80, MAX_ANNOUNCED = 256 };
static const uint64_t ms = 1000000,
                      news_ns = 300000000u; /* an engine may notice a loss before the job does */

/* A rank of a group of the whole job. */
struct host_rank {
    struct host_rank *next;
    struct host_job *job;
    struct job_member *member;
    struct frit_rank *rank; /* NULL: it is joined just now */
    struct job_wait wait;
    uint32_t first, n_announced; /* a ring */
    struct announced {
        uint64_t elements;
        struct job_place place;
    } announced[MAX_ANNOUNCED];
};

void host_job_init(struct host_job *job)
{
    pthread_mutex_init(&job->opening, NULL);
    pthread_mutex_init(&job->lock, NULL);
}

void host_job_fini(struct host_job *job)
{
    job_close(job->member);
    pthread_mutex_destroy(&job->opening);
    pthread_mutex_destroy(&job->lock);
}

static struct job_member *member_of(frit_host *host)
{
    struct job_member *member;

    pthread_mutex_lock(&host->job.lock);
    member = host->job.member;
    pthread_mutex_unlock(&host->job.lock);
    return member;
}

frit_status host_job_desc(frit_host *host, frit_job_desc *out, frit_err *err)
{
    const struct conf_options *options = conf_options(host->conf);
    struct job_member *member = member_of(host);
    uint32_t generation;

    *out = (frit_job_desc){
        .rank = (uint32_t)options->dist_rank,
        .size = (uint32_t)options->dist_size,
        .store = strcmp(options->dist_store, "none") == 0 ? NULL : options->dist_store,
    };
    if (member)
        job_where(member, &out->rank, &out->size, &generation);
    return out->rank < out->size ? FRIT_OK
                                 : fail(err, FRIT_INVALID,
                                        "[dist] rank %u of size %u; ranks are 0..size-1; `frit "
                                        "doctor config` says where they are from",
                                        out->rank, out->size);
}

/* ---- entering the job ---- */

struct facts {
    struct job_fact list[MAX_FACTS];
    uint32_t n;
    char names[MAX_FACTS][FACT_NAME];
    char program[PROGRAM_TEXT];
};

static void add(struct facts *facts, const char *name, const char *value)
{
    if (facts->n < MAX_FACTS)
        facts->list[facts->n++] = (struct job_fact){name, value};
}

static void fill_facts(const frit_host *host, struct facts *facts)
{
    const struct plugin *plugin;

    facts->n = 0;
    program_text(facts->program);
    add(facts, "program", facts->program);
    add(facts, "version of Frit", FRIT_VERSION);
    for (uint32_t i = 0; (plugin = registry_plugin_at(host->registry, i)); i++) {
        if (!plugin->root || facts->n == MAX_FACTS)
            continue;
        snprintf(facts->names[facts->n], FACT_NAME, "version of plugin %s", plugin->id);
        add(facts, facts->names[facts->n], plugin->version);
    }
}

/* The first failure anywhere ends the groups of the whole job.  By the thread of the job. */
static void end_ranks(void *ctx, const frit_err *why)
{
    struct host_job *job = ctx;

    pthread_mutex_lock(&job->lock);
    for (struct host_rank *rank = job->ranks; rank; rank = rank->next) {
        if (rank->rank)
            rank_abort(rank->rank, why->status, why->text);
    }
    pthread_mutex_unlock(&job->lock);
}

static frit_status open_job(frit_host *host, const frit_job_desc *desc, frit_err *err)
{
    const struct conf_options *options = conf_options(host->conf);
    const bool has_token = strcmp(options->dist_token, "none") != 0;
    struct job_config config = {.rank = desc->rank,
                                .size = desc->size,
                                .store = desc->store,
                                .token = has_token ? options->dist_token : "",
                                .connect_ns = (uint64_t)options->dist_connect * ms,
                                .heartbeat_ns = (uint64_t)options->dist_heartbeat * ms,
                                .suspect_ns = (uint64_t)options->dist_suspect * ms,
                                .dead_ns = (uint64_t)options->dist_dead * ms,
                                .warn_ns = (uint64_t)options->dist_warn * ms};
    struct facts *facts = calloc(1, sizeof(*facts));
    struct job_member *member;
    frit_status st;

    if (!facts)
        return fail_memory(err, sizeof(*facts));
    fill_facts(host, facts);
    config.facts = facts->list;
    config.n_facts = facts->n;
    st = job_open(&config, &member, err);
    free(facts);
    if (st)
        return fail_context(err, "job of %u ranks", desc->size);
    pthread_mutex_lock(&host->job.lock);
    host->job.member = member;
    pthread_mutex_unlock(&host->job.lock);
    job_watch(member, end_ranks, &host->job);
    return job_failure(member, 0, err); /* another rank may have failed meanwhile */
}

/* After a failure the job goes on with the ranks that are left, once all of them have come here:
 * some may wait for this one in a group that is not complete, until their time limit. */
static frit_status rebuild_job(struct host_job *job, uint64_t timeout_ns, frit_err *err)
{
    frit_err failure = ERR_INIT;

    if (!job_failure(job->member, 0, &failure))
        return FRIT_OK;
    if (job_rebuild(job->member, timeout_ns < UINT64_MAX / 2 ? 2 * timeout_ns : timeout_ns, err))
        return fail_context(err, "the job has failed: %s", failure.text);
    pthread_mutex_lock(&job->lock);
    job->n_groups = 0;
    pthread_mutex_unlock(&job->lock);
    return FRIT_OK;
}

static frit_status enter(frit_host *host, uint64_t timeout_ns, frit_err *err)
{
    frit_job_desc desc;
    frit_status st = FRIT_OK;

    TRY(host_job_desc(host, &desc, err));
    if (!desc.store)
        return FRIT_OK;
    pthread_mutex_lock(&host->job.opening);
    st = host->job.member ? rebuild_job(&host->job, timeout_ns, err) : open_job(host, &desc, err);
    pthread_mutex_unlock(&host->job.opening);
    return st;
}

/* The same on all processes of the job, where each joins its groups in the same order. */
static void make_id(frit_host *host, const frit_group_config *config, frit_group_id *out)
{
    uint64_t words[4] = {config->number, config->size};
    struct job_member *member = member_of(host);
    uint32_t rank, size, generation = 0;

    pthread_mutex_lock(&host->job.lock);
    words[2] = ++host->job.n_groups;
    pthread_mutex_unlock(&host->job.lock);
    if (member)
        job_where(member, &rank, &size, &generation);
    words[3] = generation;
    *out = (frit_group_id){"frit job"};
    memcpy(out->bytes + 16, words, sizeof(words));
}

frit_status host_job_join(frit_host *host, const frit_group_config *config, uint64_t timeout_ns,
                          frit_group_id *id, frit_err *err)
{
    frit_job_desc desc;

    TRY(host_job_desc(host, &desc, err));
    if (config->rank != desc.rank || config->size != desc.size)
        return fail(err, FRIT_INVALID,
                    "no id; frit_group_id_create makes one, which all ranks are given");
    TRY(enter(host, timeout_ns, err));
    TRY(host_job_desc(host, &desc, err));
    if (config->rank != desc.rank || config->size != desc.size)
        return fail(err, FRIT_PEER_LOST,
                    "the job has lost ranks: this process is rank %u of %u now (frit_job_info)",
                    desc.rank, desc.size);
    make_id(host, config, id);
    return FRIT_OK;
}

/* ---- ranks ---- */

/* Operations run in the order in which they are recorded; those that were not announced are the
 * program's own. */
static void take_announced(struct host_rank *rank, uint64_t elements, struct job_place *out)
{
    const struct announced *first = &rank->announced[rank->first];

    pthread_mutex_lock(&rank->job->lock);
    if (rank->n_announced && first->elements == elements) {
        *out = first->place;
        rank->first = (rank->first + 1) % MAX_ANNOUNCED;
        rank->n_announced--;
    }
    pthread_mutex_unlock(&rank->job->lock);
}

static void begins(void *ctx, uint64_t elements)
{
    struct host_rank *rank = ctx;
    struct job_place place = {0};

    take_announced(rank, elements, &place);
    job_progress(rank->member, place.step, place.bucket, place.n_buckets, place.span);
    job_wait_begin(rank->member, &rank->wait);
}

static void ended(void *ctx)
{
    struct host_rank *rank = ctx;

    job_wait_end(rank->member, &rank->wait);
}

/* What the job says is the reason, where it has failed: the engine only knows that the group has
 * ended.  Else all ranks are to end it: not every engine can say so to others. */
static void failed(void *ctx, frit_err *why)
{
    struct host_rank *rank = ctx;
    char behind[sizeof(why->text)];
    frit_err job = ERR_INIT;

    if (job_failure(rank->member, why->status == FRIT_PEER_LOST ? news_ns : 0, &job)) {
        *why = job;
        return;
    }
    if (why->status == FRIT_TIMEOUT) {
        job_behind(rank->member, behind, sizeof(behind));
        if (behind[0])
            fail_append(why, "; waiting for %s", behind);
    }
    job_fail(rank->member, why);
}

static void forget(struct host_rank *rank)
{
    struct host_rank **at = &rank->job->ranks;

    pthread_mutex_lock(&rank->job->lock);
    while (*at != rank)
        at = &(*at)->next;
    *at = rank->next;
    pthread_mutex_unlock(&rank->job->lock);
    free(rank);
}

static void leaves(void *ctx)
{
    forget(ctx);
}

static frit_status put(void *ctx, frit_str key, const void *value, uint64_t bytes, frit_err *err)
{
    return job_set(ctx, key, value, bytes, err);
}

static frit_status get(void *ctx, frit_str key, void *value, uint64_t capacity, uint64_t *bytes,
                       uint64_t timeout_ns, frit_err *err)
{
    size_t n = 0;
    const frit_status st = job_get(ctx, key, timeout_ns, value, capacity, &n, err);

    *bytes = n;
    return st;
}

static const struct rank_store store = {put, get};
static const struct rank_hooks hooks = {begins, ended, failed, leaves};

frit_status host_job_follow(frit_host *host, struct rank_config *config, struct host_rank **out,
                            frit_err *err)
{
    struct host_job *job = &host->job;
    struct host_rank *rank;

    *out = NULL;
    if (!job->member)
        return FRIT_OK;
    rank = calloc(1, sizeof(*rank));
    if (!rank)
        return fail_memory(err, sizeof(*rank));
    rank->job = job;
    rank->member = job->member;
    config->hooks = &hooks;
    config->hooks_ctx = rank;
    config->store = &store;
    config->store_ctx = rank->member;
    pthread_mutex_lock(&job->lock);
    rank->next = job->ranks;
    job->ranks = rank;
    pthread_mutex_unlock(&job->lock);
    *out = rank;
    return FRIT_OK;
}

/* Of a group that only some ranks have joined the others make no second one: they all begin anew.
 */
void host_job_joined(struct host_rank *rank, frit_rank *joined, const frit_err *why)
{
    frit_err failure = ERR_INIT;

    if (!rank)
        return;
    if (!joined) {
        job_fail(rank->member, why);
        forget(rank);
        return;
    }
    pthread_mutex_lock(&rank->job->lock);
    rank->rank = joined;
    if (job_failure(rank->member, 0, &failure)) /* while it joined */
        rank_abort(joined, failure.status, failure.text);
    pthread_mutex_unlock(&rank->job->lock);
}

void host_job_announce(frit_rank *rank, uint64_t elements, const struct job_place *place)
{
    struct host_rank *followed = rank->hooks == &hooks ? rank->hooks_ctx : NULL;

    if (!followed)
        return;
    pthread_mutex_lock(&followed->job->lock);
    if (followed->n_announced < MAX_ANNOUNCED)
        followed->announced[(followed->first + followed->n_announced++) % MAX_ANNOUNCED] =
            (struct announced){elements, *place};
    pthread_mutex_unlock(&followed->job->lock);
}
