/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered names of programs and ops.  A command carries the number, so that a message can name
 * what failed when the command fails later.
 *
 * At most LABELS_MAX different texts get a number.  Numbers and texts are valid as long as the
 * device.  Threads: any. */
#ifndef DEVICE_LABEL_H
#define DEVICE_LABEL_H

#include <stdbool.h>

#include <frit/frit.h>

#include "device/fallback_kind.h"

struct labels;

enum { LABELS_MAX = 4096 };

frit_status labels_create(struct labels **out, frit_err *err);
void labels_destroy(struct labels *labels); /* NULL does nothing */

/* The number of a text (cut to 127 bytes), from 1; 0 where there is no room or no memory. */
uint32_t label_of(struct labels *labels, const char *text);
/* NULL for a number that names nothing. */
const char *label_text(struct labels *labels, uint32_t number);

/* True the first time for this label and kind. */
bool label_is_first(struct labels *labels, uint32_t number, enum fallback kind);

#endif
