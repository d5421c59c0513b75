/* SPDX-License-Identifier: Apache-2.0 */
/* Combines the values of a group's lanes. */
#ifndef SCHEDULE_ROW_LANES_H
#define SCHEDULE_ROW_LANES_H

struct row_emitter;

/* Combines the states of all lanes of the group; afterwards they are uniform. */
void lanes_combine(const struct row_emitter *w);

#endif
