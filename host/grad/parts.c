/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients by running the forward ops again under a history of their own. */
#include "grad/parts.h"

#include "api/record_op.h"
#include "base/fail.h"
#include "grad/backward.h"
#include "grad/rule.h"
#include "graph/decompose/decompose.h"
#include "tensor/slot.h"

static frit_status watch_all(struct history *history, const struct replay *replay,
                             frit_tensor *const *in, const bool *wanted, frit_err *err)
{
    for (uint32_t i = 0; i < replay->n_in; i++) {
        if (in[i] && wanted[i])
            TRY(history_watch(history, in[i], err));
    }
    return FRIT_OK;
}

/* The outputs that have a gradient. */
static frit_status go_back(struct history *history, const struct replay *replay,
                           frit_tensor *const *out, frit_tensor *const *out_grads, frit_err *err)
{
    frit_tensor *reached[FRIT_OP_MAX_OUT], *grads[FRIT_OP_MAX_OUT];
    uint32_t n = 0;

    for (uint32_t k = 0; k < replay->n_out; k++) {
        if (!out[k] || !out_grads[k] || !history_value_of(history, out[k]))
            continue;
        reached[n] = out[k];
        grads[n++] = out_grads[k];
    }
    return backward(history, reached, grads, n, false, NULL, err);
}

/* An operand that occurs twice has one gradient, at its first place. */
static void take_grads(struct history *history, const struct replay *replay, frit_tensor *const *in,
                       const bool *wanted, frit_tensor **grads)
{
    for (uint32_t i = 0; i < replay->n_in; i++) {
        const uint32_t value = in[i] && wanted[i] ? history_value_of(history, in[i]) : 0;

        grads[i] = value ? history->values[value].grad : NULL;
        if (value)
            history->values[value].grad = NULL;
    }
}

frit_status replay_backward(frit_device *device, const struct replay *replay,
                            frit_tensor *const *in, const bool *wanted,
                            frit_tensor *const *out_grads, frit_tensor **grads, frit_err *err)
{
    struct history *history = history_open(device);
    frit_tensor *out[FRIT_OP_MAX_OUT] = {0};
    uint32_t paused;
    frit_status st;

    if (!history)
        return fail_memory(err, sizeof(*history));
    st = watch_all(history, replay, in, wanted, err);
    paused = history_unpause();
    if (!st)
        st = replay->records(replay->ctx, device, in, out, err);
    history_repause(paused);
    if (!st)
        st = go_back(history, replay, out, out_grads, err);
    if (!st)
        take_grads(history, replay, in, wanted, grads);
    history_close(history);
    for (uint32_t k = 0; k < replay->n_out; k++) {
        if (out[k])
            frit_release(out[k]);
    }
    return st;
}

/* ---- the core ops that a composite op consists of ---- */

struct op_parts {
    const struct op_call *call;
    struct graph graph;
    struct arena arena;
};

static frit_status record_parts(void *ctx, frit_device *device, frit_tensor *const *in,
                                frit_tensor **out, frit_err *err)
{
    struct op_parts *parts = ctx;
    const struct graph *g = &parts->graph;
    frit_tensor **tensors = arena_array(&parts->arena, g->n_values + 1u, sizeof(frit_tensor *));
    uint32_t most = 1, at = 0;
    frit_input *inputs;

    for (uint32_t i = 0; i < g->n_ops; i++)
        most = g->ops[i].n_in > most ? g->ops[i].n_in : most;
    inputs = arena_array(&parts->arena, most, sizeof(*inputs));
    if (!tensors || !inputs)
        return fail_memory(err, g->n_values * sizeof(frit_tensor *));
    for (uint32_t i = 0; i < parts->call->n_in; i++) {
        if (parts->call->in[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        while (g->values[at].kind != GRAPH_INPUT)
            at++;
        tensors[at++] = in[i];
    }
    for (uint32_t i = 0; i < g->n_ops; i++)
        record_op(device, &g->ops[i], inputs, tensors);
    at = 0;
    for (uint32_t k = 0; k < op_n_out(op_row(parts->call->op)); k++) {
        const bool is_wanted =
            op_row(parts->call->op)->out[k].role == FRIT_ROLE_OUT || parts->call->wanted >> k & 1;

        if (is_wanted && at < g->n_outputs)
            out[k] = frit_ref(tensors[g->outputs[at++]]);
    }
    return FRIT_OK;
}

frit_status parts_backward(frit_device *device, const struct op_call *call, frit_tensor *const *in,
                           const bool *wanted, frit_tensor *const *out_grads, frit_tensor **grads,
                           frit_err *err)
{
    struct op_parts parts = {.call = call};
    const struct replay replay = {record_parts, &parts, call->n_in, op_n_out(op_row(call->op))};
    frit_status st = decompose(call, &parts.graph, err);

    if (!st)
        st = replay_backward(device, &replay, in, wanted, out_grads, grads, err);
    graph_fini(&parts.graph);
    arena_fini(&parts.arena);
    return st;
}
