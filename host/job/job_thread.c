/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a rank: heartbeats, what rank 0 sends, warnings.
 *
 * Nothing is logged and nobody is called with the lock: the program's log may wait, or call back.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "job/job_thread.h"

enum { WARN_REQUEST = 0, SILENT_BEATS = 60, LONGEST_MS = 1000 };
static const uint64_t reply_ns = 1000000000u, /* rank 0 answers a question of warn */
    end_ns = 1000000000u;                     /* for what is sent last */

/* No clock reads more than a signed number of nanoseconds. */
uint64_t job_deadline(uint64_t timeout_ns, uint64_t slack_ns)
{
    const uint64_t most = (uint64_t)INT64_MAX, now = clock_ns() + slack_ns;

    return timeout_ns > most - now ? most : now + timeout_ns;
}

bool job_wait_change(struct job_member *job, uint64_t deadline)
{
    const struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000u),
                                   .tv_nsec = (long)(deadline % 1000000000u)};

    return pthread_cond_timedwait(&job->changed, &job->lock, &until) != ETIMEDOUT;
}

void job_wake(struct job_member *job)
{
    const uint64_t one = 1;

    if (write(job->wake, &one, sizeof(one)) < 0)
        return; /* it is awake */
}

static void note(struct job_member *job, uint32_t level, const char *format, ...) FRIT_PRINTF(3, 4);

static void note(struct job_member *job, uint32_t level, const char *format, ...)
{
    va_list args;

    if (job->n_notes == JOB_NOTES)
        return;
    va_start(args, format);
    vsnprintf(job->notes[job->n_notes].text, JOB_NOTE, format, args);
    va_end(args);
    job->notes[job->n_notes++].level = level;
}

/* ---- failures ---- */

static void end_request(struct job_request *request, const frit_err *why)
{
    request->status = why->status;
    str_add(&request->reply, why->text, strlen(why->text));
    request->is_done = true;
}

static void end_requests(struct job_member *job, const frit_err *why, bool all)
{
    for (struct job_request *request = job->requests; request; request = request->next) {
        if (!request->is_done && (all || !request->outlives_failure))
            end_request(request, why);
    }
    pthread_cond_broadcast(&job->changed);
}

void job_set_failure(struct job_member *job, const frit_err *why)
{
    if (job->failure.status)
        return;
    job->failure = *why;
    job->is_failing = false;
    if (job->is_joined)
        note(job, FRIT_LOG_ERROR, "%s", why->text);
    end_requests(job, why, false);
}

/* The connection to rank 0 has ended, and with it all that comes from there. */
static void lose(struct job_member *job, int error)
{
    char reason[CHANNEL_REASON], place[JOB_PLACE_TEXT];
    frit_err why = ERR_INIT;

    if (job->is_lost)
        return;
    job->is_lost = true;
    channel_reason(error, job->config.dead_ns, reason);
    place_text(&job->place, place);
    if (job->has_ended)
        (void)fail(&why, FRIT_PEER_LOST, "rank 0 has left the job, and with it the store");
    else if (job->is_joined)
        (void)fail(&why, FRIT_PEER_LOST,
                   "rank 0 (host %s, pid %u) %s, %s%s; it held the store, so that the other ranks "
                   "are not watched any more",
                   job->first_host, job->first_pid, reason,
                   place[0] ? "at " : "before the first operation", place);
    else
        (void)fail(&why, FRIT_PEER_LOST,
                   "rank 0, or what else listens at %s, %s, before all ranks had come", job->store,
                   reason);
    if (!job->has_ended)
        job_set_failure(job, &why);
    end_requests(job, &why, true);
}

/* ---- what comes ---- */

static void take_joined(struct job_member *job, struct wire_reader *in)
{
    wire_read_text(in, job->first_host, sizeof(job->first_host));
    job->first_pid = wire_read_u32(in);
    if (in->failed)
        return;
    job->is_joined = true;
    pthread_cond_broadcast(&job->changed);
}

