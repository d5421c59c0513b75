/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are expensive to compute and needed in several passes over a row are saved in a
 * tile of the group by the first of these passes. */
#ifndef SCHEDULE_ROW_SAVE_H
#define SCHEDULE_ROW_SAVE_H

#include <stdint.h>

struct row_emitter;

/* To be called before the first pass over a row. */
void save_begin(struct row_emitter *w);
/* To be called in a round once the element is set: computes nodes and saves them in tiles, or binds
 * nodes to saved values. */
void save_round(struct row_emitter *w, uint32_t element);

#endif
