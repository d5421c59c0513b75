/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of queues share. */
#ifndef DEVICE_QUEUE_PARTS_H
#define DEVICE_QUEUE_PARTS_H

#include "device/device.h"

static inline uint64_t queue_reached(const frit_device *device, uint32_t queue)
{
    return atomic_load(&device->queues[queue].reached);
}

static inline bool queue_has_reached(const frit_device *device, uint64_t point)
{
    return point_value(point) <= queue_reached(device, point_queue(point));
}

static inline void queue_raise(atomic_uint_least64_t *highest, uint64_t value)
{
    uint64_t now = atomic_load(highest);

    while (now < value && !atomic_compare_exchange_weak(highest, &now, value))
        ;
}

#endif
