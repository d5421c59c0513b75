/* SPDX-License-Identifier: Apache-2.0 */
#include "rank.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "launch.h"

static const uint64_t yield_ns = 100000;      /* polls yield for so long, and sleep then */
static const uint64_t max_pause_ns = 1000000; /* between two polls */
static const uint64_t finalize_ns = 5000000000u;
static const uint64_t quiet_ns = 10000000000u; /* that kernels have to end after an abort */
static const unsigned long timer_slack_ns = 1000;

struct start {
    frit_group *group;
    struct nccl_id id;
};

static const struct plug *plug_of(const frit_group *group)
{
    return &group->communicator->instance->plug;
}

/* ---- failures ---- */

/* Without the lock. */
static void fail_call(frit_group *group, int result, const char *call)
{
    struct communicator *c = group->communicator;
    char text[300];

    library_result_text(c->library, result, group->comm, text, sizeof text);
    pthread_mutex_lock(&c->lock);
    communicator_fail(c, library_status(result), "rank %u: %s of %s %s: %s", group->rank, call,
                      c->library->vendor->name, c->library->version, text);
    pthread_mutex_unlock(&c->lock);
}

static void fail_gpu(frit_group *group, int result, const char *what)
{
    struct communicator *c = group->communicator;

    pthread_mutex_lock(&c->lock);
    communicator_fail(c, library_gpu_status(result), "rank %u: %s failed (error %d)", group->rank,
                      what, result);
    pthread_mutex_unlock(&c->lock);
}

static bool has_ended(frit_group *group)
{
    struct communicator *c = group->communicator;
    bool ended;

    pthread_mutex_lock(&c->lock);
    ended = c->error.status != FRIT_OK;
    pthread_mutex_unlock(&c->lock);
    return ended;
}

/* ---- polling ---- */

/* With the lock, which is free meanwhile: waits before the next poll, longer the longer nothing has
 * happened since `since`. */
static void pause_since(struct communicator *c, uint64_t since)
{
    const uint64_t idle = plug_now_ns(&c->instance->plug) - since;
    const uint64_t ns = idle / 8 < max_pause_ns ? idle / 8 : max_pause_ns;
    const struct deadline deadline = deadline_after(ns);

    if (idle >= yield_ns) {
        (void)communicator_sleep(c, &deadline);
        return;
    }
    pthread_mutex_unlock(&c->lock);
    sched_yield();
    pthread_mutex_lock(&c->lock);
}

/* Waits until the library has done what it does on threads of its own.  NCCL_IN_PROGRESS: the group
 * has ended, or `timeout_ns` is over. */
static int await(frit_group *group, int result, uint64_t timeout_ns)
{
    struct communicator *c = group->communicator;
    const uint64_t begun = plug_now_ns(plug_of(group));

    while (result == NCCL_IN_PROGRESS) {
        int state = NCCL_SUCCESS;

        result = c->library->nccl.CommGetAsyncError(group->comm, &state);
        if (result == NCCL_SUCCESS)
            result = state;
        if (result != NCCL_IN_PROGRESS || has_ended(group) ||
            plug_now_ns(plug_of(group)) - begun > timeout_ns)
            break;
        pthread_mutex_lock(&c->lock);
        pause_since(c, begun);
        pthread_mutex_unlock(&c->lock);
    }
    return result;
}

/* The same without a limit; an error ends the group.  False: it has ended. */
static bool settle(frit_group *group, int result, const char *call)
{
    result = await(group, result, UINT64_MAX);
    if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS)
        fail_call(group, result, call);
    return result == NCCL_SUCCESS;
}

/* ---- beginning ---- */

static bool open_device(frit_group *group)
{
    const struct gpu *gpu = &group->communicator->library->gpu;
    int result = gpu->StreamCreate(&group->stream, GPU_STREAM_NON_BLOCKING);

    if (!result)
        result = gpu->MemAlloc(&group->barrier, sizeof(float));
    if (result)
        fail_gpu(group, result, "making a stream");
    return result == GPU_SUCCESS;
}

