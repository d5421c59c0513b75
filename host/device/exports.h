/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of devices whose memory the program reads by an address that it was given, until it says
 * that it does not any more, or the device is closed.  Threads: any, also while the device closes.
 */
#ifndef DEVICE_EXPORTS_H
#define DEVICE_EXPORTS_H

#include <frit/frit.h>

struct buffer;

/* Embedded in what the program was given; zeroed at first. */
struct exported {
    frit_device *device; /* NULL: the buffer is not owned any more */
    struct buffer *buffer;
    struct exported *next, *prev;
};

/* Owns the buffer, so that nobody writes it. */
void exports_add(struct exported *exported, frit_device *device, struct buffer *buffer);
/* Gives it up, if the device is still open. */
void exports_drop(struct exported *exported);
/* Gives up all of the device, which is closing. */
void exports_end(frit_device *device);

#endif
