/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that something ran instead of a program: to counters, log and watchers. */
#ifndef RUN_FALLBACK_H
#define RUN_FALLBACK_H

#include <frit/frit.h>

#include "device/fallback_kind.h"

struct frame;

/* Counted and noted, and once per label and kind a line at debug.  What another candidate or the
 * ops do while the program is not ready (FRIT_BUSY) is not a fallback, and counted as waiting; what
 * they do instead of a program that failed with FRIT_INTERNAL is a fault as well. */
void fallback_report(struct frame *frame, const char *label, enum fallback kind,
                     const frit_err *why);

/* A program that failed by a fault of its plugin (FRIT_INTERNAL): counted, and once per label a
 * warning. */
void fallback_fault(frit_device *device, const char *label, const frit_err *why);

/* Reports it to watchers only. */
void fallback_note(struct frame *frame, enum fallback kind, const char *why);

#endif
