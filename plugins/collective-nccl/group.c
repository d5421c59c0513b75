/* SPDX-License-Identifier: Apache-2.0 */
/* The side of a rank that the host calls. */
#include "group.h"

#include <stdio.h>
#include <string.h>

#include "communicator.h"
#include "exchange.h"
#include "launch.h"
#include "rank.h"

enum { FIRST_CAPACITY = 8 };

static const uint64_t grace_ns = 2000000000u;  /* that a failed creation waits for its thread */
static const uint64_t leave_ns = 10000000000u; /* that others have for what was begun */

static frit_status load(struct instance *instance, int vendor, frit_err *err)
{
    frit_status status;

    pthread_mutex_lock(&instance->lock);
    status = library_load(&instance->libraries[vendor], &instance->plug, &instance->options[vendor],
                          err);
    pthread_mutex_unlock(&instance->lock);
    return status;
}

/* ---- ids ---- */

/* Of the first vendor whose libraries are there. */
frit_status group_id(void *opened, frit_group_id *out, frit_err *err)
{
    struct instance *instance = opened;
    struct nccl_id id = {{0}};
    frit_err first = {.struct_size = sizeof first};
    frit_status status = load(instance, VENDOR_CUDA, &first);
    int vendor = VENDOR_CUDA, result;

    *out = (frit_group_id){{0}};
    if (status && load(instance, VENDOR_HIP, NULL)) {
        plug_copy_err(&instance->plug, err, &first);
        return status;
    }
    if (status)
        vendor = VENDOR_HIP;
    result = instance->libraries[vendor].nccl.GetUniqueId(&id);
    if (result)
        return plug_fail(&instance->plug, err, library_status(result),
                         "ncclGetUniqueId failed (%d)", result);
    memcpy(out->bytes, id.bytes, sizeof id.bytes);
    return FRIT_OK;
}

FRIT_STATIC_ASSERT(sizeof(struct nccl_id) == FRIT_GROUP_ID_BYTES, "the library's id is a group's");

/* ---- making one ---- */

static frit_status check_params(const struct plug *plug, const frit_group_params *params,
                                int *vendor, frit_err *err)
{
    if (params->struct_size < FRIT_END_OF(frit_group_params, device))
        return plug_fail(plug, err, FRIT_INCOMPATIBLE, "parameters of %u bytes",
                         params->struct_size);
    for (*vendor = 0; *vendor < VENDORS; (*vendor)++) {
        if (plug_is(params->space, vendors[*vendor].space))
            break;
    }
    if (*vendor == VENDORS || !params->device)
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "memory that is not that of a device of CUDA or HIP");
    if (params->size < 1 || params->rank >= params->size)
        return plug_fail(plug, err, FRIT_INVALID, "rank %u of %u", params->rank, params->size);
    if (params->size > COMMUNICATOR_MAX_RANKS)
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "a group of %u ranks; at most %d",
                         params->size, COMMUNICATOR_MAX_RANKS);
    return FRIT_OK;
}

static frit_status find_bus_id(const struct library *library, const struct plug *plug,
                               frit_group *group, frit_err *err)
{
    struct scope scope;
    int number, result = library_enter(library, group->device, &scope);

    if (!result) {
        result = library->vendor->get_number(&library->gpu, &number);
        if (!result)
            result = library->gpu.DeviceGetPCIBusId(group->bus_id, GPU_BUS_ID, number);
        library_leave(library, &scope);
    }
    return result ? plug_fail(plug, err, library_gpu_status(result),
                              "the group's device cannot be used (error %d)", result)
                  : FRIT_OK;
}

static frit_status enter(struct instance *instance, const struct library *library,
                         const frit_group_params *params, frit_group **out, frit_err *err)
{
    frit_group *group = plug_new(&instance->plug, sizeof *group, "a group", err);
    frit_status status;

    if (!group)
        return FRIT_NO_HOST_MEMORY;
    group->rank = params->rank;
    group->device = params->device;
    status = find_bus_id(library, &instance->plug, group, err);
    if (!status)
        status = communicator_enter(instance, library, params, group, err);
    if (status)
        plug_free(&instance->plug, group);
    else
        *out = group;
    return status;
}

/* A rank that failed before its thread began: the others of this process fail as it did. */
static void fail_early(frit_group *group, frit_status status, const char *text)
{
    struct communicator *c = group->communicator;

    pthread_mutex_lock(&c->lock);
    communicator_fail(c, status, "%s", text);
    group->is_gone = true;
    pthread_mutex_unlock(&c->lock);
    communicator_leave(group);
}

