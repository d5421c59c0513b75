/* SPDX-License-Identifier: Apache-2.0 */
/* The observer of op calls that writes histories, and the list of a thread's histories. */
#include "grad/history.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/observe.h"
#include "base/array.h"
#include "base/fail.h"
#include "device/device.h"
#include "grad/rule.h"
#include "graph/decompose/decompose.h"
#include "record/stream.h"
#include "tensor/slot.h"

static atomic_uint last_number;

/* Of the calling thread. */
static _Thread_local struct {
    struct history *list;
    uint32_t paused;
} mine;

static const struct op_observer observer;

static void observe(void)
{
    op_observer = mine.list && !mine.paused ? &observer : NULL;
}

void history_pause(void)
{
    mine.paused++;
    observe();
}

bool history_resume(void)
{
    if (!mine.paused)
        return false;
    mine.paused--;
    observe();
    return true;
}

uint32_t history_unpause(void)
{
    const uint32_t before = mine.paused;

    mine.paused = 0;
    observe();
    return before;
}

void history_repause(uint32_t before)
{
    mine.paused = before;
    observe();
}

struct history *history_of(const frit_device *device)
{
    struct history *history = mine.list;

    while (history && history->device_id != device->id)
        history = history->next;
    return history;
}

/* ---- tensors ---- */

frit_tensor *history_keep(frit_tensor *tensor)
{
    struct slot *slot = slot_enter(tensor, NULL);

    if (slot) {
        if (!slot_is_immortal(slot))
            slot_keep(slot);
        slot_leave(slot);
    }
    return handle_plain(tensor);
}

void history_unkeep(frit_tensor *tensor)
{
    struct slot *slot = tensor ? slot_enter(tensor, NULL) : NULL;
    const bool kept = slot && !slot_is_immortal(slot);

    if (!slot)
        return;
    if (kept)
        slot_unkeep(slot);
    slot_leave(slot);
    if (kept)
        stream_disown(tensor);
}

void held_release(struct held *held)
{
    history_unkeep(held->tensor);
    held->tensor = NULL;
}

/* Inside the slot's lock. */
static struct held hold(struct slot *slot, frit_tensor *tensor)
{
    if (!slot_is_immortal(slot))
        slot_keep(slot);
    return (struct held){handle_plain(tensor), slot_life(slot)};
}

static bool is_open(uint64_t number)
{
    const struct history *history = mine.list;

    while (history && history->number != number)
        history = history->next;
    return history;
}

/* Inside the slot's lock. */
static uint32_t value_of(struct history *history, const struct slot *slot, frit_tensor *tensor)
{
    const frit_tensor *key = handle_plain(tensor);

    if (slot->grad >> 32 == history->number)
        return (uint32_t)slot->grad;
    return history->watched.count
               ? (uint32_t)(uintptr_t)map_get(&history->watched, &key, sizeof(key))
               : HISTORY_NONE;
}

uint32_t history_value_of(struct history *history, frit_tensor *tensor)
{
    struct slot *slot = slot_enter(tensor, NULL);
    uint32_t value = HISTORY_NONE;

    if (slot) {
        value = value_of(history, slot, tensor);
        slot_leave(slot);
    }
    return value;
}

void history_set_grad(struct history *history, uint32_t value, frit_tensor *grad)
{
    frit_tensor *before = history->values[value].grad;

    history->values[value].grad = history_keep(grad);
    history_unkeep(before);
}

/* HISTORY_NONE: no memory. */
static uint32_t add_value(struct history *history, const struct op_type *type)
{
    if (!array_grow(&history->values, &history->values_capacity, history->n_values, 1,
                    sizeof(*history->values))) {
        history->is_short_of_memory = true;
        return HISTORY_NONE;
    }
    history->values[history->n_values] = (struct history_value){.type = *type};
    return history->n_values++;
}

static bool is_float(uint32_t dtype)
{
    return frit_dtype_info_of(dtype).cls == FRIT_DTYPE_FLOAT;
}

/* A watched tensor's slot may be written to by another thread's history, so it is in the map too.
 */
frit_status history_watch(struct history *history, frit_tensor *tensor, frit_err *err)
{
    struct slot *slot = slot_enter(tensor, err);
    const frit_tensor *key = handle_plain(tensor);
    frit_status st = FRIT_OK;
    uint32_t value;

    if (!slot)
        return fail_context(err, "grad_watch: the tensor");
    value = value_of(history, slot, tensor);
    if (slot->state == SLOT_FAILED) {
        st = fail(err, FRIT_INVALID, "grad_watch: the tensor has failed");
    } else if (!is_float(slot->value.type.dtype)) {
        st = fail(err, FRIT_INVALID, "grad_watch: a tensor of %s has no gradient, only floats have",
                  frit_dtype_name(slot->value.type.dtype));
    } else if (value) {
        history->values[value].is_watched = true;
    } else {
        value = add_value(history, &slot->value.type);
        if (!value || !map_add(&history->watched, &key, sizeof(key), (void *)(uintptr_t)value)) {
            st = fail_memory(err, sizeof(*history->values));
        } else {
            history->values[value].tensor = hold(slot, tensor).tensor;
            history->values[value].is_watched = true;
            if (!is_open(slot->grad >> 32))
                slot->grad = (uint64_t)history->number << 32 | value;
        }
    }
    slot_leave(slot);
    return st;
}

