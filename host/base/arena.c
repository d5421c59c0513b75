/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK = 4096, ALIGN = 16 };

struct arena_chunk {
    struct arena_chunk *older;
    size_t size; /* of bytes */
    _Alignas(ALIGN) unsigned char bytes[];
};

static struct arena_chunk *chunk_create(struct arena_chunk *older, size_t need)
{
    size_t size = older ? older->size * 2 : FIRST_CHUNK;
    struct arena_chunk *chunk;

    while (size < need)
        size *= 2;
    chunk = malloc(sizeof(*chunk) + size);
    if (!chunk)
        return NULL;
    chunk->older = older;
    chunk->size = size;
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    unsigned char *piece;

    if (bytes > SIZE_MAX / 4)
        return NULL;
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (!arena->chunk || arena->chunk->size - arena->used < bytes) {
        struct arena_chunk *chunk = chunk_create(arena->chunk, bytes);

        if (!chunk)
            return NULL;
        arena->chunk = chunk;
        arena->used = 0;
    }
    piece = arena->chunk->bytes + arena->used;
    arena->used += bytes;
    memset(piece, 0, bytes);
    return piece;
}

void *arena_array(struct arena *arena, size_t count, size_t bytes)
{
    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    return arena_alloc(arena, count * bytes);
}

char *arena_text(struct arena *arena, const char *text, size_t length)
{
    char *copy = length < SIZE_MAX ? arena_alloc(arena, length + 1) : NULL;

    if (copy && length)
        memcpy(copy, text, length);
    return copy;
}

static void free_chunks(struct arena_chunk *chunk)
{
    while (chunk) {
        struct arena_chunk *older = chunk->older;

        free(chunk);
        chunk = older;
    }
}

size_t arena_bytes(const struct arena *arena)
{
    size_t bytes = 0;

    for (const struct arena_chunk *chunk = arena->chunk; chunk; chunk = chunk->older)
        bytes += sizeof(*chunk) + chunk->size;
    return bytes;
}

void arena_reset(struct arena *arena)
{
    if (!arena->chunk)
        return;
    free_chunks(arena->chunk->older);
    arena->chunk->older = NULL;
    arena->used = 0;
}

void arena_fini(struct arena *arena)
{
    free_chunks(arena->chunk);
    *arena = (struct arena){0};
}
