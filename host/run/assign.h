/* SPDX-License-Identifier: Apache-2.0 */
/* Values that must end up in preassigned memory (FRIT_ARG_PREASSIGNED). */
#ifndef RUN_ASSIGN_H
#define RUN_ASSIGN_H

#include <stdbool.h>

struct buffer;
struct frame;
struct launch;

/* item_run for a cursor past the steps: copies a value to its preassigned memory unless it is there
 * already. */
void item_run_assigned(struct frame *frame);

/* Places outputs in their preassigned memory where nothing else in it is needed after this launch;
 * launch_bind_args binds it. */
void launch_assign(struct launch *l);
/* Whether the program, as it was prepared, can write its outputs there. */
bool launch_assigned_fits(const struct launch *l);
/* Undoes launch_assign: the outputs get other memory, and are copied after the steps. */
void launch_unassign(struct launch *l);
/* Whether an operand overlaps these bytes of the memory. */
bool launch_reads(const struct launch *l, const struct buffer *memory);

#endif