/* ---- nodes ---- */

/* NULL: no memory. */
static struct history_node *add_node(struct history *history, uint32_t n_in)
{
    struct history_node *node;

    if (!array_grow(&history->nodes, &history->nodes_capacity, history->n_nodes, 1,
                    sizeof(*history->nodes)))
        return NULL;
    node = &history->nodes[history->n_nodes];
    *node = (struct history_node){.n_in = n_in};
    node->in = arena_array(&history->arena, n_in + 1u, sizeof(*node->in));
    if (!node->in)
        return NULL;
    history->n_nodes++;
    return node;
}

void history_spend(struct history_node *node)
{
    for (uint32_t i = 0; i < node->n_in; i++)
        held_release(&node->in[i].held);
    for (uint32_t k = 0; k < node->n_out; k++)
        held_release(&node->out[k].held);
    if (node->function.drop)
        node->function.drop(node->function.ctx);
    node->function.drop = NULL;
    node->is_spent = true;
}

/* ---- watching calls ---- */

uint32_t history_slot(const struct history_node *node, uint32_t i)
{
    return i < node->n_many ? 0 : node->n_many ? i - node->n_many + 1 : i;
}

/* What the rules of the operands that have values need; without rules, all of them. */
static uint32_t needs_of(const struct history_node *node, const struct grad_row *row)
{
    uint32_t needs = 0;

    if (!row || row->kind == GRAD_PARTS)
        return UINT32_MAX;
    for (uint32_t i = 0; i < node->n_in; i++) {
        if (node->in[i].value)
            needs |= row->in[history_slot(node, i)].needs;
    }
    return needs;
}

/* The operands' kinds, types and values; false: none has a value. */
static bool read_operands(struct history *history, const struct api_call *call,
                          struct history_operand *out)
{
    bool some = false;

    for (uint32_t i = 0; i < call->n_many + call->n_in; i++) {
        const frit_input in =
            i < call->n_many ? api_tensor(call->many[i]) : call->in[i - call->n_many];
        struct slot *slot = in.tensor ? slot_enter(in.tensor, NULL) : NULL;

        out[i] = (struct history_operand){.kind = FRIT_OPERAND_ABSENT};
        if (slot) {
            out[i].kind = FRIT_OPERAND_TENSOR;
            op_type_copy(&out[i].type, &slot->value.type);
            out[i].value = value_of(history, slot, in.tensor);
            some |= out[i].value != HISTORY_NONE;
            slot_leave(slot);
        } else if (!in.tensor && in.scalar.kind <= FRIT_SCALAR_F64 &&
                   in.scalar.kind != FRIT_SCALAR_NONE) {
            out[i].kind = FRIT_OPERAND_SCALAR;
            out[i].scalar = in.scalar;
        }
    }
    return some;
}

static void hold_operands(const struct api_call *call, struct history_node *node, uint32_t needs)
{
    for (uint32_t i = 0; i < node->n_in; i++) {
        const uint32_t bit = history_slot(node, i);
        frit_tensor *tensor = i < call->n_many ? call->many[i] : call->in[i - call->n_many].tensor;
        struct slot *slot;

        if (node->in[i].kind != FRIT_OPERAND_TENSOR || !(needs >> bit & 1))
            continue;
        slot = slot_enter(tensor, NULL);
        if (!slot)
            continue;
        node->in[i].held = hold(slot, tensor);
        slot_leave(slot);
    }
}

/* The device of the first tensor among the operands. */
static const frit_device *device_of(const struct api_call *call)
{
    for (uint32_t i = 0; i < call->n_many + call->n_in; i++) {
        frit_tensor *tensor = i < call->n_many ? call->many[i] : call->in[i - call->n_many].tensor;
        struct slot *slot = tensor ? slot_enter(tensor, NULL) : NULL;
        const frit_device *device = slot ? slot->device : NULL;

        if (slot)
            slot_leave(slot);
        if (device)
            return device;
    }
    return NULL;
}

/* Copies the attributes; false: no memory. */
static bool copy_attrs(struct history *history, const struct api_call *call,
                       struct history_node *node)
{
    const uint32_t bytes = op_record(op_row(call->op))->size;

    if (!call->attrs)
        return true;
    node->attrs = arena_alloc(&history->arena, bytes);
    if (node->attrs)
        memcpy(node->attrs, call->attrs, bytes);
    return node->attrs;
}

