/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs: adjacent rows that a group works on together. */
#ifndef SCHEDULE_ROW_SLAB_H
#define SCHEDULE_ROW_SLAB_H

#include <stdbool.h>

struct row_schedule;

/* Chooses ROW_SLAB and how rows are divided; false: slabs do not pay. */
bool slab_plan(struct row_schedule *row);

#endif