static frit_status find_id(frit_group *group, const frit_group_params *params,
                           const struct deadline *deadline, struct nccl_id *out, frit_err *err)
{
    frit_err why = {.struct_size = sizeof why};
    frit_status status;

    if (!exchange_has_store(params)) {
        memcpy(out->bytes, params->id->bytes, sizeof out->bytes);
        return FRIT_OK;
    }
    status = exchange_run(group, params, deadline, out, &why);
    if (!status)
        return FRIT_OK;
    plug_copy_err(&group->communicator->instance->plug, err, &why);
    fail_early(group, status, why.text);
    return status;
}

static frit_status await_ready(frit_group *group, const struct deadline *deadline, frit_err *err)
{
    struct communicator *c = group->communicator;
    frit_status status = FRIT_OK;
    char missing[300];

    pthread_mutex_lock(&c->lock);
    while (!group->is_ready && !c->error.status) {
        if (communicator_sleep(c, deadline) || group->is_ready)
            continue;
        communicator_print_missing(c, 0, missing, sizeof missing);
        communicator_fail(c, FRIT_TIMEOUT, "no word from rank%s%s", *missing ? missing : "s",
                          *missing ? ", if it is not of another process"
                                   : " of this process, which have all come");
    }
    /* A group that has ended since is one that was made. */
    if (!communicator_is_made(c)) {
        status = communicator_error(c, err);
        (void)rank_await_end(group, grace_ns);
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

frit_status group_create(void *opened, const frit_group_params *params, frit_group **out,
                         frit_err *err)
{
    const struct deadline deadline = deadline_after(params->timeout_ns);
    struct instance *instance = opened;
    frit_group *group = NULL;
    struct nccl_id id;
    int vendor = 0;
    frit_status status = check_params(&instance->plug, params, &vendor, err);

    *out = NULL;
    if (!status)
        status = load(instance, vendor, err);
    if (!status)
        status = enter(instance, &instance->libraries[vendor], params, &group, err);
    if (!status)
        status = find_id(group, params, &deadline, &id, err);
    if (status)
        return status;
    if (!rank_start(group, &id)) {
        fail_early(group, FRIT_NO_HOST_MEMORY, "no memory for a thread");
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory for a thread");
    }
    status = await_ready(group, &deadline, err);
    if (status)
        rank_release(group);
    else
        *out = group;
    return status;
}

/* ---- ending ---- */

/* With the lock.  What all ranks of this process have begun is done first, if those of others let
 * it; the rest this rank never began. */
static void end_operations(frit_group *group)
{
    const struct deadline deadline = deadline_after(leave_ns);
    struct communicator *c = group->communicator;

    while (!c->error.status && group->done < c->agreed && communicator_sleep(c, &deadline))
        ;
    if (group->done < c->agreed)
        communicator_fail(c, FRIT_PEER_LOST,
                          "rank %u has left the group before operation %llu was done", group->rank,
                          (unsigned long long)group->done + 1);
    if (group->begun > c->agreed)
        group->begun = c->agreed;
}

void group_destroy(frit_group *group)
{
    struct communicator *c;

    if (!group)
        return;
    c = group->communicator;
    pthread_mutex_lock(&c->lock);
    end_operations(group);
    group->is_leaving = true;
    pthread_cond_broadcast(&c->change);
    (void)rank_await_end(group, leave_ns);
    pthread_mutex_unlock(&c->lock);
    rank_release(group);
}

void group_abort(frit_group *group, const frit_err *why)
{
    struct communicator *c = group->communicator;

    pthread_mutex_lock(&c->lock);
    communicator_fail(c, FRIT_ABORTED, "%s", why->text);
    pthread_mutex_unlock(&c->lock);
}

/* ---- operations ---- */

static frit_status grow(frit_group *group, frit_err *err)
{
    const struct plug *plug = &group->communicator->instance->plug;
    const uint32_t capacity = group->capacity ? 2 * group->capacity : FIRST_CAPACITY;
    struct pending **list = plug_new(plug, capacity * sizeof *list, "pending operations", err);

    if (!list)
        return FRIT_NO_HOST_MEMORY;
    for (uint32_t i = 0; i < group->capacity; i++) {
        const uint64_t number = group->begun - i;

        list[number & (capacity - 1)] = communicator_pending(group, number);
    }
    plug_free(plug, group->pending);
    group->pending = list;
    group->capacity = capacity;
    return FRIT_OK;
}

/* With the lock: a place for the rank's next operation. */
static frit_status reserve(frit_group *group, struct pending **out, frit_err *err)
{
    const uint64_t number = group->begun + 1;
    struct pending **at;
    frit_status status = FRIT_OK;

    if (group->begun - group->done >= group->capacity)
        status = grow(group, err);
    if (status)
        return status;
    at = &group->pending[number & (group->capacity - 1)];
    if (!*at)
        *at = plug_new(&group->communicator->instance->plug, sizeof **at, "an operation", err);
    *out = *at;
    return *at ? FRIT_OK : FRIT_NO_HOST_MEMORY;
}

/* The events of the operation, made once for each place; `ready` is recorded behind what the host's
 * stream holds now. */
static int record(const struct gpu *gpu, struct pending *pending, gpu_stream stream)
{
    int result = pending->end ? 0 : gpu->EventCreate(&pending->end, GPU_EVENT_NO_TIMING);

    pending->is_ordered = stream != NULL;
    if (!result && stream && !pending->ready)
        result = gpu->EventCreate(&pending->ready, GPU_EVENT_NO_TIMING);
    return result || !stream ? result : gpu->EventRecord(pending->ready, stream);
}

static frit_status prepare(frit_group *group, struct pending *pending, const frit_collective_op *op,
                           frit_err *err)
{
    const struct library *library = group->communicator->library;
    const struct plug *plug = &group->communicator->instance->plug;
    gpu_stream stream = FRIT_HAS(op, frit_collective_op, stream) ? op->stream : NULL;
    frit_status status = operation_copy(plug, op, &pending->operation, err);
    struct scope scope;
    int result;

    if (status || (pending->end && !stream)) {
        pending->is_ordered = false;
        return status;
    }
    result = library_enter(library, group->device, &scope);
    if (!result) {
        result = record(&library->gpu, pending, stream);
        library_leave(library, &scope);
    }
    return result ? plug_fail(plug, err, library_gpu_status(result),
                              "recording an event failed (error %d)", result)
                  : FRIT_OK;
}

frit_status group_begin(frit_group *group, const frit_collective_op *op, uint64_t *value,
                        frit_err *err)
{
    struct communicator *c = group->communicator;
    const struct operation_limits limits = {group->rank, c->size, launch_can_combine};
    struct pending *pending = NULL;
    frit_status status = operation_check(&c->instance->plug, op, &limits, err);

    if (status)
        return status;
    pthread_mutex_lock(&c->lock);
    status = c->error.status ? communicator_error(c, err) : reserve(group, &pending, err);
    if (!status && pending)
        status = prepare(group, pending, op, err);
    if (!status) {
        *value = ++group->begun;
        communicator_advance(c);
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

static frit_status report_late(const struct communicator *c, const frit_group *group,
                               uint64_t value, frit_err *err)
{
    const struct plug *plug = &c->instance->plug;
    const unsigned long long number = (unsigned long long)group->done + 1;
    char missing[300];

    if (c->error.status)
        return plug_fail(plug, err, FRIT_TIMEOUT, "the group is still being aborted: %s",
                         c->error.text);
    if (communicator_all_began(c, group->done + 1))
        return plug_fail(plug, err, FRIT_TIMEOUT, "operation %llu is still running", number);
    communicator_print_missing(c, group->done + 1, missing, sizeof missing);
    return plug_fail(plug, err, FRIT_TIMEOUT, "operation %llu waits for rank%s%s", number, missing,
                     number < value ? ", and others behind it" : "");
}

frit_status group_wait(frit_group *group, uint64_t value, uint64_t timeout_ns, frit_err *err)
{
    struct communicator *c = group->communicator;
    const struct deadline deadline = deadline_after(timeout_ns);
    frit_status status = FRIT_OK;

    pthread_mutex_lock(&c->lock);
    if (value > group->begun) {
        status = plug_fail(&c->instance->plug, err, FRIT_INVALID, "operation %llu was never begun",
                           (unsigned long long)value);
    } else {
        while (group->done < value && !group->is_gone && timeout_ns &&
               communicator_sleep(c, &deadline))
            ;
        if (group->done < value)
            status =
                group->is_gone ? communicator_error(c, err) : report_late(c, group, value, err);
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}