static bool has_gradient(uint32_t op)
{
    const struct grad_row *row = grad_row_of(op);

    return !row || (row->kind != GRAD_ZERO && row->kind != GRAD_NONE);
}

enum { FEW = 8 };

static void *before_call(const struct api_call *call, uint32_t *wanted)
{
    const frit_device *device = has_gradient(call->op) ? device_of(call) : NULL;
    struct history *history = device ? history_of(device) : NULL;
    const struct grad_row *row = grad_row_of(call->op);
    const uint32_t n_in = (uint32_t)call->n_many + call->n_in;
    struct history_operand few[FEW], *operands = few;
    struct history_node *node = NULL;

    if (!history || call->n_many > INT32_MAX)
        return NULL;
    if (n_in > FEW)
        operands = arena_array(&history->arena, n_in, sizeof(*operands));
    if (operands && !read_operands(history, call, operands))
        return NULL;
    if (operands)
        node = add_node(history, n_in);
    if (!node || !copy_attrs(history, call, node)) {
        history->is_short_of_memory = true;
        return NULL;
    }
    memcpy(node->in, operands, n_in * sizeof(*operands));
    node->op = call->op;
    if (op_row(call->op)->in[0].role == FRIT_ROLE_MANY)
        node->n_many = n_in + 1 - op_n_slots(op_row(call->op));
    hold_operands(call, node, needs_of(node, row));
    if (row)
        *wanted |= row->wants;
    return history;
}

/* Numbers the outputs.  One that failed gets none: whoever uses it fails too. */
static void after_call(void *ctx, frit_tensor *const *out, uint32_t n_out)
{
    struct history *history = ctx;
    struct history_node *node = &history->nodes[history->n_nodes - 1];
    const uint32_t needs = needs_of(node, grad_row_of(node->op));

    node->n_out = n_out;
    for (uint32_t k = 0; k < n_out; k++) {
        struct slot *slot = out[k] ? slot_enter(out[k], NULL) : NULL;

        if (!slot)
            continue;
        if (slot->state != SLOT_FAILED && !slot_is_immortal(slot)) {
            if (is_float(slot->value.type.dtype))
                node->out[k].value = add_value(history, &slot->value.type);
            if (node->out[k].value)
                slot->grad = (uint64_t)history->number << 32 | node->out[k].value;
            if (needs != UINT32_MAX && needs & NEEDS_OUT(k))
                node->out[k].held = hold(slot, out[k]);
        }
        slot_leave(slot);
    }
}

static const struct op_observer observer = {before_call, after_call};

frit_status history_add_function(struct history *history, const struct history_function *function,
                                 frit_tensor *const *in, uint32_t n_in, frit_tensor *const *out,
                                 uint32_t n_out, frit_err *err)
{
    struct history_node *node = n_out <= FRIT_OP_MAX_OUT ? add_node(history, n_in) : NULL;

    if (!node) {
        if (function->drop)
            function->drop(function->ctx);
        return n_out > FRIT_OP_MAX_OUT
                   ? fail(err, FRIT_INVALID, "%u outputs, at most %d are possible", n_out,
                          FRIT_OP_MAX_OUT)
                   : fail_memory(err, sizeof(*node));
    }
    node->op = FRIT_OP_none;
    node->function = *function;
    for (uint32_t i = 0; i < n_in; i++) {
        struct slot *slot = slot_enter(in[i], NULL);

        if (!slot)
            continue;
        node->in[i] = (struct history_operand){.kind = FRIT_OPERAND_TENSOR,
                                               .value = value_of(history, slot, in[i]),
                                               .type = slot->value.type,
                                               .held = hold(slot, in[i])};
        slot_leave(slot);
    }
    after_call(history, out, n_out);
    return FRIT_OK;
}

/* ---- opening and closing ---- */

struct history *history_open(frit_device *device)
{
    struct history *history = calloc(1, sizeof(*history));

    if (!history)
        return NULL;
    history->device = device;
    history->device_id = device->id;
    history->number = atomic_fetch_add(&last_number, 1) + 1;
    if (!add_value(history, &(struct op_type){0})) { /* HISTORY_NONE */
        if (!history->values) {
            free(history);
            return NULL;
        }
        history->is_short_of_memory = false;
    }
    history->next = mine.list;
    mine.list = history;
    observe();
    return history;
}

void history_close(struct history *history)
{
    struct history **link = &mine.list;

    while (*link != history)
        link = &(*link)->next;
    *link = history->next;
    observe();
    for (uint32_t n = 0; n < history->n_nodes; n++)
        history_spend(&history->nodes[n]);
    for (uint32_t v = 0; v < history->n_values; v++) {
        history_unkeep(history->values[v].tensor);
        history_unkeep(history->values[v].grad);
    }
    map_fini(&history->watched, NULL);
    arena_fini(&history->arena);
    free(history->nodes);
    free(history->values);
    free(history);
}
