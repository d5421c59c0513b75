/* SPDX-License-Identifier: Apache-2.0 */
#include "run/operation.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/timeline.h"
#include "device/device.h"
#include "device/lineage.h"
#include "device/pending.h"
#include "device/queue.h"
#include "device/side_queue.h"
#include "device/wait.h"
#include "graph/op.h"
#include "load/registry.h"
#include "memory/buffer.h"
#include "memory/memory.h"
#include "run/rank.h"
#include "tensor/failure.h"

/* All ranks divide an operation in the same way, also those whose memory the host sees: so that a
 * copy in host memory needs not be of full size. */
enum { PIECE_BYTES = 4 << 20 };

/* ---- life ---- */

struct operation *operation_create(uint32_t n_sources)
{
    struct operation *o = calloc(1, sizeof(*o) + n_sources * sizeof(struct buffer *));

    if (o)
        o->n_sources = n_sources;
    return o;
}

static bool is_in_place(const struct operation *o)
{
    return o->from.buffer == o->into.buffer;
}

void operation_start(struct operation *o)
{
    device_submitted(o->device, &o->after);
    pending_begin(o->into.buffer);
    if (!is_in_place(o))
        pending_begin(o->from.buffer);
    for (uint32_t i = 0; i < o->n_sources; i++)
        buffer_pin(o->sources[i]);
}

static void leave_buffers(struct operation *o)
{
    for (uint32_t i = 0; i < o->n_sources; i++)
        buffer_unpin(o->sources[i]);
    if (!is_in_place(o))
        pending_end(o->device->pending, o->from.buffer);
    pending_end(o->device->pending, o->into.buffer);
}

void operation_end(struct operation *o)
{
    if (o->into.buffer)
        leave_buffers(o);
    buffer_disown(o->copy);
    failure_unref(o->failure);
    free(o);
}

/* ---- memory that the host sees ---- */

/* The bytes where they are; NULL: the host does not see them, or work is not over when a submit
 * returns. */
static char *host_bytes(const struct operation *o, const struct operation_bytes *at)
{
    const frit_native_table *native = &o->device->entry->plugin->native;
    char *bytes;

    if (!native->get || !(o->device->info->caps & FRIT_CAP_INLINE_QUEUE))
        return NULL;
    bytes = native->get(o->device->self, at->buffer->handle, FRIT_STR("host.ptr"));
    return bytes ? bytes + at->buffer->offset + at->first : NULL;
}

/* The bytes where the engine reaches them on the device. */
static char *device_bytes(const struct operation *o, const struct frit_rank *rank,
                          const struct operation_bytes *at)
{
    char *bytes =
        o->device->entry->plugin->native.get(o->device->self, at->buffer->handle, rank->space);

    return bytes ? bytes + at->buffer->offset + at->first : NULL;
}

/* ---- pieces ---- */

/* A piece of an operation, in the engine's words. */
struct piece {
    uint64_t first, count; /* elements */
    uint64_t value;        /* that its end reaches */
};

static bool is_divided(const struct operation *o)
{
    return o->kind == FRIT_COLLECTIVE_ALL_REDUCE || o->kind == FRIT_COLLECTIVE_BROADCAST;
}

static struct piece piece_at(const struct operation *o, uint64_t first)
{
    const uint64_t most = PIECE_BYTES / frit_storage_bytes(o->dtype, 1);
    const uint64_t rest = o->count - first;

    return (struct piece){.first = first, .count = is_divided(o) && rest > most ? most : rest};
}

static frit_status begin_piece(const struct operation *o, struct frit_rank *rank,
                               struct piece *piece, const void *from, void *into, frit_err *err)
{
    const frit_collective_buffer buffer = {
        .from = from, .into = into, .count = piece->count, .dtype = o->dtype};
    frit_collective_op op = {.struct_size = sizeof(op),
                             .kind = o->kind,
                             .combine = o->combine,
                             .root = o->root,
                             .n_buffers = 1,
                             .buffer_stride = sizeof(buffer),
                             .buffers = &buffer};

