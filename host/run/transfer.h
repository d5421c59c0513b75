/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from and to the program, and between devices. */
#ifndef RUN_TRANSFER_H
#define RUN_TRANSFER_H

#include "run/run.h"

/* A new buffer with the dense elements at `data`; `value` comes with its type. */
frit_status transfer_in(frit_device *device, const void *data, bool persistent, struct value *value,
                        frit_err *err);

/* A read under way. */
struct transfer_read {
    frit_device *device;
    struct value value; /* pinned, or the dense copy */
    bool copied;
    uint64_t at; /* timeline value, 0: nothing to wait for */
};

/* Starts copying the elements of a pinned value, takes the pin over; transfer_finish must follow.
 */
frit_status transfer_start(frit_device *device, const struct value *pinned, void *data,
                           struct transfer_read *read, frit_err *err);
/* Waits and gives everything back; `started` is what transfer_start returned. */
frit_status transfer_finish(struct transfer_read *read, frit_status started, frit_err *err);

/* The same elements on another device; `out` owns its buffer. */
frit_status transfer_across(frit_device *from, const struct value *pinned, frit_device *to,
                            bool persistent, struct value *out, frit_err *err);

#endif
