/* SPDX-License-Identifier: Apache-2.0 */
/* Device time: while a timeline is recorded, or somebody measures the device, a TIMESTAMP goes
 * before and after each command of a submit, where the driver offers frit.profile/1.
 *
 * The ticks are read when the host waits for the device anyway, never for their own sake, unless
 * too many have gathered.  They become spans on the device's track of the timeline, and a sum.
 * Threads: any. */
#ifndef DEVICE_PROFILE_H
#define DEVICE_PROFILE_H

#include <stdbool.h>

#include <frit/backend.h>
#include <frit/frit.h>
#include <frit/inspect.h>

struct profile;

/* *out is NULL on a device whose driver has no clock. */
frit_status profile_create(frit_device *device, struct profile **out, frit_err *err);
/* Reads what is left; the device is idle.  NULL does nothing. */
void profile_destroy(struct profile *profile);

/* Whether submits are to be measured now; NULL: no. */
bool profile_is_on(const struct profile *profile);
/* Gives the same commands with TIMESTAMPs between them, which stay until profile_end.  False: there
 * is no memory for them, nothing has changed, and profile_end is not called. */
bool profile_begin(struct profile *profile, const frit_cmd **cmds, uint32_t *count);
/* They were submitted and reach `point`; 0: they were not. */
void profile_end(struct profile *profile, uint64_t point);
/* Reads the ticks of commands that are known to have ended.  NULL does nothing. */
void profile_poll(struct profile *profile);

/* As frit_device_time_start and _stop.  `profile` may be NULL. */
frit_status profile_start(struct profile *profile, frit_err *err);
frit_status profile_stop(struct profile *profile, frit_device_time *out, frit_err *err);

#endif
