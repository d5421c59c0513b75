/* SPDX-License-Identifier: Apache-2.0 */
/* The threads start with the first stream and never end: the library stays in the process. */
#include "stream.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { THREADS = 2 /* that run what waits for nothing */, MAX_CHOICES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t operation_is_queued, operation_is_done;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct gpu_stream_object *streams; /* all of them */
static uint32_t n_waiting;                /* threads that wait for a stream or an event */
static uint32_t n_threads, n_blocked;     /* of the fake; those in calls that may wait for others */
static bool is_held;
static uint64_t random_state;

void stream_lock(void)
{
    pthread_mutex_lock(&lock);
}

void stream_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- choosing ---- */

/* xorshift64* */
static uint64_t random_number(void)
{
    if (!random_state)
        random_state = fake_gpu.seed | 1;
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 2685821657736338717u;
}

/* Whether the first operation of the stream may run, apart from its `due`. */
static bool may_run(const struct gpu_stream_object *stream)
{
    const struct operation *op = stream->first;

    if (!op || stream->is_running || stream->context->is_failing)
        return false;
    if (op->kind == OPERATION_WAIT)
        return op->event.event->reached >= op->event.number;
    if (op->kind == OPERATION_GRAPH)
        return op->graph.exec->finished + 1 == op->graph.number;
    return true;
}

/* A stream whose first operation may run now.  NULL: there is none, and *due is the time when one
 * becomes ready (UINT64_MAX: not by time alone). */
static struct gpu_stream_object *choose(uint64_t *due)
{
    struct gpu_stream_object *choices[MAX_CHOICES];
    const uint64_t now = now_ns();
    uint32_t n = 0;

    *due = UINT64_MAX;
    for (struct gpu_stream_object *s = streams; s && !is_held; s = s->next) {
        if (!may_run(s))
            continue;
        if (n_waiting || s->first->due <= now) {
            if (n < MAX_CHOICES)
                choices[n++] = s;
        } else if (s->first->due < *due) {
            *due = s->first->due;
        }
    }
    return n ? choices[random_number() % n] : NULL;
}

/* ---- running ---- */

static void free_if_finished(struct gpu_stream_object *stream)
{
    struct gpu_stream_object **at = &streams;

    if (!stream->is_destroyed || stream->first || stream->is_running)
        return;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    free(stream);
}

/* Advances the event or graph of an operation that has ended, and drops its reference. */
static void finish(struct operation *op)
{
    if (op->kind == OPERATION_RECORD && op->event.event->reached < op->event.number)
        op->event.event->reached = op->event.number;
    else if (op->kind == OPERATION_GRAPH)
        op->graph.exec->finished = op->graph.number;
    if (op->kind == OPERATION_RECORD || op->kind == OPERATION_WAIT)
        event_unref_locked(op->event.event);
    else if (op->kind == OPERATION_GRAPH)
        graph_exec_unref_locked(op->graph.exec);
}

static gpu_result run(const struct operation *op)
{
    const uint64_t number = atomic_fetch_add(&fake_gpu.n_operations, 1) + 1;

    if (number == fake_gpu.failing_operation)
        return fake_gpu.failing_operation_result;
    return operation_run(op);
}

/* Removes the first operation, which has run or never will. */
static void pop(struct gpu_stream_object *stream)
{
    struct operation *op = stream->first;

    stream->first = op->next;
    if (!stream->first)
        stream->end = &stream->first;
    finish(op);
    operation_fini(op);
    free(op);
}

static bool runs_something(gpu_context context)
{
    for (const struct gpu_stream_object *s = streams; s; s = s->next)
        if (s->context == context && s->is_running)
            return true;
    return false;
}

/* Waits for the context's running operations, makes it unusable and drops the queued ones.  Who
 * sees `fatal` may free what the operations use. */
static void lose_locked(gpu_context context, gpu_result result)
{
    context->is_failing = true;
    while (runs_something(context))
        pthread_cond_wait(&operation_is_done, &lock);
    context->is_failing = false;
    context->fatal = result;
    for (struct gpu_stream_object *s = streams, *next; s; s = next) {
        next = s->next;
        while (s->context == context && s->first)
            pop(s);
        free_if_finished(s);
    }
    pthread_cond_broadcast(&operation_is_queued);
    pthread_cond_broadcast(&operation_is_done);
}

static _Noreturn void *serve(void *none);

static void start_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, serve, NULL) || pthread_detach(thread))
        abort_wrong_call("cannot start a thread");
    n_threads++;
}

