/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given back as a whole.  Chunks grow by doubling; pieces are 16-byte aligned and
 * zeroed. Threads: one at a time per arena. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

/* All zero is an empty arena. */
struct arena {
    struct arena_chunk *chunk; /* newest */
    size_t used;               /* of the newest chunk */
};

/* Bytes that it has taken. */
size_t arena_bytes(const struct arena *arena);
/* NULL when there is no memory. */
void *arena_alloc(struct arena *arena, size_t bytes);
/* A zeroed array; NULL also when the size overflows. */
void *arena_array(struct arena *arena, size_t count, size_t bytes);
/* A terminated copy of `length` bytes. */
char *arena_text(struct arena *arena, const char *text, size_t length);

/* Forgets every piece, keeps one chunk for the next round. */
void arena_reset(struct arena *arena);
/* Gives everything back; the arena is empty and may be used again. */
void arena_fini(struct arena *arena);

#endif
