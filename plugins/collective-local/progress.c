/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <string.h>

#include "collective/combine.h"
#include "communicator.h"

enum { FIRST_CAPACITY = 8 };

/* ---- with the communicator's lock ---- */

static struct operation *operation_of(const struct frit_group *rank, uint64_t number)
{
    return &rank->operations[number & (rank->capacity - 1)];
}

static bool all_began(const struct communicator *c, uint64_t number)
{
    for (uint32_t r = 0; r < c->size; r++) {
        if (c->ranks[r].begun < number)
            return false;
    }
    return true;
}

/* Ends the group if a rank has left that operation `number` needs. */
static void check_present(struct communicator *c, uint64_t number)
{
    for (uint32_t r = 0; r < c->size; r++) {
        if (c->ranks[r].left && c->ranks[r].begun < number)
            communicator_fail(c, FRIT_PEER_LOST, "rank %u has left the group", r);
    }
}

/* Ends the group if the ranks have begun different operations. */
static bool check_equal(struct communicator *c, uint64_t number)
{
    const struct operation *first = operation_of(&c->ranks[0], number), *other;
    char text[2][160];
    uint32_t buffer;
    bool with_note;

    for (uint32_t r = 1; r < c->size; r++) {
        other = operation_of(&c->ranks[r], number);
        if (operation_equal(first, other, &buffer))
            continue;
        with_note = strcmp(first->note, other->note) != 0;
        operation_print(first, buffer, with_note, text[0], sizeof(text[0]));
        operation_print(other, buffer, with_note, text[1], sizeof(text[1]));
        communicator_fail(c, FRIT_MISMATCH, "operation %llu is %s on rank 0, %s on rank %u",
                          (unsigned long long)number, text[0], text[1], r);
        return false;
    }
    return true;
}

static void start(struct communicator *c)
{
    const uint64_t number = c->done + 1;
    const struct operation *first = operation_of(&c->ranks[0], number);

    c->agreed.kind = first->kind;
    c->agreed.combine = first->combine;
    c->agreed.root = first->root;
    c->agreed.size = c->size;
    c->agreed.n_buffers = first->n_buffers;
    for (uint32_t r = 0; r < c->size; r++)
        c->agreed.buffers[r] = operation_of(&c->ranks[r], number)->buffers;
    c->next_portion = (struct portion){0};
    c->running = true;
}

static void finish(struct communicator *c)
{
    c->running = false;
    c->done++;
    pthread_cond_broadcast(&c->change);
}

/* Moves the data of a portion that nobody else has taken; the lock is free meanwhile. */
static void run_portion(struct communicator *c)
{
    const struct portion from = c->next_portion, until = portion_next(&c->agreed, from);

    c->next_portion = until;
    c->n_working++;
    pthread_mutex_unlock(&c->lock);
    portion_run(&c->agreed, from, until);
    pthread_mutex_lock(&c->lock);
    c->n_working--;
}

/* Works on the operation that all ranks have begun.  False: there is nothing to do for this thread
 * until something changes, or the group has ended. */
static bool work(struct communicator *c)
{
    if (c->error.status)
        return false;
    if (!c->running) {
        if (!all_began(c, c->done + 1) || !check_equal(c, c->done + 1))
            return false;
        start(c);
    }
    if (!portion_is_end(&c->agreed, c->next_portion))
        run_portion(c);
    else if (c->n_working)
        return false;
    if (c->n_working == 0 && portion_is_end(&c->agreed, c->next_portion))
        finish(c);
    else if (c->n_working == 0 && c->error.status)
        pthread_cond_broadcast(&c->change); /* they wait for this, see await_workers */
    return true;
}

/* After it the ended group touches no buffer any more. */
static void await_workers(struct communicator *c)
{
    const struct deadline never = {.never = true};

    while (c->n_working)
        (void)communicator_sleep(c, &never);
}

static frit_status report_late(const struct communicator *c, uint64_t value, frit_err *err)
{
    const unsigned long long number = (unsigned long long)c->done + 1;
    char missing[300];

    if (all_began(c, c->done + 1))
        return plug_fail(&c->local->plug, err, FRIT_TIMEOUT, "operation %llu is still running",
                         number);
    communicator_print_missing(c, c->done + 1, missing, sizeof(missing));
    return plug_fail(&c->local->plug, err, FRIT_TIMEOUT, "operation %llu waits for rank%s%s",
                     number, missing, number < value ? ", and others behind it" : "");
}