    memcpy(op.note, o->note, sizeof(op.note));
    return rank_begin(rank, &op, &piece->value, err);
}

static frit_status begin_in_sight(struct operation *o, struct frit_rank *rank, const char *from,
                                  char *into, frit_err *err)
{
    struct piece piece = {0};
    uint64_t first = 0;

    do {
        uint64_t at;

        piece = piece_at(o, first);
        at = frit_storage_bytes(o->dtype, (int64_t)piece.first);
        TRY(begin_piece(o, rank, &piece, from + at, into + at, err));
        first += piece.count;
    } while (first < o->count);
    o->value = piece.value;
    return FRIT_OK;
}

/* Undivided, as on all ranks: such an engine has none with the host's memory. */
static frit_status begin_on_device(struct operation *o, struct frit_rank *rank, frit_err *err)
{
    const char *from = device_bytes(o, rank, &o->from);
    char *into = device_bytes(o, rank, &o->into);
    struct piece piece = {.count = o->count};

    if (!from || !into) {
        (void)fail(err, FRIT_INTERNAL, "the driver has no address of its memory");
        return rank_give_up(rank, o->what, err);
    }
    TRY(begin_piece(o, rank, &piece, from, into, err));
    o->value = piece.value;
    return FRIT_OK;
}

/* ---- copies in host memory ---- */

static uint64_t bytes_to(const struct operation *o, uint64_t elements)
{
    return frit_storage_bytes(o->dtype, (int64_t)elements);
}

/* So many bytes of the operation, from `first` on, at byte `at` of the copies. */
static struct side_copy copy_of(const struct operation_bytes *of, uint64_t first, uint64_t bytes,
                                uint64_t at)
{
    return (struct side_copy){.memory = of->buffer->handle,
                              .offset = of->buffer->offset + of->first + first,
                              .bytes = bytes,
                              .at = at};
}

/* While the engine has one piece, the next one is read. */
static frit_status run_in_pieces(const struct operation *o, struct frit_rank *rank,
                                 struct side_queue *side, uint64_t half, frit_err *err)
{
    struct piece piece = piece_at(o, 0), next;
    uint64_t at = 0, read_to, written_to;
    struct side_copy copy = copy_of(&o->from, 0, bytes_to(o, piece.count), at);

    TRY(side_queue_read(side, &copy, &read_to, err));
    for (; piece.count; piece = next, at = half - at) {
        TRY(side_queue_wait(side, read_to, err));
        next = piece_at(o, piece.first + piece.count);
        copy = copy_of(&o->from, bytes_to(o, next.first), bytes_to(o, next.count), half - at);
        if (next.count)
            TRY(side_queue_read(side, &copy, &read_to, err));
        TRY(begin_piece(o, rank, &piece, side->host + at, side->host + at, err));
        TRY(rank_wait_for(rank, piece.value, err));
        copy = copy_of(&o->into, bytes_to(o, piece.first), bytes_to(o, piece.count), at);
        TRY(side_queue_write(side, &copy, &written_to, err));
    }
    return FRIT_OK;
}

static frit_status run_whole(const struct operation *o, struct frit_rank *rank,
                             struct side_queue *side, uint64_t half, frit_err *err)
{
    const struct side_copy from = copy_of(&o->from, 0, o->from.bytes, 0);
    const struct side_copy into = copy_of(&o->into, 0, o->into.bytes, half);
    struct piece piece = piece_at(o, 0);
    uint64_t at;

    TRY(side_queue_read(side, &from, &at, err));
    TRY(side_queue_wait(side, at, err));
    TRY(begin_piece(o, rank, &piece, side->host, side->host + half, err));
    TRY(rank_wait_for(rank, piece.value, err));
    return side_queue_write(side, &into, &at, err);
}

