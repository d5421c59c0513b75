/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/exec.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "graph/decompose.h"
#include "stream/program.h"

/* ---- one call ---- */

static void drop_outputs(struct value *out, uint32_t n_out)
{
    for (uint32_t i = 0; i < n_out; i++) {
        buffer_disown(out[i].buffer);
        out[i].buffer = NULL;
    }
}

static frit_status make_empty(const struct exec_call *call, frit_err *err)
{
    for (uint32_t i = 0; i < call->n_out; i++) {
        frit_status st = FRIT_OK;

        if (call->out[i].type.dtype != FRIT_NO_DTYPE) {
            layout_dense(&call->out[i].type, &call->out[i].layout);
            st = buffer_create(call->device->memory, 0, false, &call->out[i].buffer, err);
        }
        if (st) {
            drop_outputs(call->out, i);
            return st;
        }
    }
    return FRIT_OK;
}

static bool all_empty(const struct exec_call *call)
{
    for (uint32_t i = 0; i < call->n_out; i++) {
        if (call->out[i].type.dtype != FRIT_NO_DTYPE && op_elements(&call->out[i].type) > 0)
            return false;
    }
    return call->n_out > 0;
}

/* A view shares its operand's buffer; where strides cannot say it, the buffer of a dense copy. */
static frit_status exec_view(const struct exec_call *call, frit_err *err)
{
    const struct value *in = &call->in[0].value;
    struct value *out = call->out;
    struct value dense;

    atomic_fetch_add(&call->device->count.views, 1);
    if (layout_view(call->op, call->attrs, &in->type, &in->layout, &out->type, &out->layout)) {
        buffer_own(in->buffer);
        out->buffer = in->buffer;
        return FRIT_OK;
    }
    TRY(exec_dense(call->device, in, &dense, err));
    layout_view(call->op, call->attrs, &dense.type, &dense.layout, &out->type, &out->layout);
    out->buffer = dense.buffer;
    return FRIT_OK;
}

frit_status exec_relayout(frit_device *device, const struct value *value, const int64_t *strides,
                          struct value *out, frit_err *err)
{
    struct exec_input in = {.kind = FRIT_OPERAND_TENSOR, .value = *value};
    struct exec_call call = {.device = device,
                             .op = FRIT_OP_copy,
                             .n_in = 1,
                             .n_out = 1,
                             .in = &in,
                             .out = out,
                             .out_strides = strides};

    *out = (struct value){.type = value->type};
    return exec_call(&call, err);
}

frit_status exec_dense(frit_device *device, const struct value *value, struct value *out,
                       frit_err *err)
{
    return exec_relayout(device, value, NULL, out, err);
}

/* ---- composite ops ---- */

/* The values of a decomposition while it runs; a value goes after its last use. */
struct unfolding {
    const struct exec_call *call;
    const struct graph *graph;
    struct value *values;
    uint32_t *last_use; /* index of the op after the last that needs it */
};

static void find_last_uses(struct unfolding *u)
{
    const struct graph *graph = u->graph;

    for (uint32_t i = 0; i < graph->n_ops; i++) {
        for (uint32_t k = 0; k < graph->ops[i].n_in; k++) {
            if (graph->ops[i].in[k].kind == FRIT_OPERAND_TENSOR)
                u->last_use[graph->ops[i].in[k].value] = i + 1;
        }
    }
    for (uint32_t i = 0; i < graph->n_outputs; i++)
        u->last_use[graph->outputs[i]] = UINT32_MAX;
}

/* Inputs of the graph are the call's tensor operands in order; each holds an owner like any other
 * value. */
static void bind_inputs(struct unfolding *u)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < u->call->n_in; i++) {
        if (u->call->in[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        while (u->graph->values[next].kind != GRAPH_INPUT)
            next++;
        u->values[next] = u->call->in[i].value;
        buffer_own(u->values[next].buffer);
        next++;
    }
}

static frit_status run_graph_op(struct unfolding *u, uint32_t index, struct exec_input *in,
                                frit_err *err)
{
    const struct graph_op *op = &u->graph->ops[index];
    struct value out[FRIT_OP_MAX_OUT] = {0};
    struct exec_call call = {.device = u->call->device,
                             .op = op->op,
                             .n_in = op->n_in,
                             .n_out = op->n_out,
                             .persistent = u->call->persistent && index + 1 == u->graph->n_ops,
                             .attrs = op->attrs,
                             .in = in,
                             .out = out,
                             .seed = u->call->seed,
                             .counter = u->call->counter};

    for (uint32_t k = 0; k < op->n_in; k++) {
        in[k] = (struct exec_input){
            .kind = op->in[k].kind, .dtype = op->in[k].dtype, .scalar = op->in[k].scalar};
        if (op->in[k].kind == FRIT_OPERAND_TENSOR)
            in[k].value = u->values[op->in[k].value];
    }
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k] != GRAPH_NO_VALUE)
            out[k].type = u->graph->values[op->out[k]].type;
    }
    TRY(exec_call(&call, err));
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k] != GRAPH_NO_VALUE)
            u->values[op->out[k]] = out[k];
    }
    return FRIT_OK;
}

