/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are to lie in memory given beforehand (FRIT_ARG_PREASSIGNED). */
#ifndef RUN_ASSIGN_H
#define RUN_ASSIGN_H

#include <stdbool.h>

struct buffer;
struct frame;
struct launch;

/* Likewise, where the cursor is behind the steps: sees that a value lies where it is assigned to.
 */
void item_run_assigned(struct frame *frame);

/* Gives outputs with memory assigned that memory, where nothing that lies there is needed after
 * this launch; launch_bind_args binds it. */
void launch_assign(struct launch *l);
/* Whether the program, as it was prepared, can write there. */
bool launch_assigned_fits(const struct launch *l);
/* Takes it back: they get other memory, and are copied in the end. */
void launch_unassign(struct launch *l);
/* Whether an operand lies in these bytes of the memory. */
bool launch_reads(const struct launch *l, const struct buffer *memory);

#endif
