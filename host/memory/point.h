/* SPDX-License-Identifier: Apache-2.0 */
/* Points on the timelines of a device's queues.
 *
 * A point is one word, so that it can be stored atomically: the number of the queue in the high
 * byte, the value below.  A point on the first queue is its value; 0 is reached from the start. */
#ifndef MEMORY_POINT_H
#define MEMORY_POINT_H

#include <stdint.h>

enum { QUEUES_MAX = 8, POINT_SHIFT = 56 };

static inline uint64_t point_of(uint32_t queue, uint64_t value)
{
    return value | (uint64_t)queue << POINT_SHIFT;
}

static inline uint32_t point_queue(uint64_t point)
{
    return (uint32_t)(point >> POINT_SHIFT);
}

static inline uint64_t point_value(uint64_t point)
{
    return point & (((uint64_t)1 << POINT_SHIFT) - 1);
}

/* One value per queue, 0: nothing on that one. */
struct points {
    uint64_t at[QUEUES_MAX];
};

static inline void points_add_value(struct points *points, uint32_t queue, uint64_t value)
{
    if (points->at[queue] < value)
        points->at[queue] = value;
}

static inline void points_add(struct points *points, uint64_t point)
{
    points_add_value(points, point_queue(point), point_value(point));
}

#endif
