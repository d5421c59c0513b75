/* SPDX-License-Identifier: Apache-2.0 */
#include "device/retired.h"

#include "device/device.h"
#include "plan/program.h"

void retired_init(struct retired *retired)
{
    pthread_mutex_init(&retired->lock, NULL);
    atomic_init(&retired->oldest, UINT64_MAX);
}

void retired_fini(struct retired *retired)
{
    for (struct program *program = retired->first, *next; program; program = next) {
        next = program->next;
        program_destroy(program);
    }
    pthread_mutex_destroy(&retired->lock);
}

/* Inside the lock. */
static void note_oldest(struct retired *retired)
{
    atomic_store(&retired->oldest, retired->first ? retired->first->value : UINT64_MAX);
}

void retired_add(frit_device *device, struct program *program)
{
    struct retired *retired = &device->retired;

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
    struct retired *retired = &device->retired;
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

    while (atomic_load_explicit(&device->retired.oldest, memory_order_relaxed) <=
               atomic_load_explicit(&device->reached, memory_order_relaxed) &&
           (program = take_first(device)))
        program_destroy(program);
}
