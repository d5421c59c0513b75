/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: the ops of all streams of a device, in the order of recording, as one graph.
 *
 * A value is identified by its slot and the slot's life word, which are unique.  An operand that no
 * traced op made is a constant: its buffer is pinned, and written to a file after the next plan. An
 * op that uses a value still pending from before the trace is left out, and so are its results
 * until they have run.  Outputs are the results that the program took, and those that it owns at
 * the end. Threads: any, under the trace's lock. */
#include "api/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <frit/inspect.h>

#include "api/report.h"
#include "base/array.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/map.h"
#include "device/device.h"
#include "device/watch.h"
#include "file/npy.h"
#include "graph/text/text.h"
#include "load/registry.h"
#include "memory/buffer.h"
#include "record/alias.h"
#include "record/segment.h"
#include "record/stream.h"
#include "run/drain.h"
#include "run/transfer.h"
#include "tensor/slot.h"

struct name {
    const struct slot *slot;
    uint64_t life;
};

struct traced {
    struct name name;
    uint32_t value;
    bool taken;
};

/* A constant that is not written to its file yet; its buffer is pinned. */
struct waiting {
    uint32_t number;
    struct value value;
};

struct trace {
    struct watcher watcher; /* first */
    frit_device *device;
    const char *folder;
    pthread_mutex_t lock; /* of the rest */
    struct arena arena;
    struct graph graph;
    struct map values; /* struct name -> struct traced */
    struct traced **results;
    uint32_t n_results, results_capacity;
    struct waiting *waiting;
    uint32_t n_waiting, waiting_capacity;
    frit_err err; /* of the first failure */
};

/* ---- values ---- */

static struct traced *find(struct trace *t, const struct name *name)
{
    return map_get(&t->values, name, sizeof(*name));
}

static struct traced *add_traced(struct trace *t, const struct name *name, uint32_t value,
                                 frit_err *err)
{
    struct traced *traced = arena_alloc(&t->arena, sizeof(*traced));

    if (!traced || !map_add(&t->values, name, sizeof(*name), traced)) {
        fail_memory(err, sizeof(*traced));
        return NULL;
    }
    *traced = (struct traced){.name = *name, .value = value};
    return traced;
}

static frit_status add_constant(struct trace *t, const struct name *name, const struct value *value,
                                uint32_t *number, frit_err *err)
{
    char file[32];

    if (!array_grow(&t->waiting, &t->waiting_capacity, t->n_waiting, 1, sizeof(*t->waiting)))
        return fail_memory(err, sizeof(*t->waiting));
    TRY(graph_input(&t->graph, GRAPH_CONST, NULL, &value->type, number, err));
    snprintf(file, sizeof(file), "%" PRIu32 ".npy", *number);
    t->graph.values[*number].file = arena_text(&t->arena, file, strlen(file));
    if (!t->graph.values[*number].file || !add_traced(t, name, *number, err))
        return fail_memory(err, sizeof(file));
    buffer_pin(value->buffer);
    t->waiting[t->n_waiting++] = (struct waiting){*number, *value};
    return FRIT_OK;
}

/* FRIT_BUSY: it is pending from before the trace. */
static frit_status value_of(struct trace *t, const struct segment_input *in, uint32_t *number,
                            frit_err *err)
{
    struct name name = {in->slot, 0};
    struct traced *traced;

    if (in->alias)
        name = (struct name){in->alias->source, in->alias->life};
    else
        name.life = slot_life(in->slot);
    traced = find(t, &name);
    if (traced) {
        *number = traced->value;
        return FRIT_OK;
    }
    if (!in->alias && in->slot->state != SLOT_READY)
        return FRIT_BUSY;
    return add_constant(t, &name, in->alias ? &in->alias->value : &in->slot->value, number, err);
}

/* ---- ops ---- */

static frit_status add_results(struct trace *t, const struct segment_call *call,
                               struct graph_op *op, frit_err *err)
{
    if (!array_grow(&t->results, &t->results_capacity, t->n_results, call->n_out,
                    sizeof(struct traced *)))
        return fail_memory(err, call->n_out * sizeof(struct traced *));
    for (uint32_t k = 0; k < call->n_out; k++) {
        struct name name = {call->out[k], 0};
        struct traced *traced;

        op->out[k] = GRAPH_NO_VALUE;
        if (!call->out[k])
            continue;
        name.life = slot_life(call->out[k]);
        TRY(graph_add_value(&t->graph, GRAPH_RESULT, &call->types[k], &op->out[k], err));
        traced = add_traced(t, &name, op->out[k], err);
        if (!traced)
            return err->status;
        t->results[t->n_results++] = traced;
    }
    return FRIT_OK;
}

