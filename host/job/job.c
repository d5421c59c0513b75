/* SPDX-License-Identifier: Apache-2.0 */
#include "job/job.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/thread.h"
#include "job/job_thread.h"

static const uint64_t slack_ns = 5000000000u, /* rank 0 reports who is missing a little later */
    retry_ns = 50000000u;

/* ---- all of the process ---- */

/* Changed by single stores, so that the child of a fork finds a whole list. */
static struct {
    pthread_mutex_t lock;
    struct job_member *first;
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void link_job(struct job_member *job)
{
    pthread_mutex_lock(&jobs.lock);
    job->next = jobs.first;
    jobs.first = job;
    pthread_mutex_unlock(&jobs.lock);
}

static void unlink_job(struct job_member *job)
{
    struct job_member **at = &jobs.first;

    pthread_mutex_lock(&jobs.lock);
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    pthread_mutex_unlock(&jobs.lock);
}

void job_bar(void)
{
    for (const struct job_member *job = jobs.first; job; job = job->next) {
        if (job->channel.fd >= 0)
            close(job->channel.fd);
        if (job->server)
            server_close_inherited(job->server);
    }
    jobs.first = NULL;
}

/* ---- opening ---- */

frit_status job_check(const struct job_config *config, frit_err *err)
{
    if (config->size < 1 || config->rank >= config->size)
        return fail(err, FRIT_INVALID, "rank %u of %u; ranks are 0..size-1", config->rank,
                    config->size);
    if (strlen(config->token) > WIRE_TOKEN)
        return fail(err, FRIT_INVALID, "[dist] token has %zu bytes; it must have at most %d",
                    strlen(config->token), WIRE_TOKEN);
    return address_check(config->store, err);
}

static void own_place(void *ctx, struct job_place *out)
{
    struct job_member *job = ctx;

    pthread_mutex_lock(&job->lock);
    *out = job->place;
    pthread_mutex_unlock(&job->lock);
}

static frit_status start_server(struct job_member *job, const struct job_config *config, int *fd,
                                frit_err *err)
{
    struct server_config server = {.roster = {.size = config->size,
                                              .deadline = clock_ns() + config->connect_ns,
                                              .heartbeat_ns = config->heartbeat_ns,
                                              .suspect_ns = config->suspect_ns,
                                              .dead_ns = config->dead_ns,
                                              .own_place = own_place,
                                              .ctx = job},
                                   .store = config->store};

    memcpy(server.token, config->token, strlen(config->token));
    return server_start(&server, &job->server, fd, err);
}

static void write_greeting(struct str *out, const char *token)
{
    static const char zeros[WIRE_TOKEN];
    const size_t length = strlen(token);

    str_add(out, WIRE_MAGIC, strlen(WIRE_MAGIC));
    str_add(out, token, length);
    str_add(out, zeros, sizeof(zeros) - length);
}

static void write_hello(struct str *out, const struct job_config *config, uint64_t limit_ns)
{
    char host[65] = "?";
    const size_t begin = wire_begin(out, WIRE_HELLO);

    (void)gethostname(host, sizeof(host) - 1);
    wire_u32(out, config->rank);
    wire_u32(out, config->size);
    wire_u32(out, (uint32_t)getpid());
    wire_u64(out, limit_ns);
    wire_text(out, host);
    wire_u32(out, config->n_facts);
    for (uint32_t i = 0; i < config->n_facts; i++) {
        wire_text(out, config->facts[i].name);
        wire_text(out, config->facts[i].value);
    }
    wire_end(out, begin);
}

static frit_status connect_to_first(struct job_member *job, const struct job_config *config,
                                    uint64_t deadline, frit_err *err)
{
    uint64_t now;
    int fd = -1;

    if (config->rank == 0)
        TRY(start_server(job, config, &fd, err));
    else
        TRY(address_connect(config->store, deadline, &fd, err));
    channel_init(&job->channel, fd, config->dead_ns);
    now = clock_ns();
    if (config->rank != 0)
        write_greeting(&job->channel.out, config->token);
    write_hello(&job->channel.out, config, now < deadline ? deadline - now : 0);
    return job->channel.out.failed ? fail_memory(err, WIRE_MAX) : FRIT_OK;
}

static frit_status wait_joined(struct job_member *job, uint64_t deadline, frit_err *err)
{
    frit_status st = FRIT_OK;
    bool is_time = true;

    pthread_mutex_lock(&job->lock);
    while (!job->is_joined && !job->failure.status && is_time)
        is_time = job_wait_change(job, deadline);
    if (!job->is_joined && job->failure.status)
        st = fail(err, job->failure.status, "%s", job->failure.text);
    else if (!job->is_joined)
        st = fail(err, FRIT_TIMEOUT, "rank 0 at %s does not answer", job->store);
    pthread_mutex_unlock(&job->lock);
    return st;
}

static frit_status start(struct job_member *job, const struct job_config *config, frit_err *err)
{
    const uint64_t deadline = job_deadline(config->connect_ns, 0);
    int error;

    TRY(connect_to_first(job, config, deadline, err));
    job->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (job->wake < 0)
        return fail(err, FRIT_IO, "no event: %s", strerror(errno));
    error = thread_start(&job->thread, job_run, job);
    if (error) {
        close(job->wake);
        job->wake = -1;
        return fail(err, FRIT_NO_HOST_MEMORY, "the thread of the job cannot be started: %s",
                    strerror(error));
    }
    return wait_joined(job, deadline + slack_ns, err);
}

static struct job_member *create(const struct job_config *config)
{
    struct job_member *job = calloc(1, sizeof(*job));
    pthread_condattr_t attributes;