/* A copy that fails is this rank's failure alone, unless the group has ended before. */
static frit_status run_copied(const struct operation *o, struct frit_rank *rank, frit_err *err)
{
    struct side_queue *side = rank_side_queue(rank);
    const uint64_t first =
        is_divided(o) && o->from.bytes > PIECE_BYTES ? PIECE_BYTES : o->from.bytes;
    const uint64_t second = is_divided(o) ? first : o->into.bytes, half = (first + 63) / 64 * 64;
    frit_status st = side_queue_reserve(side, half + second, err);

    if (!st) {
        st = is_divided(o) ? run_in_pieces(o, rank, side, half, err)
                           : run_whole(o, rank, side, half, err);
        if (side_queue_finish(side, st ? NULL : err) && !st)
            st = err->status;
    }
    return st && st != FRIT_UNSUPPORTED ? rank_give_up(rank, o->what, err) : st;
}

/* ---- on the rank's thread ---- */

static frit_status operand_failure(const struct operation *o, frit_err *err)
{
    frit_status st = FRIT_OK;

    for (uint32_t i = 0; i < o->n_sources && !st; i++) {
        struct failure *failure = lineage_failure_of(o->device->lineage, o->sources[i]);

        if (!failure)
            continue;
        st = fail(err, failure->status, "%s", failure->text);
        failure_unref(failure);
    }
    return st;
}

static frit_status prepare(const struct operation *o, frit_err *err)
{
    if (!o->device)
        return fail(err, o->failure->status, "%s", o->failure->text);
    TRY(device_wait_points(o->device, &o->after, err));
    return operand_failure(o, err);
}

static frit_status begin_barrier(struct operation *o, struct frit_rank *rank, frit_err *err)
{
    const frit_collective_op op = {.struct_size = sizeof(op), .kind = FRIT_COLLECTIVE_BARRIER};
    frit_status st = rank_begin(rank, &op, &o->value, err);

    return st == FRIT_UNSUPPORTED ? rank_give_up(rank, "", err) : st;
}

static frit_status begin(struct operation *o, struct frit_rank *rank, frit_err *err)
{
    const char *from;
    char *into;

    TRY(rank_check(rank, err));
    if (o->kind == FRIT_COLLECTIVE_BARRIER)
        return begin_barrier(o, rank, err);
    if (prepare(o, err)) {
        (void)fail_context(err, "it cannot begin");
        return rank_give_up(rank, o->what, err);
    }
    if (!o->into.bytes && !o->from.bytes)
        return begin_in_sight(o, rank, NULL, NULL, err);
    if (rank->space.len)
        return begin_on_device(o, rank, err);
    from = host_bytes(o, &o->from);
    into = host_bytes(o, &o->into);
    return from && into ? begin_in_sight(o, rank, from, into, err) : run_copied(o, rank, err);
}

static void fail_result(struct operation *o, struct frit_rank *rank, frit_err *err)
{
    struct failure *failure;

    device_explain_loss(o->device, err);
    (void)fail_context(err, "%s", op_row(o->row)->name);
    failure = failure_create(err);
    lineage_spoil(o->device->lineage, o->into.buffer, failure);
    rank_note_error(rank, failure);
    failure_unref(failure);
}

bool operation_is_ready(const struct operation *o)
{
    if (o->failure)
        return false;
    return !o->device ||
           (device_has_reached_points(o->device, &o->after) && !operand_failure(o, NULL));
}

void operation_begin(struct operation *o, struct frit_rank *rank)
{
    frit_err err = ERR_INIT;

    o->begun_ns = timeline_begin();
    o->has_failed = begin(o, rank, &err);
    if (o->has_failed && o->device)
        fail_result(o, rank, &err);
}

void operation_finish(struct operation *o, struct frit_rank *rank)
{
    frit_err err = ERR_INIT;

    if (!o->has_failed && o->value)
        o->has_failed = rank_wait_for(rank, o->value, &err);
    if (err.status && o->device) {
        fail_result(o, rank, &err);
    } else if (!o->has_failed && o->device) {
        lineage_transferred(o->device->lineage, o->into.buffer,
                            atomic_load(&o->into.buffer->last_write));
        buffer_changed(o->into.buffer);
    }
    timeline_end(o->begun_ns, "collective", str_of(o->row ? op_row(o->row)->name : "barrier"));
}