static void drop_values_after(struct unfolding *u, uint32_t index)
{
    for (uint32_t v = 0; v < u->graph->n_values; v++) {
        if (u->values[v].buffer && u->last_use[v] <= index + 1) {
            buffer_disown(u->values[v].buffer);
            u->values[v].buffer = NULL;
        }
    }
}

static void give_outputs(struct unfolding *u)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < u->call->n_out; i++) {
        if (u->call->out[i].type.dtype == FRIT_NO_DTYPE)
            continue;
        u->call->out[i] = u->values[u->graph->outputs[next++]];
        buffer_own(u->call->out[i].buffer);
    }
}

static frit_status run_graph(struct unfolding *u, frit_err *err)
{
    struct arena arena = {0};
    uint32_t most = 0;
    struct exec_input *in;
    frit_status st = FRIT_OK;

    for (uint32_t i = 0; i < u->graph->n_ops; i++)
        most = u->graph->ops[i].n_in > most ? u->graph->ops[i].n_in : most;
    u->values = arena_array(&arena, u->graph->n_values, sizeof(*u->values));
    u->last_use = arena_array(&arena, u->graph->n_values, sizeof(*u->last_use));
    in = arena_array(&arena, most, sizeof(*in));
    if (!u->values || !u->last_use || !in) {
        st = fail_memory(err, u->graph->n_values * sizeof(*u->values));
        goto out;
    }
    find_last_uses(u);
    bind_inputs(u);
    for (uint32_t i = 0; i < u->graph->n_ops && !st; i++) {
        st = run_graph_op(u, i, in, err);
        if (!st)
            drop_values_after(u, i);
    }
    if (!st)
        give_outputs(u);
    for (uint32_t v = 0; v < u->graph->n_values; v++)
        buffer_disown(u->values[v].buffer);
out:
    arena_fini(&arena);
    return st;
}

static frit_status exec_decomposed(const struct exec_call *call, frit_err *err)
{
    struct op_call checked = {.op = call->op, .n_in = call->n_in};
    uint64_t attrs[sizeof(((struct relative_op *)0)->attrs) / sizeof(uint64_t)];
    struct unfolding u = {.call = call};
    struct graph graph = {0};
    frit_status st;

    checked.in = calloc(call->n_in ? call->n_in : 1, sizeof(*checked.in));
    if (!checked.in)
        return fail_memory(err, call->n_in * sizeof(*checked.in));
    for (uint32_t i = 0; i < call->n_in; i++) {
        checked.in[i].kind = call->in[i].kind;
        checked.in[i].scalar = call->in[i].scalar;
        checked.in[i].type = call->in[i].value.type;
        if (call->in[i].kind == FRIT_OPERAND_SCALAR)
            checked.in[i].type = (struct op_type){.dtype = call->in[i].dtype};
    }
    for (uint32_t i = 0; i < call->n_out; i++)
        checked.wanted |= (uint32_t)(call->out[i].type.dtype != FRIT_NO_DTYPE) << i;
    if (call->attrs) {
        memcpy(attrs, call->attrs, frit_record_info_at(frit_op_info_at(call->op)->record)->size);
        checked.attrs = attrs;
    }
    st = decompose(&checked, &graph, err);
    u.graph = &graph;
    if (!st) {
        atomic_fetch_add(&call->device->count.decomposed, 1);
        st = run_graph(&u, err);
    }
    graph_fini(&graph);
    free(checked.in);
    return st;
}

frit_status exec_call(const struct exec_call *call, frit_err *err)
{
    const frit_op_info *row = frit_op_info_at(call->op);
    bool as_core = row->level == FRIT_LEVEL_COMPOSITE && decompose_has(call->op);
    const frit_program *program = NULL;
    frit_status st;

    if (row->cls == FRIT_CLASS_VIEW)
        return as_core ? exec_decomposed(call, err) : exec_view(call, err);
    if (all_empty(call))
        return make_empty(call, err);
    if (as_core && call->device->config.decompose)
        return exec_decomposed(call, err);
    st = programs_get(call->device, call, &program, err);
    if (!st)
        st = launch_run(call, program, err);
    if (st == FRIT_UNSUPPORTED && as_core)
        return exec_decomposed(call, err);
    return st;
}