static void take_failed(struct job_member *job, struct wire_reader *in)
{
    const uint32_t generation = wire_read_u32(in);
    const frit_status status = (frit_status)wire_read_u32(in);
    char text[WIRE_TEXT];
    frit_err why = ERR_INIT;

    wire_read_text(in, text, sizeof(text));
    if (in->failed || generation != job->generation)
        return;
    (void)fail(&why, status < 0 && status_is_listed(status) ? status : FRIT_ABORTED, "%s", text);
    job_set_failure(job, &why);
}

static void take_warning(struct job_member *job, frit_str text)
{
    char place[JOB_PLACE_TEXT];

    if (!job->warn_sent)
        return;
    job->warn_sent = 0;
    place_text(&job->place, place);
    if (text.len)
        note(job, FRIT_LOG_WARN, "%s%swaiting %.0f s for %.*s", place, place[0] ? ": " : "",
             (double)(clock_ns() - job->warn_since) * 1e-9, (int)text.len, text.ptr);
}

static void take_reply(struct job_member *job, struct wire_reader *in)
{
    const uint32_t id = wire_read_u32(in);
    const frit_status status = (frit_status)wire_read_u32(in);
    const frit_str bytes = wire_read_bytes(in, WIRE_MAX);

    if (in->failed)
        return;
    if (id == WARN_REQUEST)
        take_warning(job, bytes);
    for (struct job_request *request = job->requests; request; request = request->next) {
        if (request->id != id || request->is_done)
            continue;
        request->status = status > 0 ? FRIT_INTERNAL : status;
        str_add(&request->reply, bytes.ptr, bytes.len);
        request->is_done = true;
    }
    pthread_cond_broadcast(&job->changed);
}

void job_take(void *ctx, uint32_t kind, struct wire_reader *in)
{
    struct job_member *job = ctx;

    job->heard = clock_ns();
    job->has_heard = true;
    if (kind == WIRE_JOINED)
        take_joined(job, in);
    else if (kind == WIRE_FAILED)
        take_failed(job, in);
    else if (kind == WIRE_REPLY)
        take_reply(job, in);
    else if (kind == WIRE_END)
        job->has_ended = true;
    else if (kind != WIRE_PULSE)
        in->failed = true;
}

/* ---- what goes ---- */

static void beat(struct job_member *job)
{
    size_t begin;

    if (job->is_silent && job->skipped++ % SILENT_BEATS != 0)
        return;
    begin = wire_begin(&job->channel.out, WIRE_BEAT);
    place_write(&job->channel.out, &job->place);
    wire_end(&job->channel.out, begin);
}

static void check_silence(struct job_member *job, uint64_t now)
{
    const bool is_silent = now > job->heard + job->config.suspect_ns;

    if (is_silent && !job->is_silent)
        note(job, FRIT_LOG_WARN,
             "no heartbeat from rank 0 (host %s, pid %u) for %.1f s but its kernel still answers: "
             "stopped, swapping or in a debugger",
             job->first_host, job->first_pid, (double)(now - job->heard) * 1e-9);
    else if (!is_silent && job->is_silent)
        note(job, FRIT_LOG_INFO, "rank 0 (host %s, pid %u) sends heartbeats again", job->first_host,
             job->first_pid);
    job->is_silent = is_silent;
}

void job_write_behind(struct job_member *job, uint32_t request, bool is_error)
{
    struct str *out = &job->channel.out;
    const size_t begin = wire_begin(out, WIRE_BEHIND);

    wire_u32(out, request);
    wire_u32(out, is_error);
    place_write(out, &job->place);
    wire_end(out, begin);
}

/* The first operation that is late; one question at a time. */
static void check_waits(struct job_member *job, uint64_t now)
{
    if (job->warn_sent && now > job->warn_sent + reply_ns) {
        if (!job->is_silent)
            note(job, FRIT_LOG_WARN, "waiting %.0f s for others, and rank 0 does not say for whom",
                 (double)(now - job->warn_since) * 1e-9);
        job->warn_sent = 0;
    }
    for (struct job_wait *wait = job->waits; wait && !job->warn_sent; wait = wait->next) {
        if (wait->is_reported || now < wait->since + job->config.warn_ns)
            continue;
        wait->is_reported = true;
        if (job->is_silent) /* rank 0, which was named then */
            continue;
        job->warn_sent = now;
        job->warn_since = wait->since;
        job_write_behind(job, WARN_REQUEST, false);
    }
}

