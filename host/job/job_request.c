/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that rank 0 replies to: values, the next generation, who is waited for. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "job/job_thread.h"

enum { KEY_MAX = 255 };
static const uint64_t slack_ns = 1000000000u, /* rank 0 replies a little after a time limit */
    behind_ns = 500000000u;                   /* for job_behind */

static void add_request(struct job_member *job, struct job_request *request)
{
    request->id = ++job->last_request;
    request->next = job->requests;
    job->requests = request;
}

static void remove_request(struct job_member *job, const struct job_request *request)
{
    struct job_request **at = &job->requests;

    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
}

/* With the lock, after the request was written. */
static frit_status wait_reply(struct job_member *job, struct job_request *request,
                              uint64_t deadline, frit_err *err)
{
    bool is_time = true;

    job_wake(job);
    while (!request->is_done && is_time)
        is_time = job_wait_change(job, deadline);
    remove_request(job, request);
    if (!request->is_done)
        return fail(err, FRIT_TIMEOUT, "rank 0 does not answer");
    if (request->reply.failed)
        return fail_memory(err, WIRE_MAX);
    return request->status
               ? fail(err, request->status, "%.*s", (int)request->reply.length, request->reply.text)
               : FRIT_OK;
}

/* Whether rank 0 can be called; the failure of the job ends all but `outlives_failure`. */
static frit_status check_live(const struct job_member *job, bool outlives_failure, frit_err *err)
{
    if (job->failure.status && !outlives_failure)
        return fail(err, job->failure.status, "%s", job->failure.text);
    if (job->has_ended)
        return fail(err, FRIT_PEER_LOST, "rank 0 has left the job, and with it the store");
    if (job->is_lost)
        return fail(err, FRIT_PEER_LOST,
                    "rank 0, which held the store, is lost; start the job again");
    return FRIT_OK;
}

/* A generation has values of its own. */
static void write_key(struct job_member *job, frit_str key)
{
    char text[WIRE_KEY];
    const int n = snprintf(text, sizeof(text), "%u/", job->generation);

    memcpy(text + n, key.ptr, key.len);
    wire_bytes(&job->channel.out, text, (size_t)n + key.len);
}

static frit_status set(struct job_member *job, struct job_request *request, frit_str key,
                       const void *bytes, size_t n, frit_err *err)
{
    struct str *out = &job->channel.out;
    size_t begin;

    TRY(check_live(job, false, err));
    if (n > WIRE_VALUE || key.len > KEY_MAX)
        return fail(err, FRIT_INVALID, "a value of %zu bytes with a key of %zu is too long", n,
                    (size_t)key.len);
    begin = wire_begin(out, WIRE_SET);
    add_request(job, request);
    wire_u32(out, request->id);
    write_key(job, key);
    wire_bytes(out, bytes, n);
    wire_end(out, begin);
    return wait_reply(job, request, job_deadline(job->config.connect_ns, 0), err);
}

frit_status job_set(struct job_member *job, frit_str key, const void *bytes, size_t n,
                    frit_err *err)
{
    struct job_request request = {0};
    frit_status st;

    pthread_mutex_lock(&job->lock);
    st = set(job, &request, key, bytes, n, err);
    pthread_mutex_unlock(&job->lock);
    str_fini(&request.reply);
    if (st)
        (void)fail_context(err, "value '%.*s' of the job", (int)key.len, key.ptr);
    return st;
}

static frit_status get(struct job_member *job, struct job_request *request, frit_str key,
                       uint64_t timeout_ns, frit_err *err)
{
    struct str *out = &job->channel.out;
    size_t begin;

    TRY(check_live(job, false, err));
    if (key.len > KEY_MAX)
        return fail(err, FRIT_INVALID, "a key of %zu bytes is too long", (size_t)key.len);
    begin = wire_begin(out, WIRE_GET);
    add_request(job, request);
    wire_u32(out, request->id);
    wire_u64(out, timeout_ns);
    write_key(job, key);
    wire_end(out, begin);
    return wait_reply(job, request, job_deadline(timeout_ns, slack_ns), err);
}

