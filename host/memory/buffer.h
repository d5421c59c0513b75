/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers. */
#ifndef MEMORY_BUFFER_H
#define MEMORY_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

struct buffer;
struct memory;
struct points;

/* One owner.  `bytes` 0 gives a buffer without memory (handle NULL). */
frit_status buffer_create(struct memory *memory, uint64_t bytes, bool persistent,
                          struct buffer **out, frit_err *err);
/* A part of another buffer's memory, with one owner: `bytes` from `first` on, which lie in it.  The
 * whole counts as one of its owners, so that nobody takes it for memory of his own. */
frit_status buffer_part(struct buffer *whole, uint64_t first, uint64_t bytes, struct buffer **out,
                        frit_err *err);
void buffer_own(struct buffer *buffer);
void buffer_disown(struct buffer *buffer); /* NULL does nothing */
void buffer_pin(struct buffer *buffer);
void buffer_unpin(struct buffer *buffer);
uint32_t buffer_owners(const struct buffer *buffer);
uint32_t buffer_pins(const struct buffer *buffer);
bool buffer_is_persistent(const struct buffer *buffer);
/* Whether uses of the buffer are kept: not where the device has one queue. */
bool buffer_keeps_uses(const struct buffer *buffer);
/* Adds the points that a command has to wait for before it writes into the buffer, or (`reads`)
 * before it reads what was written there.  Parts of one buffer wait for each other. */
void buffer_add_waits(const struct buffer *buffer, bool reads, struct points *points);
/* A command that reaches this point uses the buffer. */
void buffer_use(const struct buffer *buffer, uint64_t point);
/* Calls `fn` for each buffer with memory and an owner or a pin; none of them ends meanwhile.  `fn`
 * may mark it, and must not call functions of this folder. */
void memory_each_buffer(struct memory *memory, void (*fn)(struct buffer *buffer, void *ctx),
                        void *ctx);
/* Takes the mirror over; false if there is one already, which stays. */
bool buffer_set_mirror(struct buffer *buffer, struct buffer *mirror);
/* Drops the buffer's mirror and what was derived from it. */
void buffer_drop_copies(struct buffer *buffer);

/* Inside the lock: what lies on shelves goes back to the pool. */
void memory_clear_shelves(struct memory *memory);

#endif
