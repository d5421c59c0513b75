/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "util/operation.h"

#include <stdio.h>
#include <string.h>

#include <frit/op.h>

/* ---- checks ---- */

bool operation_combines(uint32_t kind)
{
    return kind == FRIT_COLLECTIVE_ALL_REDUCE || kind == FRIT_COLLECTIVE_REDUCE_SCATTER;
}

static frit_collective_buffer buffer_at(const frit_collective_op *op, uint32_t i)
{
    frit_collective_buffer buffer = {0};
    const size_t bytes = op->buffer_stride < sizeof(buffer) ? op->buffer_stride : sizeof(buffer);

    memcpy(&buffer, (const char *)op->buffers + (size_t)i * op->buffer_stride, bytes);
    return buffer;
}

static bool ends_with_a_byte(const frit_collective_buffer *buffer)
{
    const int64_t count = (int64_t)buffer->count;

    return frit_storage_bytes(buffer->dtype, 8 * count) ==
           8 * frit_storage_bytes(buffer->dtype, count);
}

static frit_status check_buffer(const struct plug *plug, const frit_collective_op *op, uint32_t i,
                                const struct operation_limits *limits, frit_err *err)
{
    const frit_collective_buffer buffer = buffer_at(op, i);
    const bool reads = op->kind != FRIT_COLLECTIVE_BROADCAST || op->root == limits->rank;

    if (!frit_storage_bytes(buffer.dtype, 8) ||
        (operation_combines(op->kind) && !limits->can_combine(buffer.dtype)))
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "buffer %u has an element type that cannot be combined: %u", i,
                         buffer.dtype);
    if (op->kind == FRIT_COLLECTIVE_ALL_GATHER && !ends_with_a_byte(&buffer))
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "buffer %u: parts of packed elements must end with a byte", i);
    if (buffer.count && (!buffer.into || (reads && !buffer.from)))
        return plug_fail(plug, err, FRIT_INVALID, "buffer %u: `%s` is NULL", i,
                         buffer.into ? "from" : "into");
    return FRIT_OK;
}

frit_status operation_check(const struct plug *plug, const frit_collective_op *op,
                            const struct operation_limits *limits, frit_err *err)
{
    if (op->struct_size < FRIT_END_OF(frit_collective_op, buffers))
        return plug_fail(plug, err, FRIT_INCOMPATIBLE, "an operation of %u bytes", op->struct_size);
    if (op->kind < FRIT_COLLECTIVE_BARRIER || op->kind > FRIT_COLLECTIVE_REDUCE_SCATTER)
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "an operation of kind %u", op->kind);
    if (operation_combines(op->kind) && op->combine != FRIT_CHOICE_combine_sum &&
        op->combine != FRIT_CHOICE_combine_mean)
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "values combined by %u", op->combine);
    if (op->kind == FRIT_COLLECTIVE_BROADCAST && op->root >= limits->size)
        return plug_fail(plug, err, FRIT_INVALID, "root %u of %u ranks", op->root, limits->size);
    if (op->kind == FRIT_COLLECTIVE_BARRIER && op->n_buffers)
        return plug_fail(plug, err, FRIT_INVALID, "a barrier has no buffers");
    for (uint32_t i = 0; i < op->n_buffers; i++) {
        const frit_status status = check_buffer(plug, op, i, limits, err);

        if (status)
            return status;
    }
    return FRIT_OK;
}

/* ---- copies ---- */

static frit_status reserve(const struct plug *plug, struct operation *out, uint32_t n,
                           frit_err *err)
{
    frit_collective_buffer *buffers;

    if (n <= out->capacity)
        return FRIT_OK;
    buffers = plug_new(plug, (uint64_t)n * sizeof(*buffers), "a list of buffers", err);
    if (!buffers)
        return FRIT_NO_HOST_MEMORY;
    plug_free(plug, out->buffers);
    out->buffers = buffers;
    out->capacity = n;
    return FRIT_OK;
}

frit_status operation_copy(const struct plug *plug, const frit_collective_op *op,
                           struct operation *out, frit_err *err)
{
    const frit_status status = reserve(plug, out, op->n_buffers, err);

    if (status)
        return status;
    out->kind = op->kind;
    out->combine = operation_combines(op->kind) ? op->combine : 0;
    out->root = op->kind == FRIT_COLLECTIVE_BROADCAST ? op->root : 0;
    out->n_buffers = op->n_buffers;
    memset(out->note, 0, sizeof(out->note));
    if (op->struct_size >= FRIT_END_OF(frit_collective_op, note))
        snprintf(out->note, sizeof(out->note), "%.*s", (int)sizeof(op->note), op->note);
    for (uint32_t i = 0; i < op->n_buffers; i++)
        out->buffers[i] = buffer_at(op, i);
    return FRIT_OK;
}

void operation_free(const struct plug *plug, struct operation *operation)
{
    plug_free(plug, operation->buffers);
    *operation = (struct operation){0};
}

/* ---- comparing ---- */

bool operation_equal(const struct operation *a, const struct operation *b, uint32_t *buffer)
{
    *buffer = 0;
    if (a->kind != b->kind || a->combine != b->combine || a->root != b->root ||
        a->n_buffers != b->n_buffers || strcmp(a->note, b->note) != 0)
        return false;
    for (uint32_t i = 0; i < a->n_buffers; i++) {
        if (a->buffers[i].count == b->buffers[i].count &&
            a->buffers[i].dtype == b->buffers[i].dtype)
            continue;
        *buffer = i;
        return false;
    }
    return true;
}

static const char *dtype_name(uint32_t dtype)
{
    static const char *const names[] = {
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    [id] = #name,
#include <frit/dtypes.def>
    };

    return dtype < sizeof(names) / sizeof(*names) && names[dtype] ? names[dtype] : "?";
}

void operation_print(const struct operation *op, uint32_t buffer, bool with_note, char *text,
                     size_t size)
{
    static const char *const names[] = {[FRIT_COLLECTIVE_BARRIER] = "barrier",
                                        [FRIT_COLLECTIVE_ALL_REDUCE] = "all_reduce",
                                        [FRIT_COLLECTIVE_BROADCAST] = "broadcast",
                                        [FRIT_COLLECTIVE_ALL_GATHER] = "all_gather",
                                        [FRIT_COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter"};
    char first[32] = "", which[48] = "", elements[48] = "no buffers";
    char note[FRIT_COLLECTIVE_NOTE + 4] = "";

    if (operation_combines(op->kind))
        snprintf(first, sizeof(first), "%s, ",
                 op->combine == FRIT_CHOICE_combine_mean ? "mean" : "sum");
    else if (op->kind == FRIT_COLLECTIVE_BROADCAST)
        snprintf(first, sizeof(first), "root %u, ", op->root);
    if (op->n_buffers > 1)
        snprintf(which, sizeof(which), "buffer %u of %u: ", buffer, op->n_buffers);
    if (buffer < op->n_buffers)
        snprintf(elements, sizeof(elements), "%llu %s",
                 (unsigned long long)op->buffers[buffer].count,
                 dtype_name(op->buffers[buffer].dtype));
    if (with_note && *op->note)
        snprintf(note, sizeof(note), " (%s)", op->note);
    if (op->kind == FRIT_COLLECTIVE_BARRIER)
        snprintf(text, size, "%s%s", names[op->kind], note);
    else
        snprintf(text, size, "%s(%s%s%s)%s", names[op->kind], first, which, elements, note);
}
