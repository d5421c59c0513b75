/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A launch in the server's words: a block of elementwise ops over the dims of its first result; a
 * sum or product as terms over more dims. */
#include "launch.h"

#include <string.h>

#include "queue.h"
#include "remote.h"

/* What is written. */
struct message {
    struct wire_launch launch;
    struct wire_arg args[WIRE_ARGS];
    struct wire_op ops[WIRE_OPS];
};

static const uint32_t functions[FRIT_OP_LIMIT] = {
    [FRIT_OP_copy] = WIRE_MOVE,       [FRIT_OP_add] = WIRE_ADD, [FRIT_OP_sub] = WIRE_SUB,
    [FRIT_OP_mul] = WIRE_MUL,         [FRIT_OP_div] = WIRE_DIV, [FRIT_OP_exp] = WIRE_EXP,
    [FRIT_OP_maximum] = WIRE_MAXIMUM, [FRIT_OP_erf] = WIRE_ERF, [FRIT_OP_sum] = WIRE_MOVE,
    [FRIT_OP_matmul] = WIRE_MUL,
};

/* One more dim, inside of all others, with the bytes that each argument takes a step by. */
static void push(struct message *to, int64_t extent, const int64_t *strides, uint32_t n)
{
    uint32_t d = to->launch.rank++;

    to->launch.dims[d] = extent;
    for (uint32_t i = 0; i < n; i++)
        to->args[i].strides[d] = extent == 1 ? 0 : strides[i];
}

/* ---- dims ---- */

static void push_maps(struct message *to, const struct kit_call *call,
                      const struct kit_tensor **args, uint32_t n)
{
    const struct kit_tensor *space = &call->args[call->block->n_in];
    int64_t strides[WIRE_ARGS];

    for (uint32_t d = 0; d < space->rank; d++) {
        for (uint32_t i = 0; i < n; i++)
            strides[i] = kit_stride(args[i], space->rank, d);
        push(to, space->dims[d], strides, n);
    }
    to->launch.n_kept = to->launch.rank;
}

/* The dims that are kept, then those that are summed over. */
static void push_sum(struct message *to, const struct kit_call *call)
{
    const frit_attrs_reduce *attrs = &call->block->ops[0].attrs.reduce;
    const struct kit_tensor *x = &call->args[0], *y = &call->args[1];
    bool summed[FRIT_MAX_RANK] = {false};
    uint32_t out = 0;

    for (int64_t i = 0; i < attrs->axes.count; i++)
        summed[attrs->axes.axis[i]] = true;
    for (uint32_t d = 0; d < x->rank; d++) {
        if (!summed[d])
            push(to, x->dims[d], (int64_t[]){x->strides[d], y->strides[out]}, 2);
        out += !summed[d] || attrs->keep;
    }
    to->launch.n_kept = to->launch.rank;
    for (uint32_t d = 0; d < x->rank; d++)
        if (summed[d])
            push(to, x->dims[d], (int64_t[]){x->strides[d], 0}, 2);
}

/* Arguments a, b and y, or one for both operands. */
static void push_matmul(struct message *to, const struct kit_call *call)
{
    const struct kit_tensor *y = &call->args[2], *a = kit_in(call, 0, 0), *b = kit_in(call, 0, 1);
    const uint32_t m = y->rank - 2, n = y->rank - 1;
    const uint32_t last_a = a->rank - 1, last_b = b->rank - 1;

    for (uint32_t d = 0; d < m; d++)
        push(to, y->dims[d],
             (int64_t[]){kit_stride(a, y->rank, d), kit_stride(b, y->rank, d), y->strides[d]}, 3);
    push(to, y->dims[m], (int64_t[]){a->strides[last_a - 1], 0, y->strides[m]}, 3);
    push(to, y->dims[n], (int64_t[]){0, b->strides[last_b], y->strides[n]}, 3);
    to->launch.n_kept = to->launch.rank;
    push(to, a->dims[last_a], (int64_t[]){a->strides[last_a], b->strides[last_b - 1], 0}, 3);
}

/* ---- arguments and ops ---- */

