/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Device time.  Offered by a plugin with a backend whose queues take FRIT_CMD_TIMESTAMP; optional.
 *
 * A TIMESTAMP writes a count of ticks as a 64-bit number into device memory, when all commands
 * before it in its queue have ended and none after it has begun.  The host reads it like any other
 * memory, after a BARRIER or in a later call.  The host reads the clock before it sends the
 * first TIMESTAMP to a device, and sends none to a device without a clock. */
#ifndef FRIT_PROFILE_H
#define FRIT_PROFILE_H

#include <frit/status.h>

#define FRIT_PROFILE_TABLE "frit.profile/1"

/* One moment in the device's and in the host's time. */
typedef struct frit_clock {
    uint32_t struct_size;
    uint32_t valid_bits; /* of a count of ticks, 1..64: the bits above are 0, and it wraps */
    uint64_t ticks;
    uint64_t host_ns;   /* as frit_host_core.now_ns counts */
    double ns_per_tick; /* > 0 */
} frit_clock;

typedef struct frit_profile_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +mayblock  required.  `device` is what device_open returned.  FRIT_UNSUPPORTED: this
     * one's queues take no TIMESTAMP. */
    frit_status (*clock)(void *device, frit_clock *out, frit_err *err);
} frit_profile_table;

FRIT_STATIC_ASSERT(FRIT_END_OF(frit_clock, ns_per_tick) == 32, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_profile_table, clock) == 16, "0.2");

#endif
