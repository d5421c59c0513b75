/* SPDX-License-Identifier: Apache-2.0 */
#include "device/retired.h"

#include <stdlib.h>

#include "base/fail.h"
#include "device/device.h"
#include "plan/program.h"

/* In the order of `value`, the newest timeline value when the program came. */
struct retired {
    pthread_mutex_t lock;
    struct program *first, *last;
    atomic_uint_least64_t oldest; /* value of the first one; UINT64_MAX: there is none */
};

frit_status retired_create(struct retired **out, frit_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    pthread_mutex_init(&(*out)->lock, NULL);
    atomic_init(&(*out)->oldest, UINT64_MAX);
    return FRIT_OK;
}

void retired_destroy(struct retired *retired)
{
    if (!retired)
        return;
    for (struct program *program = retired->first, *next; program; program = next) {
        next = program->next;
        program_destroy(program);
    }
    pthread_mutex_destroy(&retired->lock);
    free(retired);
}

/* Inside the lock. */
static void note_oldest(struct retired *retired)
{
    atomic_store(&retired->oldest, retired->first ? retired->first->value : UINT64_MAX);
}

void retired_add(frit_device *device, struct program *program)
{
    struct retired *retired = device->retired;

    program->next = NULL;
    pthread_mutex_lock(&retired->lock);
    program->value = atomic_load(&device->last_value);
    *(retired->first ? &retired->last->next : &retired->first) = program;
    retired->last = program;
    note_oldest(retired);
    pthread_mutex_unlock(&retired->lock);
    retired_reap(device);
}

/* NULL: what remains waits. */
static struct program *take_first(frit_device *device)
{
    struct retired *retired = device->retired;
    struct program *program;

    pthread_mutex_lock(&retired->lock);
    program = retired->first;
    if (program && program->value > atomic_load(&device->reached))
        program = NULL;
    if (program) {
        retired->first = program->next;
        note_oldest(retired);
    }
    pthread_mutex_unlock(&retired->lock);
    return program;
}

void retired_reap(frit_device *device)
{
    struct program *program;

    while (atomic_load_explicit(&device->retired->oldest, memory_order_relaxed) <=
               atomic_load_explicit(&device->reached, memory_order_relaxed) &&
           (program = take_first(device)))
        program_destroy(program);
}
