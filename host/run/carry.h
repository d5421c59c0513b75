/* SPDX-License-Identifier: Apache-2.0 */
/* Values on their way to another device.  Between two devices of a driver that copies from one to
 * the other the bytes go directly, else through the host's memory: read by the one, then written by
 * the other. */
#ifndef RUN_CARRY_H
#define RUN_CARRY_H

#include "run/transfer.h"

struct carry {
    struct transfer_read read;
    frit_device *to;
    struct value source;   /* its layout as it arrives, with as_it_lies */
    struct buffer *target; /* NULL: nothing to carry */
    void *staging;         /* NULL: the bytes go into the target's memory at once */
    bool as_it_lies;       /* else the dense elements */
    bool is_direct;        /* nothing is read: carry_finish copies */
    frit_status status;    /* of the start */
    frit_err err;
};

struct carry_how {
    bool whole_buffer; /* all bytes of the buffer, so that the copy can be its mirror */
    bool persistent;
};

/* Makes ready, and starts reading unless the bytes go directly; takes the pin over.  Several may be
 * started before the first is finished. */
void carry_start(frit_device *from, const struct value *pinned, frit_device *to,
                 const struct carry_how *how, struct carry *carry);
/* Waits until the bytes are no longer needed, and starts the write; must follow.  `out` owns its
 * buffer. */
frit_status carry_finish(struct carry *carry, struct value *out, frit_err *err);

/* The same elements on another device; takes the pin over, `out` owns its buffer. */
frit_status carry_across(frit_device *from, const struct value *pinned, frit_device *to,
                         bool persistent, struct value *out, frit_err *err);

#endif
