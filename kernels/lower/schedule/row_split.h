/* SPDX-License-Identifier: Apache-2.0 */
/* Split rows. */
#ifndef SCHEDULE_ROW_SPLIT_H
#define SCHEDULE_ROW_SPLIT_H

struct row_emitter;

/* Emits all phases of split rows. */
void row_emit_split(struct row_emitter *w);

#endif
