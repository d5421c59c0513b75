/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of a device from run to run: loaded from the file of option [fusion] store when it
 * opens, saved by a thread of its own when new ones came and it got calm, and at the end.
 *
 * A file that cannot be read or written never makes anything fail; that it cannot be written is
 * told where the user named it.  Threads: any. */
#ifndef STREAM_KNOWN_H
#define STREAM_KNOWN_H

#include "stream/device.h"

struct known;

/* Loads what is known into the device's automaton; its fusers are there.  *out NULL: nothing is
 * kept.  Only memory fails. */
frit_status known_open(frit_device *device, struct known **out, frit_err *err);
/* An answer was stored in the automaton.  NULL does nothing. */
void known_note(struct known *known);
/* Saves what is new.  Nobody notes any more; the automaton and the fusers are still there. */
void known_close(struct known *known);

#endif
