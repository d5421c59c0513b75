/* SPDX-License-Identifier: Apache-2.0 */
#include "communicator.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- failures and waiting ---- */

void communicator_fail(struct communicator *c, frit_status status, const char *format, ...)
{
    va_list args;

    if (c->error.status)
        return;
    va_start(args, format);
    vsnprintf(c->error.text, sizeof c->error.text, format, args);
    va_end(args);
    c->error.status = status;
    pthread_cond_broadcast(&c->change);
}

frit_status communicator_error(const struct communicator *c, frit_err *err)
{
    plug_copy_err(&c->instance->plug, err, &c->error);
    return c->error.status;
}

struct deadline deadline_after(uint64_t ns)
{
    struct deadline deadline = {.never = ns > INT64_MAX};

    clock_gettime(CLOCK_MONOTONIC, &deadline.at);
    if (deadline.never)
        return deadline;
    deadline.at.tv_sec += (time_t)(ns / 1000000000);
    deadline.at.tv_nsec += (long)(ns % 1000000000);
    if (deadline.at.tv_nsec >= 1000000000) {
        deadline.at.tv_sec++;
        deadline.at.tv_nsec -= 1000000000;
    }
    return deadline;
}

uint64_t deadline_left(const struct deadline *deadline)
{
    struct timespec now;
    int64_t left;

    if (deadline->never)
        return UINT64_MAX;
    clock_gettime(CLOCK_MONOTONIC, &now);
    left = (int64_t)(deadline->at.tv_sec - now.tv_sec) * 1000000000 + deadline->at.tv_nsec -
           now.tv_nsec;
    return left > 0 ? (uint64_t)left : 0;
}

bool communicator_sleep(struct communicator *c, const struct deadline *deadline)
{
    if (deadline->never)
        return pthread_cond_wait(&c->change, &c->lock) == 0;
    return pthread_cond_timedwait(&c->change, &c->lock, &deadline->at) == 0;
}

void communicator_print_missing(const struct communicator *c, uint64_t value, char *text,
                                size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t r = 0; r < c->size && used < size; r++) {
        const frit_group *rank = c->ranks[r];

        if (value ? rank && rank->begun < value : !rank)
            used += (size_t)snprintf(text + used, size - used, used ? ", %u" : " %u", r);
    }
}

/* ---- operations ---- */

struct pending *communicator_pending(const frit_group *group, uint64_t number)
{
    return group->pending[number & (group->capacity - 1)];
}

bool communicator_is_made(const struct communicator *c)
{
    for (uint32_t r = 0; r < c->size; r++) {
        if (c->ranks[r] && c->ranks[r]->is_ready)
            return true;
    }
    return c->n_came == c->size;
}

bool communicator_all_began(const struct communicator *c, uint64_t number)
{
    for (uint32_t r = 0; r < c->size; r++) {
        if (c->ranks[r] && c->ranks[r]->begun < number)
            return false;
    }
    return true;
}

static bool all_done(const struct communicator *c)
{
    for (uint32_t r = 0; r < c->size; r++) {
        if (c->ranks[r] && !c->ranks[r]->has_left && c->ranks[r]->done < c->agreed)
            return false;
    }
    return true;
}

/* Two ranks of this process that began different operations, and the first buffer that differs;
 * false: there are none. */
static bool find_difference(const struct communicator *c, uint64_t number, uint32_t pair[2],
                            uint32_t *buffer)
{
    const struct operation *first = NULL, *other;

    for (uint32_t r = 0; r < c->size; r++) {
        if (!c->ranks[r])
            continue;
        pair[first ? 1 : 0] = r;
        other = &communicator_pending(c->ranks[r], number)->operation;
        if (!first)
            first = other;
        else if (!operation_equal(first, other, buffer))
            return true;
    }
    return false;
}

static void fail_difference(struct communicator *c, uint64_t number, const uint32_t pair[2],
                            uint32_t buffer)
{
    const struct operation *operations[2];
    char text[2][160];

    for (int i = 0; i < 2; i++)
        operations[i] = &communicator_pending(c->ranks[pair[i]], number)->operation;
    for (int i = 0; i < 2; i++)
        operation_print(operations[i], buffer,
                        strcmp(operations[0]->note, operations[1]->note) != 0, text[i],
                        sizeof text[i]);
    communicator_fail(c, FRIT_MISMATCH, "operation %llu is %s on rank %u, %s on rank %u",
                      (unsigned long long)number, text[0], pair[0], text[1], pair[1]);
}

/* The rank that has left and that others wait for; false: there is none. */
static bool find_lost(const struct communicator *c, uint64_t number, uint32_t *lost)
{
    bool is_needed = false, is_lost = false;

    for (uint32_t r = 0; r < c->size; r++) {
        const frit_group *rank = c->ranks[r];

        if (!rank)
            continue;
        is_needed |= rank->begun >= number;
        if (rank->has_left && rank->begun < number) {
            is_lost = true;
            *lost = r;
        }
    }
    return is_needed && is_lost;
}