static frit_status add_op(struct trace *t, const struct segment_call *call, frit_err *err)
{
    struct arena arena = {0};
    struct graph_op op = {.op = call->op, .n_in = call->n_in, .n_out = call->n_out};
    frit_status st = FRIT_OK;

    op.in = arena_array(&arena, (size_t)call->n_in + 1, sizeof(*op.in));
    if (!op.in)
        st = fail_memory(err, call->n_in * sizeof(*op.in));
    for (uint32_t i = 0; i < call->n_in && !st; i++) {
        const struct segment_input *in = &call->in[i];

        op.in[i] =
            (struct graph_operand){.kind = in->kind, .dtype = in->dtype, .scalar = in->scalar};
        if (in->kind == FRIT_OPERAND_TENSOR)
            st = value_of(t, in, &op.in[i].value, err);
    }
    if (!st && call->attrs) {
        size_t bytes = op_record(op_row(call->op))->size;

        op.attrs = arena_alloc(&arena, bytes);
        if (op.attrs)
            memcpy(op.attrs, call->attrs, bytes);
        else
            st = fail_memory(err, bytes);
    }
    if (!st)
        st = add_results(t, call, &op, err);
    if (!st)
        st = graph_add_op(&t->graph, &op, err);
    arena_fini(&arena);
    return st == FRIT_BUSY ? FRIT_OK : st;
}

static void saw_op(struct watcher *watcher, const struct segment_call *call)
{
    struct trace *t = (struct trace *)watcher;

    pthread_mutex_lock(&t->lock);
    if (!t->err.status)
        t->err.status = add_op(t, call, &t->err);
    pthread_mutex_unlock(&t->lock);
}

static void saw_taking(struct watcher *watcher, const struct slot *slot)
{
    struct trace *t = (struct trace *)watcher;
    struct name name = {slot, slot_life(slot)};
    struct traced *traced;

    pthread_mutex_lock(&t->lock);
    traced = find(t, &name);
    if (traced)
        traced->taken = true;
    pthread_mutex_unlock(&t->lock);
}

/* ---- files ---- */

/* Writes a constant to its file and unpins its buffer. */
static frit_status write_constant(struct trace *t, const struct waiting *w, frit_err *err)
{
    uint64_t bytes = frit_storage_bytes(w->value.type.dtype, op_elements(&w->value.type));
    void *data = malloc(bytes ? bytes : 1);
    struct transfer_read read;
    struct str path = {0};
    frit_status st;

    if (!data) {
        buffer_unpin(w->value.buffer);
        return fail_memory(err, bytes);
    }
    st = transfer_start(t->device, &w->value, data, &read, err);
    st = transfer_finish(&read, st, err);
    str_addf(&path, "%s/%" PRIu32 ".npy", t->folder, w->number);
    if (!st && path.failed)
        st = fail_memory(err, path.length);
    if (!st)
        st = npy_write_file(path.text, &w->value.type, data, err);
    str_fini(&path);
    free(data);
    return st;
}

/* Called outside of all locks, since it waits for the device. */
static void write_constants(struct trace *t)
{
    struct waiting *waiting;
    frit_err err = ERR_INIT;
    uint32_t n;

    pthread_mutex_lock(&t->lock);
    waiting = t->waiting;
    n = t->n_waiting;
    t->waiting = NULL;
    t->n_waiting = t->waiting_capacity = 0;
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < n; i++)
        write_constant(t, &waiting[i], err.status ? NULL : &err);
    free(waiting);
    if (!err.status)
        return;
    pthread_mutex_lock(&t->lock);
    if (!t->err.status)
        t->err = err;
    pthread_mutex_unlock(&t->lock);
}

static void saw_run(struct watcher *watcher, const struct run *run)
{
    (void)run;
    write_constants((struct trace *)watcher);
}

static frit_status find_outputs(struct trace *t, frit_err *err)
{
    for (uint32_t i = 0; i < t->n_results; i++) {
        const struct traced *traced = t->results[i];

        if (traced->taken || slot_life(traced->name.slot) == traced->name.life)
            TRY(graph_output(&t->graph, traced->value, err));
    }
    return FRIT_OK;
}

