/* SPDX-License-Identifier: Apache-2.0 */
/* The side of groups that the host calls. */
#include "group.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <frit/op.h>

#include "advance.h"
#include "collective/combine.h"
#include "plugin.h"
#include "shared.h"

static const uint64_t leave_ns = 10000000000u; /* that others have for what was begun */

void group_fail(frit_group *group, frit_status status, const char *format, ...)
{
    va_list args;

    if (group->error.status)
        return;
    group->error.struct_size = sizeof group->error;
    group->error.status = status;
    va_start(args, format);
    vsnprintf(group->error.text, sizeof group->error.text, format, args);
    va_end(args);
    job_wake(group->job);
}

/* ---- making one ---- */

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
    return hash;
}

static const uint64_t hash_begin = 0xcbf29ce484222325;

static frit_status check_params(const struct plug *plug, const frit_group_params *params,
                                frit_err *err)
{
    if (params->size < 1 || params->size > JOB_RANKS || params->rank >= params->size)
        return plug_fail(plug, err, FRIT_INVALID, "rank %u of %u; a group has 1 to %d ranks",
                         params->rank, params->size, JOB_RANKS);
    if (params->device || !plug_is(params->space, FRIT_STR("host.ptr")))
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "memory that is not the process's");
    return FRIT_OK;
}

static void free_group(frit_group *group)
{
    const struct plug *plug = group->plug;

    for (uint32_t i = 0; i < MAX_PENDING; i++)
        plug_free(plug, group->begun[i].buffers);
    for (uint32_t r = 0; group->peers && r < group->size; r++)
        plug_free(plug, group->peers[r].headers);
    plug_free(plug, group->peers);
    for (uint32_t r = 0; group->near && r < group->size; r++)
        segment_close(group->near[r], group->size);
    plug_free(plug, group->near);
    shared_unlink(group->segment_number);
    if (!group->is_kept)
        segment_close(group->segment, group->size);
    plug_free(plug, group);
}

static bool add_peers(frit_group *group, frit_err *err)
{
    const struct plug *plug = group->plug;

    group->peers = plug_new(plug, group->size * sizeof *group->peers, "a group's ranks", err);
    group->near = plug_new(plug, group->size * sizeof *group->near, "a group's ranks", err);
    for (uint32_t r = 0; group->peers && r < group->size; r++) {
        group->peers[r].headers =
            plug_new(plug, N_HEADERS * sizeof(struct header), "a rank's operations", err);
        if (!group->peers[r].headers)
            return false;
    }
    return group->peers && group->near;
}

static frit_group *new_group(const struct instance *instance, const frit_group_params *params,
                             frit_err *err)
{
    const struct plug *plug = &instance->plug;
    frit_group *group = plug_new(plug, sizeof *group, "a group", err);

    if (!group)
        return NULL;
    group->plug = plug;
    group->key = hash_bytes(hash_begin, params->id->bytes, sizeof params->id->bytes);
    group->rank = params->rank;
    group->size = params->size;
    if (params->size == 1)
        return group;
    if (add_peers(group, err)) {
        group->segment =
            segment_create(group->size, instance->shares_memory, &group->segment_number);
        if (group->segment)
            return group;
        (void)plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory for a group's messages");
    }
    free_group(group);
    return NULL;
}

/* With the lock. */
static void name_missing(const frit_group *group, char *text, size_t bytes)
{
    int used = snprintf(text, bytes, "no word from rank");

    for (uint32_t r = 0; r < group->size && (size_t)used < bytes; r++) {
        if (r != group->rank && !peer_has_joined(&group->peers[r]))
            used += snprintf(text + used, bytes - (size_t)used, " %u", r);
    }
}

static bool is_gone(const void *what)
{
    const frit_group *group = what;

    return group->is_gone;
}

/* With the lock, to which it returns: the thread that drives has let go of the group. */
static void leave(frit_group *group)
{
    struct job *job = group->job;

    group->is_leaving = true;
    job_wake(job);
    (void)job_await(job, is_gone, group, UINT64_MAX);
    job->n_groups--;
}