static frit_status await(struct communicator *c, uint64_t value, uint64_t timeout_ns, frit_err *err)
{
    const struct deadline deadline = deadline_after(timeout_ns);
    bool late = false;

    while (c->done < value && !c->error.status) {
        if (late)
            return report_late(c, value, err);
        if (work(c))
            late = deadline_has_passed(&deadline);
        else if (!c->error.status)
            late = !communicator_sleep(c, &deadline);
    }
    if (c->done >= value)
        return FRIT_OK;
    await_workers(c);
    return communicator_error(c, err);
}

/* A place for the rank's next operation. */
static frit_status reserve(struct frit_group *group, frit_err *err)
{
    const struct plug *plug = &group->communicator->local->plug;
    const uint32_t capacity = group->capacity ? 2 * group->capacity : FIRST_CAPACITY;
    struct operation *operations;

    if (group->begun - group->communicator->done < group->capacity)
        return FRIT_OK;
    operations = plug_new(plug, capacity * sizeof(*operations), "pending operations", err);
    if (!operations)
        return FRIT_NO_HOST_MEMORY;
    for (uint32_t i = 0; i < group->capacity; i++) {
        const uint64_t number = group->begun - i;

        operations[number & (capacity - 1)] = *operation_of(group, number);
    }
    plug_free(plug, group->operations);
    group->operations = operations;
    group->capacity = capacity;
    return FRIT_OK;
}

static frit_status take(struct frit_group *group, const frit_collective_op *op, frit_err *err)
{
    struct communicator *c = group->communicator;
    frit_status status;

    check_present(c, group->begun + 1);
    if (c->error.status)
        return communicator_error(c, err);
    status = reserve(group, err);
    if (!status)
        status = operation_copy(&c->local->plug, op, operation_of(group, group->begun + 1), err);
    if (status)
        return status;
    group->begun++;
    if (all_began(c, group->begun))
        pthread_cond_broadcast(&c->change);
    return FRIT_OK;
}

/* What all ranks have begun is done first; what some have not is lost with this rank. */
static void end_of_rank(struct frit_group *group)
{
    const struct deadline never = {.never = true};
    struct communicator *c = group->communicator;

    while (!c->error.status && c->done < group->begun && all_began(c, c->done + 1)) {
        if (!work(c) && !c->error.status)
            (void)communicator_sleep(c, &never);
    }
    if (c->done < group->begun)
        communicator_fail(c, FRIT_PEER_LOST,
                          "rank %u has left the group before all ranks began operation %llu",
                          group->rank, (unsigned long long)c->done + 1);
    await_workers(c);
    group->left = true;
    for (uint32_t r = 0; r < c->size; r++)
        check_present(c, c->ranks[r].begun);
}

/* ---- slots ---- */

void progress_destroy(frit_group *group)
{
    if (!group)
        return;
    pthread_mutex_lock(&group->communicator->lock);
    end_of_rank(group);
    pthread_mutex_unlock(&group->communicator->lock);
    communicator_leave(group);
}

void progress_abort(frit_group *group, const frit_err *why)
{
    struct communicator *c = group->communicator;

    pthread_mutex_lock(&c->lock);
    communicator_fail(c, FRIT_ABORTED, "%s", why->text);
    pthread_mutex_unlock(&c->lock);
}

frit_status progress_begin(frit_group *group, const frit_collective_op *op, uint64_t *value,
                           frit_err *err)
{
    struct communicator *c = group->communicator;
    const struct operation_limits limits = {group->rank, c->size, combine_has};
    frit_status status = operation_check(&c->local->plug, op, &limits, err);

    if (status)
        return status;
    pthread_mutex_lock(&c->lock);
    status = take(group, op, err);
    *value = group->begun;
    pthread_mutex_unlock(&c->lock);
    return status;
}

frit_status progress_wait(frit_group *group, uint64_t value, uint64_t timeout_ns, frit_err *err)
{
    struct communicator *c = group->communicator;
    frit_status status;

    pthread_mutex_lock(&c->lock);
    if (value > group->begun)
        status = plug_fail(&c->local->plug, err, FRIT_INVALID, "operation %llu was never begun",
                           (unsigned long long)value);
    else
        status = await(c, value, timeout_ns, err);
    pthread_mutex_unlock(&c->lock);
    return status;
}