static frit_status write_program(struct trace *t, frit_err *err)
{
    struct str path = {0}, text = {0};
    frit_status st = FRIT_OK;
    const char *why;

    str_addf(&path, "%s/trace.frit", t->folder);
    str_addf(&text, "# Recorded on %s.\n", t->device->entry->name);
    graph_print(&t->graph, &text);
    if (path.failed || text.failed)
        st = fail_memory(err, path.length + text.length);
    if (!st) {
        why = file_output(path.text, text.text, text.length);
        if (why)
            st = fail(err, FRIT_IO, "%s: cannot be written: %s", path.text, why);
    }
    str_fini(&path);
    str_fini(&text);
    return st;
}

/* ---- start and stop ---- */

static void trace_destroy(struct trace *t)
{
    for (uint32_t i = 0; i < t->n_waiting; i++)
        buffer_unpin(t->waiting[i].value.buffer);
    free(t->waiting);
    free(t->results);
    map_fini(&t->values, NULL);
    graph_fini(&t->graph);
    arena_fini(&t->arena);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static frit_status make_folder(const char *folder, frit_err *err)
{
    struct stat about;

    if (mkdir(folder, 0777) == 0 ||
        (errno == EEXIST && !stat(folder, &about) && S_ISDIR(about.st_mode)))
        return FRIT_OK;
    return fail(err, FRIT_IO, "%s: the folder cannot be made: %s", folder, strerror(errno));
}

static void drain(struct stream *stream, void *unused)
{
    (void)unused;
    stream_drain(stream, DRAIN_SYNC);
}

frit_status trace_begin(frit_device *device, const char *folder, frit_err *err)
{
    struct trace *t;

    TRY(make_folder(folder, err));
    t = calloc(1, sizeof(*t));
    if (!t)
        return fail_memory(err, sizeof(*t));
    pthread_mutex_init(&t->lock, NULL);
    t->watcher = (struct watcher){.recorded = saw_op, .taken = saw_taking, .ran = saw_run};
    t->device = device;
    t->err = (frit_err)ERR_INIT;
    t->folder = arena_text(&t->arena, folder, strlen(folder));
    streams_each(device, drain, NULL);
    if (t->folder && watch_add(&device->watch, WATCH_TRACE, &t->watcher))
        return FRIT_OK;
    if (t->folder)
        fail(err, FRIT_BUSY, "%s is being traced; stop that first", device->entry->name);
    else
        fail_memory(err, strlen(folder));
    trace_destroy(t);
    return err->status;
}

frit_status trace_begin_in(frit_device *device, const char *folder, frit_err *err)
{
    struct str path = {0};
    frit_status st;

    str_addf(&path, "%s/%s", folder, device->entry->name);
    st = path.failed ? fail_memory(err, strlen(folder)) : make_folder(folder, err);
    if (!st) {
        char *colon = strrchr(path.text, ':');

        if (colon)
            *colon = '-';
        st = trace_begin(device, path.text, err);
    }
    str_fini(&path);
    return st ? fail_context(err, "[frit] trace") : FRIT_OK;
}

frit_status trace_end(frit_device *device, frit_err *err)
{
    struct trace *t = (struct trace *)watch_take(&device->watch, WATCH_TRACE);
    frit_status st;

    if (!t)
        return fail(err, FRIT_INVALID, "%s is not being traced", device->entry->name);
    write_constants(t);
    st = t->err.status;
    if (st)
        *err = t->err;
    else
        st = find_outputs(t, err);
    if (!st)
        st = write_program(t, err);
    trace_destroy(t);
    return st;
}

frit_status frit_trace_start(frit_device *device, const char *folder, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "trace_start");
    if (!device || !folder)
        return report_null(err, "trace_start", device ? "the folder" : "the device");
    st = trace_begin(device, folder, &own);
    if (st)
        fail_context(&own, "trace_start");
    return report(err, st, &own);
}

frit_status frit_trace_stop(frit_device *device, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    frit_status st;

    if (process_is_barred())
        return report_barred(err, "trace_stop");
    if (!device)
        return report_null(err, "trace_stop", "the device");
    st = trace_end(device, &own);
    if (st)
        fail_context(&own, "trace_stop");
    return report(err, st, &own);
}
