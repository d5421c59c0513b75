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
    vsnprintf(c->error.text, sizeof(c->error.text), format, args);
    va_end(args);
    c->error.status = status;
    pthread_cond_broadcast(&c->change);
}

frit_status communicator_error(const struct communicator *c, frit_err *err)
{
    plug_copy_err(&c->local->plug, err, &c->error);
    return c->error.status;
}

struct deadline deadline_after(uint64_t ns)
{
    struct deadline deadline = {.never = ns > INT64_MAX};

    if (deadline.never)
        return deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline.at);
    deadline.at.tv_sec += (time_t)(ns / 1000000000);
    deadline.at.tv_nsec += (long)(ns % 1000000000);
    if (deadline.at.tv_nsec >= 1000000000) {
        deadline.at.tv_sec++;
        deadline.at.tv_nsec -= 1000000000;
    }
    return deadline;
}

bool deadline_has_passed(const struct deadline *deadline)
{
    struct timespec now;

    if (deadline->never)
        return false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > deadline->at.tv_sec ||
           (now.tv_sec == deadline->at.tv_sec && now.tv_nsec >= deadline->at.tv_nsec);
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
        const struct frit_group *rank = &c->ranks[r];

        if (value ? rank->begun < value : !rank->communicator)
            used += (size_t)snprintf(text + used, size - used, used ? ", %u" : " %u", r);
    }
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

static void free_rank(const struct plug *plug, struct frit_group *rank)
{
    for (uint32_t i = 0; i < rank->capacity; i++)
        operation_free(plug, &rank->operations[i]);
    plug_free(plug, rank->operations);
}

static void free_communicator(struct communicator *c)
{
    const struct plug *plug = &c->local->plug;

    for (uint32_t r = 0; r < c->size; r++)
        free_rank(plug, &c->ranks[r]);
    pthread_cond_destroy(&c->change);
    pthread_mutex_destroy(&c->lock);
    plug_free(plug, c);
}

/* With the instance's lock. */
static struct communicator *find_or_make(struct local *local, const frit_group_params *params,
                                         frit_err *err)
{
    struct communicator *c = local->communicators;
    const uint64_t bytes = sizeof(*c) + params->size * sizeof(*c->ranks);

    while (c && memcmp(&c->id, params->id, sizeof(c->id)) != 0)
        c = c->next;
    if (c)
        return c;
    c = plug_new(&local->plug, bytes, "a group", err);
    if (!c)
        return NULL;
    c->local = local;
    c->id = *params->id;
    c->size = params->size;
    c->error.struct_size = sizeof(c->error);
    init_sync(c);
    c->next = local->communicators;
    local->communicators = c;
    return c;
}

/* With both locks. */
static frit_status enter(struct communicator *c, const frit_group_params *params, frit_group **out,
                         frit_err *err)
{
    struct frit_group *rank;

    if (c->size != params->size && c->n_came == c->size) /* the others have nothing to do with it */
        return plug_fail(&c->local->plug, err, FRIT_MISMATCH, "the group has %u ranks, not %u",
                         c->size, params->size);
    if (c->size != params->size)
        communicator_fail(c, FRIT_MISMATCH, "the group has %u ranks, but rank %u says %u", c->size,
                          params->rank, params->size);
    if (c->error.status)
        return communicator_error(c, err);
    rank = &c->ranks[params->rank];
    if (rank->communicator)
        return plug_fail(&c->local->plug, err, FRIT_INVALID, "rank %u has come already",
                         params->rank);
    rank->communicator = c;
    rank->rank = params->rank;
    if (++c->n_came == c->size)
        pthread_cond_broadcast(&c->change);
    *out = rank;
    return FRIT_OK;
}

static frit_status await_all(struct communicator *c, uint64_t timeout_ns, frit_err *err)
{
    const struct deadline deadline = deadline_after(timeout_ns);
    frit_status status = FRIT_OK;
    char missing[300];

    pthread_mutex_lock(&c->lock);
    while (c->n_came < c->size && !c->error.status) {
        if (communicator_sleep(c, &deadline) || c->n_came == c->size)
            continue;
        communicator_print_missing(c, 0, missing, sizeof(missing));
        communicator_fail(c, FRIT_TIMEOUT, "no word from rank%s", missing);
    }
    if (c->n_came < c->size)
        status = communicator_error(c, err);
    pthread_mutex_unlock(&c->lock);
    return status;
}

frit_status communicator_join(struct local *local, const frit_group_params *params,
                              frit_group **out, frit_err *err)
{
    struct communicator *c;
    frit_group *group = NULL;
    frit_status status = FRIT_NO_HOST_MEMORY;

    pthread_mutex_lock(&local->lock);
    c = find_or_make(local, params, err);
    if (c) {
        pthread_mutex_lock(&c->lock);
        status = enter(c, params, &group, err);
        pthread_mutex_unlock(&c->lock);
    }
    pthread_mutex_unlock(&local->lock);
    if (status)
        return status;
    status = await_all(c, params->timeout_ns, err);
    if (status)
        communicator_leave(group);
    else
        *out = group;
    return status;
}

void communicator_leave(frit_group *group)
{
    struct communicator *c = group->communicator;
    struct local *local = c->local;
    struct communicator **at = &local->communicators;
    bool last;

    pthread_mutex_lock(&local->lock);
    pthread_mutex_lock(&c->lock);
    group->left = true;
    last = ++c->n_left == c->n_came;
    pthread_mutex_unlock(&c->lock);
    if (last) {
        while (*at != c)
            at = &(*at)->next;
        *at = c->next;
    }
    pthread_mutex_unlock(&local->lock);
    if (last)
        free_communicator(c);
}
