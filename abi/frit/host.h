/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the host lends a plugin.  Tables are constant and valid until the process ends.
 *
 * Thread tags, one per slot, here and in every table of the contract:
 *   [any]     from any thread, also at once on one object
 *   [object]  from any thread; the host never makes two calls on one object at once
 *   [queue]   from any thread; the host makes one call per queue at a time
 *   [init]    while a plugin is opened or closed, from one thread
 *   +nonblock never waits for a device, allocates no device memory
 *   +mayblock may wait; the host holds no lock of its own
 * The state of the calling thread (current vendor device, FP environment, locale, signal mask) is
 * the same after every call. */
#ifndef FRIT_HOST_H
#define FRIT_HOST_H

#include <frit/status.h>

enum {
    FRIT_LOG_ERROR = 1,
    FRIT_LOG_WARN = 2,
    FRIT_LOG_INFO = 3,
    FRIT_LOG_DEBUG = 4,
    FRIT_LOG_TRACE = 5
};

/* Requests a long call to stop; the caller owns it. */
typedef struct frit_cancel {
    uint32_t struct_size;
    uint32_t requested; /* read atomically; not 0: stop soon and return FRIT_CANCELLED */
} frit_cancel;

#define FRIT_HOST_CORE "frit.host.core/1"

typedef struct frit_host_core {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +nonblock  `topic` is a word chosen by the plugin; the host adds the plugin's id. */
    void (*log)(void *self, uint32_t level, frit_str topic, frit_str text);
    /* [any] +nonblock  0 if a message of this level would go nowhere. */
    uint32_t (*log_enabled)(void *self, uint32_t level, frit_str topic);
    /* [any] +nonblock  Fills the caller's slot (`err` NULL: nothing) and returns `status`. */
    frit_status (*err_set)(void *self, frit_err *err, frit_status status, int64_t native_code,
                           frit_str text);
    /* [any] +nonblock  Host memory aligned to `align` (a power of two), NULL when there is none.
     * Freed by mem_free only; freeing NULL does nothing. */
    void *(*mem_alloc)(void *self, uint64_t bytes, uint64_t align);
    void (*mem_free)(void *self, void *ptr);
    /* [any] +nonblock  Monotonic nanoseconds. */
    uint64_t (*now_ns)(void *self);
} frit_host_core;

#define FRIT_HOST_OPTIONS "frit.host.options/1"

/* The plugin's own options, merged by precedence and checked against the schema it declared.  A key
 * that was not declared gives FRIT_INVALID. */
typedef struct frit_host_options {
    uint32_t struct_size;
    uint32_t reserved;
    /* [init] +nonblock  The text lives as long as the plugin is open. */
    frit_status (*get_str)(void *self, frit_str key, frit_str *out, frit_err *err);
    /* [init] +nonblock */
    frit_status (*get_i64)(void *self, frit_str key, int64_t *out, frit_err *err);
    /* [init] +nonblock */
    frit_status (*get_f64)(void *self, frit_str key, double *out, frit_err *err);
    /* [init] +nonblock  0 or 1. */
    frit_status (*get_bool)(void *self, frit_str key, uint32_t *out, frit_err *err);
} frit_host_options;

#define FRIT_HOST_TRACE "frit.host.trace/1"

/* Spans and counters of a timeline.  Nothing is recorded unless the user has turned it on. */
typedef struct frit_host_trace {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +nonblock  The time now, to be given to span_end on the same thread; 0 if nothing is
     * recorded. */
    uint64_t (*span_begin)(void *self);
    /* [any] +nonblock  Records a span from `begun` until now; nothing if that is 0.  Names are cut
     * to 47 bytes. */
    void (*span_end)(void *self, uint64_t begun, frit_str name);
    /* [any] +nonblock  Records the value that a quantity has from now on. */
    void (*counter)(void *self, frit_str name, double value);
} frit_host_trace;

#define FRIT_HOST_EXEC "frit.host.exec/1"