static bool open_comm(frit_group *group, const struct nccl_id *id)
{
    const struct communicator *c = group->communicator;
    struct nccl_config config = {
        .size = sizeof config, .magic = NCCL_CONFIG_MAGIC, .version = NCCL_CONFIG_VERSION};
    const int result = c->library->nccl.CommInitRankConfig(&group->comm, (int)c->size, *id,
                                                           (int)group->rank, &config);

    return settle(group, result, "ncclCommInitRankConfig");
}

/* ---- operations ---- */

static bool enqueue(frit_group *group, const struct pending *pending)
{
    const struct gpu *gpu = &group->communicator->library->gpu;
    const char *call = "";
    uint32_t next = 0;
    int result = pending->is_ordered ? gpu->StreamWaitEvent(group->stream, pending->ready, 0) : 0;

    if (result) {
        fail_gpu(group, result, "waiting for an event");
        return false;
    }
    do {
        result = launch_operation(group, &pending->operation, &next, &call);
        if (!settle(group, result, call))
            return false;
    } while (next < pending->operation.n_buffers);
    result = gpu->EventRecord(pending->end, group->stream);
    if (result)
        fail_gpu(group, result, "recording an event");
    return result == GPU_SUCCESS;
}

/* With the lock, which is free meanwhile. */
static void launch_next(frit_group *group)
{
    struct communicator *c = group->communicator;
    const struct pending *pending = communicator_pending(group, group->launched + 1);
    bool enqueued;

    pthread_mutex_unlock(&c->lock);
    if (group->span == 0)
        group->span = plug_begin(plug_of(group));
    enqueued = enqueue(group, pending);
    pthread_mutex_lock(&c->lock);
    group->launched += enqueued;
    group->idle_since = plug_now_ns(plug_of(group));
}

/* A span from the launch, or the end of the operation before, until now. */
static void trace(frit_group *group, const struct pending *pending)
{
    const struct plug *plug = plug_of(group);
    char text[48];

    if (group->span == 0)
        return;
    operation_print(&pending->operation, 0, true, text, sizeof text);
    plug_end(plug, group->span, (frit_str){text, strlen(text)});
    group->span = group->done + 1 < group->launched ? plug_begin(plug) : 0;
}

/* With the lock, which is free meanwhile: finds out whether the first launched operation is done.
 * False: it is not. */
static bool collect(frit_group *group)
{
    struct communicator *c = group->communicator;
    const struct pending *pending = communicator_pending(group, group->done + 1);
    int result, state = NCCL_SUCCESS, queried;

    pthread_mutex_unlock(&c->lock);
    result = c->library->gpu.EventQuery(pending->end);
    queried = c->library->nccl.CommGetAsyncError(group->comm, &state);
    if (result == GPU_SUCCESS)
        trace(group, pending);
    else if (result != GPU_NOT_READY)
        fail_gpu(group, result, "an operation");
    else if (queried || (state && state != NCCL_IN_PROGRESS))
        fail_call(group, queried ? queried : state, "an operation");
    pthread_mutex_lock(&c->lock);
    if (result != GPU_SUCCESS)
        return false;
    group->done++;
    group->idle_since = plug_now_ns(plug_of(group));
    communicator_advance(c);
    pthread_cond_broadcast(&c->change);
    return true;
}

/* With the lock: until the rank leaves or the group ends. */
static void serve(frit_group *group)
{
    struct communicator *c = group->communicator;
    const struct deadline never = {.never = true};

    while (!c->error.status) {
        if (group->launched < c->agreed && group->launched < group->begun) {
            launch_next(group);
        } else if (group->done < group->launched) {
            if (!collect(group))
                pause_since(c, group->idle_since);
        } else if (group->is_leaving) {
            return;
        } else {
            (void)communicator_sleep(c, &never);
        }
    }
    while (group->done < group->launched && collect(group))
        ;
}

/* ---- the end ---- */

/* The library has no other way than to wait until the kernels have ended. */
static void await_quiet(frit_group *group)
{
    const struct gpu *gpu = &group->communicator->library->gpu;
    const struct plug *plug = plug_of(group);
    const uint64_t begun = plug_now_ns(plug);

    for (uint64_t n = group->done + 1; n <= group->launched; n++) {
        const struct pending *pending = communicator_pending(group, n);

        while (gpu->EventQuery(pending->end) == GPU_NOT_READY &&
               plug_now_ns(plug) - begun < quiet_ns) {
            pthread_mutex_lock(&group->communicator->lock);
            pause_since(group->communicator, begun);
            pthread_mutex_unlock(&group->communicator->lock);
        }
    }
}