static bool is_joined(const void *what)
{
    const frit_group *group = what;

    return group->n_joined == group->size - 1 || group->error.status;
}

static frit_status join(frit_group *group, uint64_t deadline, frit_err *err)
{
    struct job *job = group->job;
    frit_status status = FRIT_OK;
    char text[300];

    pthread_mutex_lock(&job->lock);
    job->n_groups++;
    group->next = job->incoming;
    job->incoming = group;
    job_wake(job);
    (void)job_await(job, is_joined, group, deadline);
    /* A group that has ended since all have come is one that was made. */
    if (group->n_joined < group->size - 1 && group->error.status) {
        status = group->error.status;
        plug_copy_err(group->plug, err, &group->error);
    } else if (group->n_joined < group->size - 1) {
        name_missing(group, text, sizeof text);
        status = plug_fail(group->plug, err, FRIT_TIMEOUT, "%s", text);
    }
    if (status)
        leave(group);
    pthread_mutex_unlock(&job->lock);
    if (!status) { /* all have opened what they can */
        shared_unlink(group->segment_number);
        shared_unlink(job->bell_number);
    }
    return status;
}

static frit_status find_job(struct instance *instance, const frit_group_params *params,
                            uint64_t deadline, struct job **out, frit_err *err)
{
    char why[300];
    bool is_late;

    *out =
        job_start(instance->library, instance->shares_memory, deadline, &is_late, why, sizeof why);
    if (!*out)
        return plug_fail(&instance->plug, err, is_late ? FRIT_TIMEOUT : FRIT_UNSUPPORTED, "%s",
                         why);
    if ((uint32_t)(*out)->rank == params->rank && (uint32_t)(*out)->size == params->size)
        return FRIT_OK;
    return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED,
                     "rank %u of %u in a process that is rank %d of %d of its MPI job; a group's "
                     "ranks are those of the job",
                     params->rank, params->size, (*out)->rank, (*out)->size);
}

frit_status group_create(void *opened, const frit_group_params *params, frit_group **out,
                         frit_err *err)
{
    const uint64_t deadline = deadline_after(params->timeout_ns);
    struct instance *instance = opened;
    frit_status status = check_params(&instance->plug, params, err);
    struct job *job = NULL;
    frit_group *group;

    *out = NULL;
    if (!status && params->size > 1)
        status = find_job(instance, params, deadline, &job, err);
    if (status)
        return status;
    group = new_group(instance, params, err);
    if (!group)
        return FRIT_NO_HOST_MEMORY;
    group->job = job;
    status = job ? join(group, deadline, err) : FRIT_OK;
    if (status)
        free_group(group);
    else
        *out = group;
    return status;
}

/* What has been begun is done, or will not be. */
static bool is_settled(const void *what)
{
    const frit_group *group = what;

    return group->done == group->issued || group->is_quiet;
}

void group_destroy(frit_group *group)
{
    const uint64_t deadline = deadline_after(leave_ns);

    if (!group)
        return;
    if (group->job) {
        pthread_mutex_lock(&group->job->lock);
        if (!job_await(group->job, is_settled, group, deadline))
            group_fail(group, FRIT_ABORTED, "rank %u left before operation %" PRIu64 " was done",
                       group->rank, group->done + 1);
        leave(group);
        pthread_mutex_unlock(&group->job->lock);
    }
    free_group(group);
}

void group_abort(frit_group *group, const frit_err *why)
{
    if (!group->job) {
        group->error = *why;
        group->error.status = FRIT_ABORTED;
        return;
    }
    pthread_mutex_lock(&group->job->lock);
    group_fail(group, FRIT_ABORTED, "%s", why->text);
    pthread_mutex_unlock(&group->job->lock);
}

/* ---- beginning ---- */

static const frit_collective_buffer *buffer_at(const frit_collective_op *op, uint32_t i)
{
    return (const frit_collective_buffer *)(const void *)((const char *)op->buffers +
                                                          (size_t)i * op->buffer_stride);
}