/* Work for later; the host copies it. */
typedef struct frit_task {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +mayblock  Should stop soon once `cancel` requests it. */
    void (*run)(void *ctx, const frit_cancel *cancel);
    /* [any] +nonblock  Called in place of `run` where the host cancels the task before it began. */
    void (*drop)(void *ctx);
    void *ctx;
    /* The highest runs first: about the nanoseconds that were lost because it is not done yet,
     * worked out from sizes and counts, not measured. */
    uint64_t priority;
} frit_task;

/* The one team of threads of the process, and threads in the background. */
typedef struct frit_host_exec {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +nonblock  Threads that parallel_for may use, the calling one included; constant, at
     * least 1. */
    uint32_t (*threads)(void *self);
    /* [any] +mayblock  Calls `run` for ranges [first, end) that together are 0 .. count - 1, each
     * once, and returns when all have returned.  Ranges begin at multiples of `grain` (>= 1): so
     * much work is worth another thread's while.  `thread` is below threads(); no two calls of
     * `run` at once have the same.  Where the team is busy, or called from inside of `run`, the
     * calling thread does it all, as thread 0. */
    void (*parallel_for)(void *self, uint64_t count, uint64_t grain,
                         void (*run)(void *ctx, uint64_t first, uint64_t end, uint32_t thread),
                         void *ctx);
    /* [any] +nonblock  Calls `run` later, on a background thread: of one plugin one after the
     * other, in the order in which they came.  All have returned before the plugin is closed.  On
     * failure (no memory, no thread) it is not called. */
    frit_status (*spawn)(void *self, void (*run)(void *ctx), void *ctx, frit_err *err);
    /* [any] +nonblock  Runs the task on one of a few background threads that yield the processors
     * to what computes; several run at once.  The host's own compiles, for which launches wait, go
     * first.  Before the plugin is closed the host cancels what did not begin, and `run` has
     * returned.  *id is never 0.  On failure (no memory, no thread) neither `run` nor `drop` is
     * called. */
    frit_status (*task_spawn)(void *self, const frit_task *task, uint64_t *id, frit_err *err);
    /* [any] +nonblock  Adds to the priority of a task that did not begin; else nothing. */
    void (*task_raise)(void *self, uint64_t id, uint64_t by);
    /* [any] +nonblock  A task that did not begin is dropped before this returns; for one that runs,
     * `cancel` requests it to stop; one that has ended is ignored. */
    void (*task_cancel)(void *self, uint64_t id);
} frit_host_exec;

#define FRIT_HOST_CACHE "frit.host.cache/1"

/* What a plugin makes with pains and may use again in another process: compiled code.  The host
 * keeps it apart for each plugin and build of it; `space` says what else it depends on (a device, a
 * driver's version).  Best effort: what was put may be gone, and a program may have said that
 * nothing is kept. */
typedef struct frit_host_cache {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +mayblock  The bytes that were put under the key, by core's mem_alloc: the caller's,
     * who frees them; NULL and FRIT_OK: there are none. */
    frit_status (*get)(void *self, frit_str space, const void *key, uint64_t n_key, void **bytes,
                       uint64_t *n_bytes, frit_err *err);
    /* [any] +mayblock  Replaces what was there.  FRIT_UNSUPPORTED: nothing is kept, or not so much.
     */
    frit_status (*put)(void *self, frit_str space, const void *key, uint64_t n_key,
                       const void *bytes, uint64_t n_bytes, frit_err *err);
} frit_host_cache;

/* The root through which a plugin reaches the tables.  Frozen for the whole major version. */
typedef struct frit_host_root {
    uint32_t struct_size;
    uint32_t reserved;
    void *self; /* first argument of every slot of every host table */
    /* [any] +nonblock  NULL for an id that this host does not know. */
    const void *(*get_interface)(void *self, frit_str id);
} frit_host_root;

FRIT_STATIC_ASSERT(FRIT_END_OF(frit_host_core, now_ns) == 56, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_host_options, get_bool) == 40, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_host_trace, counter) == 32, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_host_exec, spawn) == 32, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_host_exec, task_cancel) == 56, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_task, priority) == 40, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_host_cache, put) == 24, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_host_root, get_interface) == 24, "frozen");

#endif
