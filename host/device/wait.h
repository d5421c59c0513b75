/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for queues, and the failures that waits report. */
#ifndef DEVICE_WAIT_H
#define DEVICE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/frit.h>
#include <frit/status.h>

struct points;

/* Waits until the point is reached.  When it returns, in any thread, every command up to there that
 * failed has spoiled what it wrote. */
frit_status device_wait(frit_device *device, uint64_t point, frit_err *err);
/* Waits for everything that was submitted. */
frit_status device_wait_all(frit_device *device, frit_err *err);
frit_status device_wait_points(frit_device *device, const struct points *points, frit_err *err);
/* Whether the point is reached, or never will be; does not wait. */
bool device_has_reached(frit_device *device, uint64_t point);
bool device_has_reached_points(frit_device *device, const struct points *points);
/* Whether the points are known to be reached; calls no driver. */
bool device_knows_reached(const frit_device *device, const struct points *points);

/* Waits for a point though it may be known to be reached, and reports what failed up to there, but
 * not what failed on other queues. */
frit_status queue_wait_one(frit_device *device, uint64_t point, frit_err *detail);
/* device_wait_points without what comes after a wait: calls the driver's wait alone, so that it may
 * be called inside a queue's lock. */
frit_status queue_await(frit_device *device, const struct points *points, frit_err *err);

#endif