void communicator_advance(struct communicator *c)
{
    uint32_t pair[2] = {0}, buffer = 0, lost = 0;
    bool differ = false;

    if (c->error.status)
        return;
    while (communicator_all_began(c, c->agreed + 1) && !differ) {
        differ = find_difference(c, c->agreed + 1, pair, &buffer);
        if (!differ) {
            c->agreed++;
            pthread_cond_broadcast(&c->change);
        }
    }
    if (!all_done(c))
        return;
    if (differ)
        fail_difference(c, c->agreed + 1, pair, buffer);
    else if (find_lost(c, c->agreed + 1, &lost))
        communicator_fail(c, FRIT_PEER_LOST, "rank %u has left the group", lost);
}

/* ---- making and freeing ---- */

static void init_sync(struct communicator *c)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->change, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void free_rank(const struct plug *plug, frit_group *group)
{
    for (uint32_t i = 0; i < group->capacity; i++) {
        if (group->pending[i])
            operation_free(plug, &group->pending[i]->operation);
        plug_free(plug, group->pending[i]);
    }
    plug_free(plug, group->pending);
    plug_free(plug, group);
}

/* Only here, when nobody compares with it any more. */
static void free_communicator(struct communicator *c)
{
    const struct plug *plug = &c->instance->plug;

    for (uint32_t r = 0; r < c->size; r++) {
        if (c->ranks[r])
            free_rank(plug, c->ranks[r]);
    }
    pthread_cond_destroy(&c->change);
    pthread_mutex_destroy(&c->lock);
    plug_free(plug, c);
}

/* With the instance's lock. */
static struct communicator *find_or_make(struct instance *instance, const struct library *library,
                                         const frit_group_params *params, frit_err *err)
{
    struct communicator *c = instance->communicators;

    while (c && memcmp(&c->id, params->id, sizeof c->id) != 0)
        c = c->next;
    if (c)
        return c;
    c = plug_new(&instance->plug, sizeof *c + params->size * sizeof c->ranks[0], "a group", err);
    if (!c)
        return NULL;
    c->instance = instance;
    c->library = library;
    c->id = *params->id;
    c->size = params->size;
    c->error.struct_size = sizeof c->error;
    init_sync(c);
    c->next = instance->communicators;
    instance->communicators = c;
    return c;
}

/* A device that is two ranks of one group makes the library hang. */
static void check_devices(struct communicator *c, const frit_group *group)
{
    for (uint32_t r = 0; r < c->size; r++) {
        if (c->ranks[r] && strcmp(c->ranks[r]->bus_id, group->bus_id) == 0)
            communicator_fail(c, FRIT_INVALID,
                              "ranks %u and %u are on one device, %s; %s needs one for each", r,
                              group->rank, group->bus_id, c->library->vendor->name);
    }
}

/* With both locks. */
static frit_status enter(struct communicator *c, const frit_group_params *params, frit_group *group,
                         frit_err *err)
{
    const struct plug *plug = &c->instance->plug;

    if (c->size != params->size &&
        communicator_is_made(c)) /* the others have nothing to do with it */
        return plug_fail(plug, err, FRIT_MISMATCH, "the group has %u ranks, not %u", c->size,
                         params->size);
    if (c->size != params->size)
        communicator_fail(c, FRIT_MISMATCH, "the group has %u ranks, but rank %u says %u", c->size,
                          params->rank, params->size);
    else if (c->ranks[params->rank])
        return plug_fail(plug, err, FRIT_INVALID, "rank %u has come already", params->rank);
    else
        check_devices(c, group);
    if (c->error.status)
        return communicator_error(c, err);
    group->communicator = c;
    c->ranks[params->rank] = group;
    c->n_came++;
    return FRIT_OK;
}

frit_status communicator_enter(struct instance *instance, const struct library *library,
                               const frit_group_params *params, frit_group *group, frit_err *err)
{
    struct communicator *c;
    frit_status status = FRIT_NO_HOST_MEMORY;

    pthread_mutex_lock(&instance->lock);
    c = find_or_make(instance, library, params, err);
    if (c) {
        pthread_mutex_lock(&c->lock);
        status = enter(c, params, group, err);
        pthread_mutex_unlock(&c->lock);
    }
    pthread_mutex_unlock(&instance->lock);
    return status;
}

void communicator_leave(frit_group *group)
{
    struct communicator *c = group->communicator;
    struct instance *instance = c->instance;
    struct communicator **at = &instance->communicators;
    bool is_last;

    pthread_mutex_lock(&instance->lock);
    pthread_mutex_lock(&c->lock);
    group->has_left = true;
    is_last = ++c->n_left == c->n_came;
    pthread_mutex_unlock(&c->lock);
    if (is_last) {
        while (*at != c)
            at = &(*at)->next;
        *at = c->next;
    }
    pthread_mutex_unlock(&instance->lock);
    if (is_last)
        free_communicator(c);
}
