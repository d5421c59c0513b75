/* SPDX-License-Identifier: Apache-2.0 */
/* Leaks: tensors, buffers and pending ops that are left on a device. */
#include <frit/frit.h>
#include <frit/inspect.h>

#include <inttypes.h>

#include "api/report.h"
#include "base/str.h"
#include "device/device.h"
#include "graph/op.h"
#include "memory/memory.h"
#include "record/stream.h"
#include "run/idle.h"
#include "tensor/failure.h"
#include "tensor/slot.h"

enum { MAX_LINES = 100 }; /* of tensors, in one text */

struct leaks {
    uint64_t queues, tensors;
    struct str *out;
    const struct stream *stream;
};

static void name_stream(const struct leaks *leaks)
{
    if (leaks->stream->has_ordinal)
        str_addf(leaks->out, "stream %" PRIu32, leaks->stream->ordinal);
    else
        str_addf(leaks->out, "a stream without ops");
}

static void find_tensor(struct slot *slot, void *ctx)
{
    static const char *const states[] = {"empty", "pending", "ready", "failed"};
    struct leaks *leaks = ctx;
    char type[256];

    if (leaks->tensors++ >= MAX_LINES)
        return;
    if (slot->state == SLOT_FAILED)
        str_addf(leaks->out, "tensor of an error (%s)", slot->failure->text);
    else
        str_addf(leaks->out, "tensor %s", op_type_text(&slot->value.type, type, sizeof(type)));
    str_addf(leaks->out, ", %s, %" PRIu32 " owner%s, made by %s, of ", states[slot->state],
             slot->owners, slot->owners == 1 ? "" : "s",
             slot->made_by ? op_row(slot->made_by)->name : "the program");
    name_stream(leaks);
    str_addf(leaks->out, "\n");
}

static void find_in_stream(struct stream *stream, void *ctx)
{
    struct leaks *leaks = ctx;
    uint32_t n = stream->segment->n_ops;

    leaks->stream = stream;
    if (n) {
        leaks->queues++;
        name_stream(leaks);
        str_addf(leaks->out, ": %" PRIu32 " op%s queued\n", n, n == 1 ? " is" : "s are");
    }
    slot_each(&stream->home, find_tensor, leaks);
}

/* Without what the tuner measures with. */
static void count_memory(frit_device *device, struct memory_stats *out)
{
    struct idle_tuner *stopped = idle_stop(device);
    uint64_t n_buffers, n_bytes;

    memory_stats(device->memory, out);
    idle_memory(stopped, &n_buffers, &n_bytes);
    out->buffers_now -= n_buffers;
    out->bytes_now -= n_bytes;
    idle_go_on(stopped);
}

uint64_t frit_leaks(frit_device *device, char **text)
{
    HOLD_CANCEL;
    struct str out = {0};
    struct leaks leaks = {.out = &out};
    struct memory_stats memory;

    if (text)
        *text = NULL;
    if (!device || process_is_barred())
        return 0;
    streams_each(device, find_in_stream, &leaks);
    if (leaks.tensors > MAX_LINES)
        str_addf(&out, "and %" PRIu64 " tensors more\n", leaks.tensors - MAX_LINES);
    count_memory(device, &memory);
    if (memory.buffers_now)
        str_addf(&out, "%" PRIu64 " buffer%s with %" PRIu64 " bytes\n", memory.buffers_now,
                 memory.buffers_now == 1 ? "" : "s", memory.bytes_now);
    if (text && !out.failed)
        *text = out.text;
    else
        str_fini(&out);
    return leaks.queues + leaks.tensors + memory.buffers_now;
}
