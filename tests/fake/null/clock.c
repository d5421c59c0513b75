/* SPDX-License-Identifier: Apache-2.0 */
/* frit.profile/1: the host's nanoseconds, forwards or backwards. */
#include "null.h"

static uint64_t now_ns(const struct device *device)
{
    const struct instance *instance = device->instance;

    return instance->core->now_ns(instance->host->self);
}

uint64_t null_ticks(const struct device *device)
{
    const uint64_t now = now_ns(device);

    return device->instance->options.clock == CLOCK_BACKWARDS ? UINT64_MAX - now : now;
}

frit_status device_clock(void *self, frit_clock *out, frit_err *err)
{
    struct device *device = self;
    frit_status status = null_count_call(device->instance, NULL_CALL_clock, err);

    if (status)
        return status;
    out->valid_bits = 64;
    out->host_ns = now_ns(device);
    out->ticks = null_ticks(device);
    out->ns_per_tick = 1;
    return FRIT_OK;
}