/* Runs the first operation of a stream. */
static void advance(struct gpu_stream_object *stream)
{
    const bool waits = stream->first->kind == OPERATION_CALL && stream->first->call.waits;
    gpu_result result;

    n_blocked += waits;
    if (n_threads - n_blocked < THREADS)
        start_thread();
    stream->is_running = true;
    pthread_mutex_unlock(&lock);
    result = run(stream->first);
    pthread_mutex_lock(&lock);
    stream->is_running = false;
    n_blocked -= waits;
    if (result) {
        lose_locked(stream->context, result);
        return;
    }
    pop(stream);
    free_if_finished(stream);
}

static void sleep_until(uint64_t due)
{
    const struct timespec at = {(time_t)(due / 1000000000u), (long)(due % 1000000000u)};

    if (due == UINT64_MAX)
        pthread_cond_wait(&operation_is_queued, &lock);
    else
        (void)pthread_cond_timedwait(&operation_is_queued, &lock, &at);
}

static _Noreturn void *serve(void *none)
{
    (void)none;
    (void)prctl(PR_SET_NAME, "fake gpu");
    pthread_mutex_lock(&lock);
    for (;;) {
        uint64_t due;
        struct gpu_stream_object *stream = choose(&due);

        if (!stream) {
            sleep_until(due);
            continue;
        }
        advance(stream); /* an operation that this makes ready is found by the next choose() */
        pthread_cond_broadcast(&operation_is_done);
    }
}

/* The threads block the signals of faults, so that a fault in a kernel kills the process instead of
 * running the test framework's handler, which works only on the test's own thread. */
