/* SPDX-License-Identifier: Apache-2.0 */
#include "device/effects.h"

#include "device/device.h"
#include "device/wait.h"

void effects_init(struct effects *effects)
{
    pthread_mutex_init(&effects->lock, NULL);
    atomic_init(&effects->last, 0);
}

void effects_fini(struct effects *effects)
{
    pthread_mutex_destroy(&effects->lock);
}

void effects_begin(struct effects *effects, struct points *after)
{
    pthread_mutex_lock(&effects->lock);
    points_add(after, atomic_load(&effects->last));
}

void effects_end(struct effects *effects, uint64_t point)
{
    if (point)
        atomic_store(&effects->last, point);
    pthread_mutex_unlock(&effects->lock);
}

frit_status effects_await(frit_device *device, frit_err *err)
{
    return device_wait(device, atomic_load(&device->effects.last), err);
}
