/* SPDX-License-Identifier: Apache-2.0 */
/* What lanes of a group do together. */
#ifndef EMIT_C_THREADS_H
#define EMIT_C_THREADS_H

#include "emit/c/writer.h"

/* Whether threads of the group wait for each other, or have values of each other: what ends a
 * region. */
bool threads_cross(const struct shape *shape, uint32_t at);

/* Tiles of the phase, where they lie in shared memory, and the memory for exchanges. */
void threads_declare(struct writer *w);

void threads_tload(struct writer *w, uint32_t at);
void threads_tstore(struct writer *w, uint32_t at);
void threads_barrier(struct writer *w, uint32_t at);
void threads_exchange(struct writer *w, uint32_t at);
void threads_shift(struct writer *w, uint32_t at);
void threads_first(struct writer *w, uint32_t at);
/* Where control of the group begins or ends a round: what was exchanged may be overwritten there.
 */
void threads_settle(struct writer *w);

#endif