static bool combines(uint32_t kind)
{
    return kind == FRIT_COLLECTIVE_ALL_REDUCE || kind == FRIT_COLLECTIVE_REDUCE_SCATTER;
}

static bool has_whole_bytes(uint32_t dtype)
{
    const uint64_t eight = frit_storage_bytes(dtype, 8);

    return eight && eight % 8 == 0;
}

static frit_status check_op(const frit_group *group, const frit_collective_op *op, frit_err *err)
{
    if (op->kind < FRIT_COLLECTIVE_BARRIER || op->kind > FRIT_COLLECTIVE_REDUCE_SCATTER)
        return plug_fail(group->plug, err, FRIT_UNSUPPORTED, "an operation of kind %u", op->kind);
    if (op->kind == FRIT_COLLECTIVE_BROADCAST && op->root >= group->size)
        return plug_fail(group->plug, err, FRIT_INVALID, "root %u of %u ranks", op->root,
                         group->size);
    for (uint32_t i = 0; i < op->n_buffers; i++) {
        const uint32_t dtype = buffer_at(op, i)->dtype;

        if (combines(op->kind) ? !combine_has(dtype) : !has_whole_bytes(dtype))
            return plug_fail(group->plug, err, FRIT_UNSUPPORTED,
                             "an element type that this engine cannot %s (number %u)",
                             combines(op->kind) ? "combine so" : "move", dtype);
    }
    return FRIT_OK;
}

/* Of all elements, if they fit in a message; else 0. */
static uint32_t small_bytes(const struct begun *begun)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < begun->header.n_buffers && bytes <= MESSAGE_TEXT; i++) {
        if (begun->buffers[i].count > MESSAGE_TEXT)
            return 0;
        bytes += frit_storage_bytes(begun->buffers[i].dtype, (int64_t)begun->buffers[i].count);
    }
    return bytes <= MESSAGE_TEXT ? (uint32_t)bytes : 0;
}

static frit_status take(const frit_group *group, const frit_collective_op *op, struct begun *out,
                        frit_err *err)
{
    const uint32_t n = op->kind == FRIT_COLLECTIVE_BARRIER ? 0 : op->n_buffers;

    *out = (struct begun){.header = {.kind = op->kind,
                                     .combine = combines(op->kind) ? op->combine : 0,
                                     .root = op->kind == FRIT_COLLECTIVE_BROADCAST ? op->root : 0,
                                     .n_buffers = n,
                                     .hash = hash_begin}};
    if (op->struct_size >= FRIT_END_OF(frit_collective_op, note))
        snprintf(out->header.note, sizeof out->header.note, "%.*s", (int)sizeof op->note, op->note);
    if (n == 0)
        return FRIT_OK;
    out->buffers = plug_new(group->plug, n * sizeof *out->buffers, "an operation", err);
    if (!out->buffers)
        return FRIT_NO_HOST_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        frit_collective_buffer *buffer = &out->buffers[i];

        *buffer = *buffer_at(op, i);
        out->header.hash = hash_bytes(out->header.hash, &buffer->count, sizeof buffer->count);
        out->header.hash = hash_bytes(out->header.hash, &buffer->dtype, sizeof buffer->dtype);
    }
    out->header.dtype = out->buffers[0].dtype;
    out->header.count = out->buffers[0].count;
    if (op->kind == FRIT_COLLECTIVE_ALL_REDUCE)
        out->header.small_bytes = small_bytes(out);
    return FRIT_OK;
}

/* The only rank: an element is combined with nothing, but mean and sum are rounded as ever. */
static void run_alone(const struct begun *begun)
{
    for (uint32_t i = 0; i < begun->header.n_buffers; i++) {
        const frit_collective_buffer *b = &begun->buffers[i];

        if (b->into != b->from && b->count)
            memcpy(b->into, b->from, frit_storage_bytes(b->dtype, (int64_t)b->count));
    }
}

