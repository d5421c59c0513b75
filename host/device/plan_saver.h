/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of a device from run to run: loaded from the file of option [fusion] store when it
 * opens, saved by a thread of its own some time after the last new plan, and when the device
 * closes.
 *
 * A file that cannot be read or written never makes anything fail.  If it cannot be written, a
 * warning says so where the user named the file.  Threads: any. */
#ifndef DEVICE_PLAN_SAVER_H
#define DEVICE_PLAN_SAVER_H

#include <frit/frit.h>

struct plan;
struct plan_saver;
struct relative;

/* Loads what is known into the device's automaton; its fusers are there.  *out NULL: nothing is
 * kept.  Only memory fails. */
frit_status plan_saver_open(frit_device *device, struct plan_saver **out, frit_err *err);
/* blob_rebuild for the device's fusers.  FRIT_INCOMPATIBLE where nothing is kept. */
frit_status plan_saver_rebuild(const struct plan_saver *saver, const struct plan *saved,
                               const struct relative *relative, uint32_t n_ops, struct plan **out,
                               frit_err *err);
/* An answer was stored in the automaton.  NULL does nothing. */
void plan_saver_note(struct plan_saver *saver);
/* Saves what is new.  Nobody notes any more; the automaton and the fusers are still there. */
void plan_saver_close(struct plan_saver *saver);

#endif