static void tick(struct job_member *job, uint64_t now)
{
    if (!job->is_joined || job->is_lost || now < job->next_beat)
        return;
    job->next_beat = now + job->config.heartbeat_ns;
    check_silence(job, now);
    if (job->config.warn_ns)
        check_waits(job, now);
    beat(job);
}

/* ---- the loop ---- */

/* Takes the lock off to log and to call the watcher. */
static void report(struct job_member *job)
{
    struct job_note notes[JOB_NOTES];
    const uint32_t n = job->n_notes;
    const bool calls = job->failure.status && job->watch && !job->is_watched && job->is_joined;
    void (*watch)(void *ctx, const frit_err *why) = job->watch;
    void *ctx = job->watch_ctx;
    const frit_err why = job->failure;

    if (!n && !calls)
        return;
    memcpy(notes, job->notes, n * sizeof(notes[0]));
    job->n_notes = 0;
    job->is_watched |= calls;
    pthread_mutex_unlock(&job->lock);
    for (uint32_t i = 0; i < n; i++)
        log_write(notes[i].level, "job", "%s", notes[i].text);
    if (calls)
        watch(ctx, &why);
    pthread_mutex_lock(&job->lock);
}

static int timeout_ms(const struct job_member *job, uint64_t now)
{
    uint64_t ms;

    if (!job->is_joined || job->is_lost)
        return LONGEST_MS;
    ms = job->next_beat <= now ? 0 : (job->next_beat - now) / 1000000 + 1;
    return ms < LONGEST_MS ? (int)ms : LONGEST_MS;
}

/* This process did not run for a while, for which nobody else is to blame. */
static void excuse(struct job_member *job, uint64_t now)
{
    job->heard = now;
    for (struct job_wait *wait = job->waits; wait; wait = wait->next)
        wait->since = now;
}

static void wait_for_something(struct job_member *job, uint64_t now)
{
    const int ms = timeout_ms(job, now);
    const short out = channel_wants_to_send(&job->channel) && !job->is_lost ? POLLOUT : 0;
    struct pollfd polled[2] = {
        {.fd = job->wake, .events = POLLIN},
        {.fd = job->is_lost ? -1 : job->channel.fd, .events = (short)(POLLIN | out)}};
    uint64_t woke, count;

    pthread_mutex_unlock(&job->lock);
    (void)poll(polled, 2, ms);
    pthread_mutex_lock(&job->lock);
    woke = clock_ns();
    if (polled[0].revents && read(job->wake, &count, sizeof(count)) < 0)
        count = 0;
    if (woke > now + (uint64_t)ms * 1000000 + job->config.suspect_ns / 2)
        excuse(job, woke);
}

static void receive(struct job_member *job)
{
    int error = channel_read(&job->channel, WIRE_MAX + 4);
    const int wrong = channel_each(&job->channel, job_take, job);

    error = wrong ? wrong : error;
    if (error)
        lose(job, error);
}

static void leave(struct job_member *job)
{
    if (job->is_lost)
        return;
    wire_end(&job->channel.out, wire_begin(&job->channel.out, WIRE_LEAVE));
    channel_end(&job->channel, end_ns);
}

void *job_run(void *ctx)
{
    struct job_member *job = ctx;

    pthread_mutex_lock(&job->lock);
    while (!job->stops) {
        const uint64_t now = clock_ns();
        int error;

        tick(job, now);
        error = job->is_lost ? 0 : channel_send(&job->channel);
        /* What it has sent before it ended says more than that it has. */
        if (error && error != EPIPE && error != ECONNRESET)
            lose(job, error);
        report(job);
        if (job->stops)
            break;
        wait_for_something(job, now);
        if (!job->is_lost)
            receive(job);
    }
    leave(job);
    pthread_mutex_unlock(&job->lock);
    return NULL;
}