static frit_status begin_alone(frit_group *group, struct begun *begun, uint64_t *value,
                               frit_err *err)
{
    if (group->error.status) {
        plug_copy_err(group->plug, err, &group->error);
    } else {
        run_alone(begun);
        *value = group->done = ++group->issued;
    }
    plug_free(group->plug, begun->buffers);
    return group->error.status;
}

/* With the lock: others hear of it at once, also if nobody waits for it yet. */
static void announce_now(frit_group *group)
{
    struct job *job = group->job;

    if (!job_try_drive(job)) {
        job_wake(job);
        return;
    }
    pthread_mutex_unlock(&job->lock);
    advance_announce(group);
    pthread_mutex_lock(&job->lock);
    job_stop_driving(job);
}

frit_status group_begin(frit_group *group, const frit_collective_op *op, uint64_t *value,
                        frit_err *err)
{
    struct begun begun;
    frit_status status = check_op(group, op, err);

    if (!status)
        status = take(group, op, &begun, err);
    if (status)
        return status;
    if (!group->job)
        return begin_alone(group, &begun, value, err);
    pthread_mutex_lock(&group->job->lock);
    if (group->error.status) {
        status = group->error.status;
        plug_copy_err(group->plug, err, &group->error);
    } else if (group->issued - group->done >= MAX_PENDING) {
        status = plug_fail(group->plug, err, FRIT_BUSY, "%d operations are pending", MAX_PENDING);
    } else {
        struct begun *slot = &group->begun[(group->issued + 1) % MAX_PENDING];

        plug_free(group->plug, slot->buffers);
        *slot = begun;
        *value = ++group->issued;
        announce_now(group);
    }
    pthread_mutex_unlock(&group->job->lock);
    if (status)
        plug_free(group->plug, begun.buffers);
    return status;
}

/* With the lock. */
static frit_status report_late(const frit_group *group, frit_err *err)
{
    const uint64_t number = group->done + 1;
    char ranks[200] = "";
    size_t used = 0;

    for (uint32_t r = 0; group->job && r < group->size && used < sizeof ranks; r++) {
        const struct peer *peer = &group->peers[r];

        if (r != group->rank && peer->n_headers < number)
            used += (size_t)snprintf(ranks + used, sizeof ranks - used, "%s rank %u (%s)",
                                     used ? "," : "", r, peer->where);
    }
    if (used)
        return plug_fail(group->plug, err, FRIT_TIMEOUT, "operation %" PRIu64 " waits for%s",
                         number, ranks);
    return plug_fail(group->plug, err, FRIT_TIMEOUT, "operation %" PRIu64 " is still running",
                     number);
}

/* With the lock, if there is one. */
static frit_status state_of(const frit_group *group, uint64_t value, frit_err *err)
{
    if (group->done >= value)
        return FRIT_OK;
    if (!group->error.status)
        return report_late(group, err);
    plug_copy_err(group->plug, err, &group->error);
    return group->error.status;
}

struct awaited {
    const frit_group *group;
    uint64_t value;
};

static bool is_reached(const void *what)
{
    const struct awaited *awaited = what;

    return awaited->group->done >= awaited->value || awaited->group->is_quiet;
}

frit_status group_wait(frit_group *group, uint64_t value, uint64_t timeout_ns, frit_err *err)
{
    const uint64_t deadline = deadline_after(timeout_ns);
    const struct awaited awaited = {group, value};
    struct job *job = group->job;
    frit_status status;

    if (!job)
        return value > group->issued
                   ? plug_fail(group->plug, err, FRIT_INVALID, "a value that was never begun")
                   : state_of(group, value, err);
    pthread_mutex_lock(&job->lock);
    if (value > group->issued) {
        status = plug_fail(group->plug, err, FRIT_INVALID, "a value that was never begun");
    } else {
        if (timeout_ns)
            (void)job_await(job, is_reached, &awaited, deadline);
        /* A failure is reported once no buffer is touched. */
        if (group->error.status)
            (void)job_await(job, is_reached, &awaited, UINT64_MAX);
        status = state_of(group, value, err);
    }
    pthread_mutex_unlock(&job->lock);
    return status;
}
