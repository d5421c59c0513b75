/* SPDX-License-Identifier: Apache-2.0 */
/* The side of groups that the host calls. */
#include "group.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <frit/op.h>

#include "combine.h"
#include "plugin.h"

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
    plug_free(plug, group);
}

static frit_group *new_group(const struct plug *plug, const frit_group_params *params,
                             frit_err *err)
{
    frit_group *group = plug_new(plug, sizeof *group, "a group", err);

    if (!group)
        return NULL;
    group->plug = plug;
    group->key = hash_bytes(hash_begin, params->id->bytes, sizeof params->id->bytes);
    group->rank = params->rank;
    group->size = params->size;
    if (params->size == 1)
        return group;
    group->peers = plug_new(plug, params->size * sizeof *group->peers, "a group's ranks", err);
    for (uint32_t r = 0; group->peers && r < params->size; r++) {
        group->peers[r].headers =
            plug_new(plug, N_HEADERS * sizeof(struct header), "a rank's operations", err);
        if (!group->peers[r].headers)
            break;
    }
    if (group->peers && group->peers[params->size - 1].headers)
        return group;
    free_group(group);
    return NULL;
}

/* With the lock. */
static void name_missing(const frit_group *group, char *text, size_t bytes)
{
    int used = snprintf(text, bytes, "no word from rank");

    for (uint32_t r = 0; r < group->size && (size_t)used < bytes; r++) {
        if (r != group->rank && !group->peers[r].has_joined)
            used += snprintf(text + used, bytes - (size_t)used, " %u", r);
    }
}

/* With the lock, to which it returns: the thread has let go of the group. */
static void leave(frit_group *group)
{
    struct job *job = group->job;

    group->is_leaving = true;
    job_wake(job);
    while (!group->is_gone)
        (void)job_sleep(job, &job->change, UINT64_MAX);
    job->n_groups--;
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
    while (group->n_joined < group->size - 1 && !group->error.status &&
           job_sleep(job, &job->change, deadline))
        ;
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
    return status;
}

static frit_status find_job(struct instance *instance, const frit_group_params *params,
                            uint64_t deadline, struct job **out, frit_err *err)
{
    char why[300];
    bool is_late;

    *out = job_start(instance->library, deadline, &is_late, why, sizeof why);
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
    group = new_group(&instance->plug, params, err);
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

void group_destroy(frit_group *group)
{
    const uint64_t deadline = deadline_after(leave_ns);

    if (!group)
        return;
    if (group->job) {
        pthread_mutex_lock(&group->job->lock);
        while (group->done < group->issued && !group->is_quiet &&
               job_sleep(group->job, &group->job->change, deadline))
            ;
        if (group->done < group->issued)
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

static frit_status check_op(const frit_group *group, const frit_collective_op *op, frit_err *err)
{
    if (op->kind < FRIT_COLLECTIVE_BARRIER || op->kind > FRIT_COLLECTIVE_REDUCE_SCATTER)
        return plug_fail(group->plug, err, FRIT_UNSUPPORTED, "an operation of kind %u", op->kind);
    if (op->kind == FRIT_COLLECTIVE_BROADCAST && op->root >= group->size)
        return plug_fail(group->plug, err, FRIT_INVALID, "root %u of %u ranks", op->root,
                         group->size);
    for (uint32_t i = 0; i < op->n_buffers; i++) {
        const uint32_t dtype = buffer_at(op, i)->dtype;

        if (combines(op->kind) ? !combine_can(dtype, op->combine) : !combine_element_bytes(dtype))
            return plug_fail(group->plug, err, FRIT_UNSUPPORTED,
                             "an element type that this engine cannot %s (number %u)",
                             combines(op->kind) ? "combine so" : "move", dtype);
    }
    return FRIT_OK;
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
    return FRIT_OK;
}

/* The only rank: an element is combined with nothing, but mean and sum are rounded as ever. */
static void run_alone(const struct begun *begun)
{
    for (uint32_t i = 0; i < begun->header.n_buffers; i++) {
        const frit_collective_buffer *b = &begun->buffers[i];

        if (b->into != b->from && b->count)
            memcpy(b->into, b->from, b->count * combine_element_bytes(b->dtype));
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
        job_wake(group->job);
    }
    pthread_mutex_unlock(&group->job->lock);
    if (status)
        plug_free(group->plug, begun.buffers);
    return status;
}

/* With the lock, if there is one. */
static frit_status state_of(const frit_group *group, uint64_t value, frit_err *err)
{
    if (group->done >= value)
        return FRIT_OK;
    if (!group->error.status)
        return plug_fail(group->plug, err, FRIT_TIMEOUT, "not all ranks have begun it");
    plug_copy_err(group->plug, err, &group->error);
    return group->error.status;
}

frit_status group_wait(frit_group *group, uint64_t value, uint64_t timeout_ns, frit_err *err)
{
    const uint64_t deadline = deadline_after(timeout_ns);
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
        while (group->done < value && !group->is_quiet && timeout_ns &&
               job_sleep(job, &job->change, deadline))
            ;
        /* A failure is reported once no buffer is touched. */
        while (group->done < value && group->error.status && !group->is_quiet)
            (void)job_sleep(job, &job->change, UINT64_MAX);
        status = state_of(group, value, err);
    }
    pthread_mutex_unlock(&job->lock);
    return status;
}