static void start_threads(void)
{
    pthread_condattr_t attributes;
    sigset_t faults, before;

    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    sigaddset(&faults, SIGILL);
    sigaddset(&faults, SIGFPE);
    pthread_sigmask(SIG_BLOCK, &faults, &before);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&operation_is_queued, &attributes);
    pthread_cond_init(&operation_is_done, &attributes);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < THREADS; i++)
        start_thread();
    pthread_mutex_unlock(&lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void stream_hold(bool held)
{
    pthread_once(&once, start_threads);
    pthread_mutex_lock(&lock);
    is_held = held;
    pthread_cond_broadcast(&operation_is_queued);
    pthread_mutex_unlock(&lock);
}

void stream_lose(gpu_context context, gpu_result result)
{
    pthread_once(&once, start_threads);
    pthread_mutex_lock(&lock);
    lose_locked(context, result);
    pthread_mutex_unlock(&lock);
}

/* ---- streams ---- */

/* Whether the handle is that of a live stream; it may be stale, so it is only compared. */
static bool has_stream(gpu_stream stream)
{
    for (struct gpu_stream_object *s = streams; s; s = s->next)
        if (s == stream)
            return !s->is_destroyed;
    return false;
}

gpu_result stream_begin(const char *name, gpu_stream stream)
{
    gpu_context context;
    gpu_result result = call_begin_on(name, &context);

    pthread_mutex_lock(&lock);
    if (!has_stream(stream))
        abort_wrong_call("%s on a stream that does not exist", name);
    if (!result && stream->context != context)
        result = FAKE_INVALID_HANDLE;
    pthread_mutex_unlock(&lock);
    return result;
}

static void append(struct operation ***end, const struct operation *op)
{
    struct operation *made = must_alloc(sizeof *made);

    *made = *op;
    made->next = NULL;
    **end = made;
    *end = &made->next;
}

/* A call may have begun before the context was lost: then the operation never runs. */
static void push_locked(gpu_stream stream, const struct operation *op)
{
    struct operation late = *op;

    if (stream->capture) {
        append(&stream->capture->end, op);
        return;
    }
    if (stream->context->fatal) {
        finish(&late);
        operation_fini(&late);
        return;
    }
    if (fake_gpu.late_ns)
        late.due = now_ns() + random_number() % fake_gpu.late_ns;
    append(&stream->end, &late);
    pthread_cond_signal(&operation_is_queued);
}

gpu_result stream_push(gpu_stream stream, const struct operation *op)
{
    pthread_mutex_lock(&lock);
    push_locked(stream, op);
    pthread_mutex_unlock(&lock);
    return GPU_SUCCESS;
}

/* For calls that are not allowed during a capture: fails, and invalidates the captured graph. */
static gpu_result invalidate_capture(gpu_stream stream)
{
    gpu_result result = GPU_SUCCESS;

    pthread_mutex_lock(&lock);
    if (stream->capture) {
        stream->capture->is_invalid = true;
        result = FAKE_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

gpu_result stream_drain(gpu_stream stream)
{
    gpu_result result = invalidate_capture(stream);

    if (result)
        return result;
    pthread_mutex_lock(&lock);
    n_waiting++;
    pthread_cond_broadcast(&operation_is_queued);
    while (stream->first)
        pthread_cond_wait(&operation_is_done, &lock);
    n_waiting--;
    result = stream->context->fatal;
    pthread_mutex_unlock(&lock);
    return result;
}

gpu_result fake_StreamCreate(gpu_stream *out, unsigned flags)
{
    gpu_context context;
    gpu_result result = call_begin_on("StreamCreate", &context);
    struct gpu_stream_object *stream;

    if (result || flags > GPU_STREAM_NON_BLOCKING)
        return result ? result : FAKE_INVALID_VALUE;
    pthread_once(&once, start_threads);
    stream = must_alloc(sizeof *stream);
    stream->context = context;
    stream->end = &stream->first;
    pthread_mutex_lock(&lock);
    stream->next = streams;
    streams = stream;
    pthread_mutex_unlock(&lock);
    fake_gpu.alive[FAKE_STREAM]++;
    *out = stream;
    return GPU_SUCCESS;
}

/* Operations that are still queued run before the stream is freed. */
gpu_result fake_StreamDestroy(gpu_stream stream)
{
    gpu_result result = stream_begin("StreamDestroy", stream);

    pthread_mutex_lock(&lock);
    if (stream->capture)
        abort_wrong_call("StreamDestroy of a stream that is captured");
    stream->is_destroyed = true;
    free_if_finished(stream);
    pthread_mutex_unlock(&lock);
    fake_gpu.alive[FAKE_STREAM]--;
    return result;
}

gpu_result fake_StreamSynchronize(gpu_stream stream)
{
    gpu_context context;
    gpu_result result = stream ? stream_begin("StreamSynchronize", stream)
                               : call_begin_on("StreamSynchronize", &context);

    if (!stream) /* the default one, which has nothing to do */
        return result;
    return result ? result : stream_drain(stream);
}

/* ---- events ---- */

gpu_result fake_EventCreate(gpu_event *out, unsigned flags)
{
    gpu_context context;
    gpu_result result = call_begin_on("EventCreate", &context);
    gpu_event event;

    if (result || flags > 7)
        return result ? result : FAKE_INVALID_VALUE;
    event = must_alloc(sizeof *event);
    event->context = context;
    event->refs = 1;
    fake_gpu.alive[FAKE_EVENT]++;
    *out = event;
    return GPU_SUCCESS;
}

void event_unref_locked(gpu_event event)
{
    if (--event->refs == 0)
        free(event);
}

gpu_result fake_EventDestroy(gpu_event event)
{
    gpu_context context;
    gpu_result result = call_begin_on("EventDestroy", &context);

    pthread_mutex_lock(&lock);
    event_unref_locked(event);
    pthread_mutex_unlock(&lock);
    fake_gpu.alive[FAKE_EVENT]--;
    return result;
}

static gpu_result push_event(gpu_stream stream, gpu_event event, enum operation_kind kind)
{
    gpu_result result = invalidate_capture(stream);
    struct operation op = {.kind = kind, .event = {.event = event}};

    if (result)
        return result;
    pthread_mutex_lock(&lock);
    event->refs++;
    op.event.number = kind == OPERATION_RECORD ? ++event->recorded : event->recorded;
    push_locked(stream, &op);
    pthread_mutex_unlock(&lock);
    return GPU_SUCCESS;
}

gpu_result fake_EventRecord(gpu_event event, gpu_stream stream)
{
    gpu_result result = stream_begin("EventRecord", stream);

    if (result || event->context != stream->context)
        return result ? result : FAKE_INVALID_HANDLE;
    return push_event(stream, event, OPERATION_RECORD);
}

gpu_result fake_StreamWaitEvent(gpu_stream stream, gpu_event event, unsigned flags)
{
    gpu_result result = stream_begin("StreamWaitEvent", stream);

    if (result || flags)
        return result ? result : FAKE_INVALID_VALUE;
    return push_event(stream, event, OPERATION_WAIT);
}

gpu_result fake_EventQuery(gpu_event event)
{
    gpu_context context;
    gpu_result result = call_begin_on("EventQuery", &context);

    if (result)
        return result;
    pthread_mutex_lock(&lock);
    result = event->context->fatal              ? event->context->fatal
             : event->reached < event->recorded ? GPU_NOT_READY
                                                : GPU_SUCCESS;
    pthread_mutex_unlock(&lock);
    return result;
}

gpu_result fake_EventSynchronize(gpu_event event)
{
    gpu_context context;
    gpu_result result = call_begin_on("EventSynchronize", &context);
    uint64_t number;

    if (result)
        return result;
    pthread_mutex_lock(&lock);
    number = event->recorded;
    event->refs++;
    n_waiting++;
    pthread_cond_broadcast(&operation_is_queued);
    while (event->reached < number && !event->context->fatal)
        pthread_cond_wait(&operation_is_done, &lock);
    n_waiting--;
    result = event->context->fatal;
    event_unref_locked(event);
    pthread_mutex_unlock(&lock);
    return result;
}