static void add_arg(struct message *to, const struct kit_tensor *tensor, uint32_t value)
{
    const frit_arg *arg = tensor->arg;

    to->args[to->launch.n_in + to->launch.n_out] =
        (struct wire_arg){.memory = arg->memory ? arg->memory->number : 0,
                          .offset = arg->offset + arg->origin,
                          .value = value};
}

/* The arguments of a block; `args` are set to those that are written. */
static uint32_t add_args(struct message *to, const struct kit_call *call,
                         const struct kit_tensor **args)
{
    const struct kit_block *block = call->block;
    uint32_t n = 0;

    for (uint32_t i = 0; i < block->n_args; i++) {
        if (block->args[i] == KIT_NONE)
            continue; /* scalar, absent, or an argument before */
        add_arg(to, &call->args[i], block->args[i]);
        args[n++] = &call->args[i];
        *(i < block->n_in ? &to->launch.n_in : &to->launch.n_out) += 1;
    }
    return n;
}

/* Both operands are arguments of their own, also where they are one tensor. */
static void add_factors(struct message *to, const struct kit_call *call)
{
    add_arg(to, kit_in(call, 0, 0), 0);
    to->launch.n_in = 1;
    add_arg(to, kit_in(call, 0, 1), 1);
    to->launch.n_in = 2;
    add_arg(to, &call->args[2], 2);
    to->launch.n_out = 1;
    to->launch.n_values = 3;
    to->launch.n_ops = 1;
    to->ops[0] = (struct wire_op){.function = WIRE_MUL, .in = {0, 1}, .out = 2};
}

static void add_ops(struct message *to, const struct kit_call *call)
{
    const struct kit_block *block = call->block;

    to->launch.n_values = block->n_values;
    to->launch.n_ops = block->n_ops;
    for (uint32_t k = 0; k < block->n_ops; k++) {
        const struct kit_op *own = &block->ops[k];
        struct wire_op *op = &to->ops[k];

        *op = (struct wire_op){.function = functions[own->id],
                               .in = {WIRE_SCALAR, WIRE_SCALAR},
                               .out = own->out_value[0]};
        for (uint32_t i = 0; i < own->n_in && i < 2; i++) {
            if (own->in_value[i] != KIT_NONE)
                op->in[i] = own->in_value[i];
            else
                op->scalar[i] = kit_scalar(call, k, i);
        }
    }
}

/* Sums of nothing have no terms. */
static void drop_empty_terms(struct message *to)
{
    struct wire_launch *launch = &to->launch;

    for (uint32_t d = launch->n_kept; d < launch->rank; d++) {
        if (launch->dims[d])
            continue;
        memmove(to->args, to->args + launch->n_in, launch->n_out * sizeof *to->args);
        launch->n_in = launch->n_ops = 0;
    }
}

static frit_status write_message(struct remote *remote, const struct message *from, frit_err *err)
{
    const uint64_t args = (from->launch.n_in + from->launch.n_out) * sizeof *from->args,
                   ops = from->launch.n_ops * sizeof *from->ops;
    char *at = remote_add(remote, sizeof from->launch + args + ops);

    if (!at)
        return plug_fail(remote->plug, err, FRIT_NO_HOST_MEMORY, "no memory for a message");
    memcpy(at, &from->launch, sizeof from->launch);
    memcpy(at + sizeof from->launch, from->args, args);
    memcpy(at + sizeof from->launch + args, from->ops, ops);
    return FRIT_OK;
}

frit_status remote_add_launch(struct remote *remote, const frit_launch *launch, frit_err *err)
{
    const struct kit_tensor *args[WIRE_ARGS];
    struct kit_call call;
    struct message message;
    frit_status status = kit_call_of(remote->device, launch, &call, err);
    uint32_t op;

    if (status)
        return status;
    memset(&message, 0, sizeof message);
    op = call.block->ops[0].id;
    if (op == FRIT_OP_matmul) {
        add_factors(&message, &call);
        push_matmul(&message, &call);
    } else {
        uint32_t n = add_args(&message, &call, args);

        add_ops(&message, &call);
        if (op == FRIT_OP_sum)
            push_sum(&message, &call);
        else
            push_maps(&message, &call, args, n);
    }
    drop_empty_terms(&message);
    if (remote_plugin_of(remote->device->instance)->fault)
        message.launch.n_values = 0; /* so that no argument is a value of it */
    return write_message(remote, &message, err);
}