frit_status job_get(struct job_member *job, frit_str key, uint64_t timeout_ns, void *out,
                    size_t capacity, size_t *n, frit_err *err)
{
    struct job_request request = {0};
    frit_status st;

    pthread_mutex_lock(&job->lock);
    st = get(job, &request, key, timeout_ns, err);
    pthread_mutex_unlock(&job->lock);
    *n = request.reply.length;
    if (!st && *n > capacity)
        st = fail(err, FRIT_INVALID, "it has %zu bytes, more than %zu", *n, capacity);
    if (!st && *n)
        memcpy(out, request.reply.text, *n);
    str_fini(&request.reply);
    if (st)
        (void)fail_context(err, "value '%.*s' of the job", (int)key.len, key.ptr);
    return st;
}

/* ---- the next generation ---- */

static frit_status take_rebuilt(struct job_member *job, const struct job_request *request,
                                frit_err *err)
{
    struct wire_reader in = {.at = (const uint8_t *)request->reply.text,
                             .end = (const uint8_t *)request->reply.text + request->reply.length};
    const uint32_t generation = wire_read_u32(&in), rank = wire_read_u32(&in),
                   size = wire_read_u32(&in);

    wire_read_text(&in, job->first_host, sizeof(job->first_host));
    job->first_pid = wire_read_u32(&in);
    if (in.failed || rank >= size)
        return fail(err, FRIT_INTERNAL, "rank 0 replies something else");
    job->generation = generation;
    job->rank = rank;
    job->size = size;
    job->place = (struct job_place){0};
    job->failure = (frit_err)ERR_INIT;
    job->is_watched = false;
    return FRIT_OK;
}

static frit_status rebuild(struct job_member *job, struct job_request *request, uint64_t timeout_ns,
                           frit_err *err)
{
    struct str *out = &job->channel.out;
    size_t begin;

    if (!job->failure.status)
        return fail(err, FRIT_INVALID, "the job has not failed");
    TRY(check_live(job, true, err));
    begin = wire_begin(out, WIRE_REBUILD);
    add_request(job, request);
    wire_u32(out, request->id);
    wire_u32(out, job->generation);
    wire_u64(out, timeout_ns);
    wire_end(out, begin);
    TRY(wait_reply(job, request, job_deadline(timeout_ns, slack_ns), err));
    return take_rebuilt(job, request, err);
}

frit_status job_rebuild(struct job_member *job, uint64_t timeout_ns, frit_err *err)
{
    struct job_request request = {.outlives_failure = true};
    frit_status st;

    pthread_mutex_lock(&job->lock);
    st = rebuild(job, &request, timeout_ns, err);
    pthread_mutex_unlock(&job->lock);
    str_fini(&request.reply);
    if (st)
        (void)fail_context(err, "the job is not rebuilt");
    return st;
}

/* ---- who is waited for ---- */

void job_behind(struct job_member *job, char *out, size_t size)
{
    struct job_request request = {.outlives_failure = true};
    frit_status st = FRIT_TIMEOUT;

    out[0] = '\0';
    pthread_mutex_lock(&job->lock);
    if (!job->is_lost && !job->has_ended) {
        add_request(job, &request);
        job_write_behind(job, request.id, true);
        st = wait_reply(job, &request, job_deadline(behind_ns, 0), NULL);
    }
    if (!st && request.reply.length)
        snprintf(out, size, "%s", request.reply.text);
    else if (st == FRIT_TIMEOUT && job->rank != 0)
        snprintf(out, size, "rank 0 (host %s, pid %u): it does not answer for %.1f s",
                 job->first_host, job->first_pid, (double)(clock_ns() - job->heard) * 1e-9);
    pthread_mutex_unlock(&job->lock);
    str_fini(&request.reply);
}