/* ---- one record ---- */

static bool record_wanted(const struct op_record *record)
{
    if (frit_op_info_at(record->op)->traits & FRIT_OP_ORDERED)
        return true;
    for (uint32_t i = 0; i < record->n_out; i++) {
        if (record->out[i] && slot_wanted(record->out[i]))
            return true;
    }
    return false;
}

void exec_drop(struct op_record *record)
{
    for (uint32_t i = 0; i < record->n_in; i++) {
        if (record->in[i].kind == FRIT_OPERAND_TENSOR)
            slot_unuse(record->in[i].slot);
    }
    for (uint32_t i = 0; i < record->n_out; i++) {
        if (record->out[i])
            slot_unuse(record->out[i]);
    }
    record->dropped = true;
}

/* Takes over the reference. */
static void fail_outputs(struct stream *stream, struct op_record *record, struct failure *failure)
{
    stream_note_error(stream, failure);
    for (uint32_t i = 0; i < record->n_out; i++) {
        if (record->out[i])
            slot_set_failed(record->out[i], failure_ref(failure));
    }
    failure_unref(failure);
}

/* The failure of an operand, a new reference: its own, or of the device command that wrote it. */
static struct failure *input_failure(frit_device *device, const struct record_input *in,
                                     const struct value *value)
{
    if (slot_state(in->slot) == SLOT_FAILED)
        return failure_ref(in->slot->failure);
    if (!value->buffer)
        return NULL;
    return device_poison_of(device, atomic_load(&value->buffer->last_write));
}

/* Fills `in` with pinned values; the first failed operand gives its failure. */
static struct failure *pin_inputs(frit_device *device, const struct op_record *record,
                                  struct exec_input *in)
{
    struct failure *failure = NULL;

    for (uint32_t i = 0; i < record->n_in && !failure; i++) {
        const struct record_input *from = &record->in[i];

        in[i] =
            (struct exec_input){.kind = from->kind, .dtype = from->dtype, .scalar = from->scalar};
        if (from->kind != FRIT_OPERAND_TENSOR)
            continue;
        if (slot_state(from->slot) == SLOT_READY)
            slot_pin_value(from->slot, &in[i].value);
        failure = input_failure(device, from, &in[i].value);
    }
    return failure;
}

static void unpin_inputs(struct exec_input *in, uint32_t n_in)
{
    for (uint32_t i = 0; i < n_in; i++) {
        if (in[i].value.buffer)
            buffer_unpin(in[i].value.buffer);
    }
}

static void run_pinned(struct stream *stream, struct op_record *record, struct exec_input *in)
{
    struct value out[FRIT_OP_MAX_OUT] = {0};
    frit_err err = ERR_INIT;
    struct exec_call call = {.device = stream->device,
                             .op = record->op,
                             .n_in = record->n_in,
                             .n_out = record->n_out,
                             .persistent = record->persistent,
                             .attrs = record->attrs,
                             .in = in,
                             .out = out,
                             .seed = record->seed,
                             .counter = record->counter};

    for (uint32_t i = 0; i < record->n_out; i++) {
        if (record->out[i])
            out[i].type = record->out[i]->value.type;
    }
    if (exec_call(&call, &err)) {
        fail_context(&err, "%s", frit_op_info_at(record->op)->name);
        fail_outputs(stream, record, failure_create(&err));
        return;
    }
    for (uint32_t i = 0; i < record->n_out; i++) {
        if (record->out[i])
            slot_set_ready(record->out[i], &out[i]);
    }
}

static void exec_record(struct stream *stream, struct op_record *record)
{
    struct exec_input fixed[8] = {0};
    struct exec_input *in = fixed;
    struct failure *failure;

    if (record->n_in > sizeof(fixed) / sizeof(fixed[0]))
        in = calloc(record->n_in, sizeof(*in));
    if (!in) {
        fail_outputs(stream, record, failure_immortal(FRIT_NO_HOST_MEMORY));
    } else {
        failure = pin_inputs(stream->device, record, in);
        if (failure)
            fail_outputs(stream, record, failure);
        else
            run_pinned(stream, record, in);
        unpin_inputs(in, record->n_in);
    }
    if (in != fixed)
        free(in);
    exec_drop(record);
}

void exec_queue(struct stream *stream, const struct segment_queue *queue)
{
    for (struct op_record *record = queue->last; record; record = record->prev) {
        if (!record_wanted(record))
            exec_drop(record);
    }
    for (struct op_record *record = queue->first; record; record = record->next) {
        if (!record->dropped)
            exec_record(stream, record);
    }
}
