/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers in the program's own memory.  Each is the one piece of a chunk that is in no pool; when
 * the buffer is gone the chunk joins the list of those that leave, with the points that were the
 * newest then, and is given back to the driver and the program when these are reached. */
#include "memory/adopted.h"

#include "memory/memory_parts.h"

#include <stdlib.h>

#include "base/fail.h"

/* ---- adopting ---- */

static frit_status import_host(struct memory *memory, const struct lent_bytes *lent,
                               frit_allocation *out, frit_err *err)
{
    const frit_import_desc desc = {
        .struct_size = sizeof(desc), .data = lent->data, .bytes = lent->bytes};

    if (!memory->backend->import_host)
        return fail(err, FRIT_UNSUPPORTED, "the device adopts no memory");
    return fail_from(err, memory->backend->import_host(memory->self, &desc, out, err),
                     "import_host");
}

static frit_status import_device(struct memory *memory, const struct lent_bytes *lent,
                                 frit_allocation *out, frit_err *err)
{
    const frit_extmem_desc desc = {
        .struct_size = sizeof(desc), .address = (uintptr_t)lent->data, .bytes = lent->bytes};

    if (!memory->extmem)
        return fail(err, FRIT_UNSUPPORTED, "the device adopts no memory of its kind");
    return fail_from(err, memory->extmem->import(memory->self, &desc, out, err), "import");
}

static frit_status import(struct memory *memory, const struct lent_bytes *lent,
                          frit_allocation *out, frit_err *err)
{
    *out = (frit_allocation){.struct_size = sizeof(*out)};
    if ((uintptr_t)lent->data % memory->align)
        return fail(err, FRIT_UNSUPPORTED, "the memory is not aligned to %llu bytes",
                    (unsigned long long)memory->align);
    TRY((lent->on_device ? import_device : import_host)(memory, lent, out, err));
    return out->memory ? FRIT_OK
                       : fail(err, FRIT_INTERNAL, "the import gave no memory and no error");
}

static struct buffer *create_adopted(struct memory *memory, struct pool_chunk *chunk)
{
    struct buffer *buffer = calloc(1, sizeof(*buffer));

    if (!buffer)
        return NULL;
    chunk->first->used = true;
    atomic_store(&chunk->first->owner, buffer);
    buffer->memory = memory;
    buffer->piece = chunk->first;
    buffer->handle = chunk->handle;
    buffer->bytes = chunk->bytes;
    buffer->alone = true;
    buffer->adopted = true;
    atomic_init(&buffer->counts, 1);
    return buffer;
}

frit_status buffer_adopt(struct memory *memory, const struct lent_bytes *lent, struct buffer **out,
                         frit_err *err)
{
    struct pool_chunk *chunk;
    frit_allocation a;

    *out = NULL;
    TRY(import(memory, lent, &a, err));
    chunk = pool_chunk_create(CHUNK_ADOPTED, a.memory, lent->bytes, memory->n_queues);
    if (chunk)
        *out = create_adopted(memory, chunk);
    if (!*out) {
        memory->backend->free(memory->self, a.memory);
        pool_chunk_destroy(chunk);
        return fail_memory(err, sizeof(**out));
    }
    chunk->release = lent->release;
    chunk->ctx = lent->ctx;
    short_lock_enter(&memory->lock);
    memory->stats.buffers_now++;
    memory->stats.adopted += chunk->bytes;
    memory->stats.adopted_now += chunk->bytes;
    short_lock_leave(&memory->lock);
    return FRIT_OK;
}

/* ---- releasing ---- */

void adopted_return(struct memory *memory, struct pool_chunk *chunk)
{
    memory->stats.buffers_now--;
    memory->queue.submitted(memory->queue.ctx, &chunk->idle_since);
    chunk->next = NULL;
    *memory->leaving_end = chunk;
    memory->leaving_end = &chunk->next;
    atomic_store_explicit(&memory->has_leaving, true, memory_order_relaxed);
}

/* Takes the oldest one out; NULL: there is none. */
static struct pool_chunk *take_oldest(struct memory *memory)
{
    struct pool_chunk *chunk;

    short_lock_enter(&memory->lock);
    chunk = memory->leaving;
    if (chunk) {
        memory->leaving = chunk->next;
        if (!chunk->next)
            memory->leaving_end = &memory->leaving;
    }
    atomic_store_explicit(&memory->has_leaving, memory->leaving != NULL, memory_order_relaxed);
    short_lock_leave(&memory->lock);
    return chunk;
}

static void put_back(struct memory *memory, struct pool_chunk *chunk)
{
    short_lock_enter(&memory->lock);
    chunk->next = memory->leaving;
    memory->leaving = chunk;
    if (!chunk->next)
        memory->leaving_end = &chunk->next;
    atomic_store_explicit(&memory->has_leaving, true, memory_order_relaxed);
    short_lock_leave(&memory->lock);
}

static void release(struct memory *memory, struct pool_chunk *chunk)
{
    atomic_fetch_add(&memory->frees, 1);
    memory->backend->free(memory->self, chunk->handle);
    short_lock_enter(&memory->lock);
    memory->stats.adopted_now -= chunk->bytes;
    short_lock_leave(&memory->lock);
    if (chunk->release)
        chunk->release(chunk->ctx);
    pool_chunk_destroy(chunk);
}

/* Skips memory whose progress another thread is querying: that thread handles it. */
void adopted_poll(struct memory *memory, enum memory_progress how)
{
    struct pool_chunk *chunk;

    while (atomic_load_explicit(&memory->has_leaving, memory_order_relaxed) &&
           (chunk = take_oldest(memory))) {
        if (!memory->queue.is_done(memory->queue.ctx, &chunk->idle_since, how)) {
            put_back(memory, chunk);
            return;
        }
        release(memory, chunk);
    }
}