static void close_comm(frit_group *group)
{
    const struct nccl *nccl = &group->communicator->library->nccl;
    bool is_well = !has_ended(group);

    if (!group->comm)
        return;
    if (is_well && nccl->CommFinalize)
        is_well = !await(group, nccl->CommFinalize(group->comm), finalize_ns);
    (void)(is_well ? nccl->CommDestroy : nccl->CommAbort)(group->comm);
    group->comm = NULL;
    await_quiet(group);
}

static void close_device(frit_group *group)
{
    const struct gpu *gpu = &group->communicator->library->gpu;

    for (uint32_t i = 0; i < group->capacity; i++) {
        const struct pending *pending = group->pending[i];

        if (pending && pending->ready)
            (void)gpu->EventDestroy(pending->ready);
        if (pending && pending->end)
            (void)gpu->EventDestroy(pending->end);
    }
    if (group->stream)
        (void)gpu->StreamDestroy(group->stream);
    if (group->barrier)
        (void)gpu->MemFree(group->barrier);
}

static void run(frit_group *group, const struct nccl_id *id)
{
    struct communicator *c = group->communicator;
    const bool is_open = open_device(group) && open_comm(group, id);

    pthread_mutex_lock(&c->lock);
    if (is_open) {
        group->is_ready = true;
        pthread_cond_broadcast(&c->change);
        serve(group);
        group->has_left = true;
        communicator_advance(c);
    }
    pthread_mutex_unlock(&c->lock);
    close_comm(group);
    close_device(group);
}

static void end(frit_group *group)
{
    struct communicator *c = group->communicator;
    struct instance *instance = c->instance;
    bool is_abandoned;

    pthread_mutex_lock(&c->lock);
    group->is_gone = true;
    is_abandoned = group->is_abandoned;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
    if (!is_abandoned)
        return;
    communicator_leave(group);
    pthread_mutex_lock(&instance->lock);
    instance->n_threads--;
    pthread_mutex_unlock(&instance->lock);
}

static void *rank_main(void *arg)
{
    struct start start = *(struct start *)arg;
    frit_group *group = start.group;
    const struct library *library = group->communicator->library;
    char name[16];
    struct scope scope;
    int result;

    plug_free(plug_of(group), arg);
    snprintf(name, sizeof name, "nccl rank %u", group->rank);
    (void)prctl(PR_SET_NAME, name);
    (void)prctl(PR_SET_TIMERSLACK, timer_slack_ns);
    result = library_enter(library, group->device, &scope);
    if (result) {
        fail_gpu(group, result, "making its device the current one");
    } else {
        run(group, &start.id);
        library_leave(library, &scope);
    }
    end(group);
    return NULL;
}

bool rank_start(frit_group *group, const struct nccl_id *id)
{
    struct start *start = plug_alloc(plug_of(group), sizeof *start, _Alignof(struct start));
    sigset_t all, before;
    int failed;

    if (!start)
        return false;
    *start = (struct start){group, *id};
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    failed = pthread_create(&group->thread, NULL, rank_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        plug_free(plug_of(group), start);
    return !failed;
}

bool rank_await_end(frit_group *group, uint64_t timeout_ns)
{
    const struct deadline deadline = deadline_after(timeout_ns);

    while (!group->is_gone && communicator_sleep(group->communicator, &deadline))
        ;
    return group->is_gone;
}

void rank_release(frit_group *group)
{
    struct communicator *c = group->communicator;
    const pthread_t thread = group->thread;
    bool is_gone;

    pthread_mutex_lock(&c->instance->lock);
    pthread_mutex_lock(&c->lock);
    is_gone = group->is_gone;
    group->is_abandoned = !is_gone;
    c->instance->n_threads += !is_gone;
    pthread_mutex_unlock(&c->lock);
    pthread_mutex_unlock(&c->instance->lock);
    if (!is_gone) {
        (void)pthread_detach(thread);
        return;
    }
    (void)pthread_join(thread, NULL);
    communicator_leave(group);
}