    if (!job)
        return NULL;
    job->config = *config;
    job->config.store = job->config.token = NULL;
    job->config.facts = NULL;
    snprintf(job->store, sizeof(job->store), "%s", config->store);
    job->rank = config->rank;
    job->size = config->size;
    job->failure = (frit_err)ERR_INIT;
    job->channel.fd = job->wake = -1;
    job->heard = clock_ns();
    pthread_mutex_init(&job->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&job->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    link_job(job);
    return job;
}

/* `again`: it may be tried again, since whoever listens there has closed the connection without a
 * word, as the store of a job does that has not ended quite. */
static frit_status open_once(const struct job_config *config, struct job_member **out, bool *again,
                             frit_err *err)
{
    struct job_member *job = create(config);
    frit_status st;

    if (!job)
        return fail_memory(err, sizeof(*job));
    st = start(job, config, err);
    *again = job->is_lost && !job->has_heard;
    if (st)
        job_close(job);
    else
        *out = job;
    return st;
}

frit_status job_open(const struct job_config *config, struct job_member **out, frit_err *err)
{
    const uint64_t deadline = job_deadline(config->connect_ns, 0);
    struct job_config rest = *config;
    bool again = true;
    frit_status st;

    *out = NULL;
    TRY(job_check(config, err));
    for (;;) {
        const uint64_t now = clock_ns();

        rest.connect_ns = now < deadline ? deadline - now : 0;
        st = open_once(&rest, out, &again, err);
        if (!st)
            (*out)->config.connect_ns = config->connect_ns;
        if (st != FRIT_PEER_LOST || !again || clock_ns() + retry_ns >= deadline)
            return st;
        poll(NULL, 0, (int)(retry_ns / 1000000));
    }
}

void job_close(struct job_member *job)
{
    if (!job)
        return;
    if (job->wake >= 0) {
        pthread_mutex_lock(&job->lock);
        job->stops = true;
        pthread_mutex_unlock(&job->lock);
        job_wake(job);
        pthread_join(job->thread, NULL);
        close(job->wake);
    }
    server_stop(job->server);
    unlink_job(job);
    channel_fini(&job->channel);
    pthread_cond_destroy(&job->changed);
    pthread_mutex_destroy(&job->lock);
    free(job);
}

/* ---- failures ---- */

static void write_failure(struct job_member *job, const frit_err *why)
{
    struct str *out = &job->channel.out;
    const size_t begin = wire_begin(out, WIRE_FAIL);

    wire_u32(out, job->generation);
    wire_u32(out, (uint32_t)why->status);
    wire_text(out, why->text);
    wire_end(out, begin);
}

void job_fail(struct job_member *job, const frit_err *why)
{
    pthread_mutex_lock(&job->lock);
    if (job->is_lost)
        job_set_failure(job, why);
    else if (!job->failure.status && !job->is_failing) {
        write_failure(job, why);
        job->is_failing = true;
    }
    pthread_mutex_unlock(&job->lock);
    job_wake(job);
}

frit_status job_failure(struct job_member *job, uint64_t timeout_ns, frit_err *err)
{
    frit_status st = FRIT_OK;
    bool is_time = true;
    uint64_t deadline;

    pthread_mutex_lock(&job->lock);
    if (job->is_failing && timeout_ns < job->config.dead_ns)
        timeout_ns = job->config.dead_ns;
    deadline = job_deadline(timeout_ns, 0);
    while (!job->failure.status && !job->is_lost && timeout_ns && is_time)
        is_time = job_wait_change(job, deadline);
    if (job->failure.status)
        st = fail(err, job->failure.status, "%s", job->failure.text);
    pthread_mutex_unlock(&job->lock);
    return st;
}

void job_watch(struct job_member *job, void (*fn)(void *ctx, const frit_err *why), void *ctx)
{
    pthread_mutex_lock(&job->lock);
    job->watch = fn;
    job->watch_ctx = ctx;
    pthread_mutex_unlock(&job->lock);
    job_wake(job);
}

void job_where(struct job_member *job, uint32_t *rank, uint32_t *size, uint32_t *generation)
{
    pthread_mutex_lock(&job->lock);
    *rank = job->rank;
    *size = job->size;
    *generation = job->generation;
    pthread_mutex_unlock(&job->lock);
}

/* ---- progress ---- */

void job_progress(struct job_member *job, uint64_t step, uint32_t bucket, uint32_t n_buckets,
                  const char *span)
{
    pthread_mutex_lock(&job->lock);
    job->place.step = step;
    job->place.bucket = bucket;
    job->place.n_buckets = n_buckets;
    snprintf(job->place.span, sizeof(job->place.span), "%s", span);
    pthread_mutex_unlock(&job->lock);
}

void job_wait_begin(struct job_member *job, struct job_wait *wait)
{
    pthread_mutex_lock(&job->lock);
    job->place.operation++;
    *wait = (struct job_wait){.next = job->waits, .since = clock_ns()};
    job->waits = wait;
    pthread_mutex_unlock(&job->lock);
}

void job_wait_end(struct job_member *job, struct job_wait *wait)
{
    struct job_wait **at = &job->waits;

    pthread_mutex_lock(&job->lock);
    while (*at && *at != wait)
        at = &(*at)->next;
    if (*at)
        *at = wait->next;
    pthread_mutex_unlock(&job->lock);
}
