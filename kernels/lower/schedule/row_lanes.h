/* SPDX-License-Identifier: Apache-2.0 */
/* Combines the values of a group's lanes. */
#ifndef SCHEDULE_ROW_LANES_H
#define SCHEDULE_ROW_LANES_H

struct row_emitter;

/* Combines the states of all lanes with the same row, which have equal states afterwards. */
void lanes_combine(const struct row_emitter *w);

#endif
