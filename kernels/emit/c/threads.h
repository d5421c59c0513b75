/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that access tiles, wait for other threads of the group, or read values of other
 * lanes. */
#ifndef EMIT_C_THREADS_H
#define EMIT_C_THREADS_H

#include "emit/c/writer.h"

/* Whether an instruction makes threads of the group wait for each other or read each other's
 * values; it ends a region (plan.h). */
bool threads_communicate(const struct shape *shape, uint32_t at);

/* Declares the tiles of the phase, each with its position in shared memory, and reserves the areas
 * for exchanges after them. */
void threads_declare(struct writer *w);

/* Each writes the instruction of its name: KIR_tload and so on. */
void threads_tload(struct writer *w, uint32_t at);
void threads_tstore(struct writer *w, uint32_t at);
void threads_barrier(struct writer *w, uint32_t at);
void threads_exchange(struct writer *w, uint32_t at);
void threads_shift(struct writer *w, uint32_t at);
void threads_first(struct writer *w, uint32_t at);
/* At the beginning or end of a loop or branch of the whole group: adds a barrier if values of an
 * exchange may still be read, so that the next exchange may overwrite them. */
void threads_end_exchange(struct writer *w);

#endif
