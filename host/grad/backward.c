/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass: from the last node to the first, each with the gradients that arrived at its
 * outputs. */
#include "grad/backward.h"

#include <string.h>

#include "base/fail.h"
#include "grad/completion.h"
#include "grad/parts.h"
#include "grad/rule.h"
#include "graph/decompose/decompose.h"
#include "record/binding.h"
#include "tensor/slot.h"

struct backward_pass {
    struct history *history;
    struct binding *binding;
    struct arena arena; /* of one node */
    bool keep;
    frit_err *err;
};

/* ---- gradients of values ---- */

static void accumulate(struct history *history, uint32_t value, term grad)
{
    struct history_value *v = &history->values[value];
    frit_tensor *before = v->grad;

    v->grad = history_keep(before ? t_add(t_of(before), grad).tensor : grad.tensor);
    history_unkeep(before);
}

static void drop_grad(struct history_value *v)
{
    if (v->grad && !v->is_watched) {
        history_unkeep(v->grad);
        v->grad = NULL;
    }
}

/* ---- one node ---- */

static const char *node_name(const struct history_node *node)
{
    return node->op == FRIT_OP_none ? "a function" : op_row(node->op)->name;
}

/* What the node held is as it was.  `what`: "operand" or "result"; `info` NULL: of a function. */
static frit_status check_held(const struct backward_pass *p, const struct history_node *node,
                              const struct held *held, const char *what, const frit_slot_info *info)
{
    struct slot *slot = held->tensor ? slot_enter(held->tensor, NULL) : NULL;
    const char *name = info && info->name ? info->name : "";
    bool same;

    if (!held->tensor)
        return FRIT_OK;
    if (!slot)
        return fail(p->err, FRIT_INVALID,
                    "grad_backward: %s %s of %s is gone: it was released once too often", what,
                    name, node_name(node));
    same = slot_life(slot) == held->life;
    slot_leave(slot);
    if (same)
        return FRIT_OK;
    return fail(p->err, FRIT_INVALID,
                "grad_backward: the gradient of %s needs its %s %s, which frit_write has replaced "
                "since; write after the backward pass",
                node_name(node), what, name);
}

static frit_status check_node(const struct backward_pass *p, const struct history_node *node)
{
    const frit_op_info *row = op_row(node->op);

    if (node->is_spent)
        return fail(p->err, FRIT_INVALID,
                    "grad_backward: an earlier backward pass has passed %s; let that one keep what "
                    "it needs (FRIT_GRAD_KEEP)",
                    node_name(node));
    for (uint32_t i = 0; i < node->n_in; i++)
        TRY(check_held(p, node, &node->in[i].held, "operand",
                       row ? op_slot(row, node->n_in, i) : NULL));
    for (uint32_t k = 0; k < node->n_out; k++)
        TRY(check_held(p, node, &node->out[k].held, "result", row ? &row->out[k] : NULL));
    return FRIT_OK;
}

/* The call of a node, checked again: with attributes as op_check leaves them. */
struct checked {
    struct op_call call;
    struct op_type out[FRIT_OP_MAX_OUT];
    union attrs attrs;
};

static frit_status check_call(struct backward_pass *p, const struct history_node *node,
                              struct checked *checked)
{
    struct op_input *in = arena_array(&p->arena, node->n_in + 1u, sizeof(*in));

    if (!in)
        return fail_memory(p->err, node->n_in * sizeof(*in));
    for (uint32_t i = 0; i < node->n_in; i++)
        in[i] = (struct op_input){
            .kind = node->in[i].kind, .type = node->in[i].type, .scalar = node->in[i].scalar};
    checked->call = (struct op_call){.op = node->op, .n_in = node->n_in, .in = in};
    for (uint32_t k = 0; k < node->n_out; k++)
        checked->call.wanted |= (uint32_t)(node->out[k].value || node->out[k].held.tensor) << k;
    if (node->attrs) {
        memcpy(&checked->attrs, node->attrs, op_record(op_row(node->op))->size);
        checked->call.attrs = &checked->attrs;
    }
    return op_check(&checked->call, checked->out, p->err);
}

static term grad_of_output(const struct backward_pass *p, const struct history_node *node,
                           uint32_t k)
{
    const uint32_t value = node->out[k].value;

    return value && p->history->values[value].grad ? t_of(p->history->values[value].grad)
                                                   : t_none();
}

/* Only the first result has a gradient in most rules; without one it is zero. */
static bool needs_first(const frit_op_info *row)
{
    return row->id != FRIT_OP_rfft;
}

static frit_status run_rules(struct backward_pass *p, const struct history_node *node,
                             const struct checked *checked)
{
    const struct grad_row *row = grad_row_of(node->op);
    term *in = arena_array(&p->arena, node->n_in + 1u, sizeof(*in));
    term shared[GRAD_SHARED] = {0};
    struct grad_rule rule = {.row = op_row(node->op),
                             .device = p->history->device,
                             .n_in = node->n_in,
                             .types = checked->call.in,
                             .out = checked->out,
                             .attrs = &checked->attrs,
                             .in = in,
                             .shared = shared};

    if (!in)
        return fail_memory(p->err, node->n_in * sizeof(*in));
    for (uint32_t i = 0; i < node->n_in; i++) {
        rule.wanted |= (uint32_t)(node->in[i].value != HISTORY_NONE) << i;
        in[i] = node->in[i].kind == FRIT_OPERAND_SCALAR
                    ? (term){.scalar = checked->call.in[i].scalar}
                    : (term){.tensor = node->in[i].held.tensor};
    }
    for (uint32_t k = 0; k < node->n_out; k++) {
        rule.y[k] = (term){.tensor = node->out[k].held.tensor};
        rule.g[k] = grad_of_output(p, node, k);
    }
    if (!t_has(rule.g[0]) && needs_first(rule.row))
        return FRIT_OK;
    for (uint32_t i = 0; i < node->n_in; i++) {
        const uint32_t slot = history_slot(node, i);

        if (!node->in[i].value)
            continue;
        if (!row->in[slot].fn)
            return fail(
                p->err, FRIT_UNSUPPORTED,
                "grad_backward: %s has no gradient by operand %u; frit_grad_custom gives it "
                "one, frit_no_grad_begin leaves it out",
                rule.row->name, i);
        accumulate(p->history, node->in[i].value,
                   t_sum_to(row->in[slot].fn(&rule, i), &node->in[i].type));
    }
    return FRIT_OK;
}

/* A node whose gradients a function returns, or the op's parts. */
static frit_status run_function(struct backward_pass *p, const struct history_node *node,
                                const struct checked *checked)
{
    frit_tensor **in = arena_array(&p->arena, node->n_in + 1u, sizeof(frit_tensor *));
    frit_tensor **grads = arena_array(&p->arena, node->n_in + 1u, sizeof(frit_tensor *));
    bool *wanted = arena_array(&p->arena, node->n_in + 1u, sizeof(*wanted));
    frit_tensor *out_grads[FRIT_OP_MAX_OUT] = {0};
    frit_status st;

    if (!in || !grads || !wanted)
        return fail_memory(p->err, node->n_in * sizeof(frit_tensor *));
    for (uint32_t i = 0; i < node->n_in; i++) {
        in[i] = node->in[i].held.tensor;
        wanted[i] = node->in[i].value != HISTORY_NONE;
    }
    for (uint32_t k = 0; k < node->n_out; k++)
        out_grads[k] = grad_of_output(p, node, k).tensor;
    st = checked ? parts_backward(p->history->device, &checked->call, in, wanted, out_grads, grads,
                                  p->err)
                 : node->function.backward(node->function.ctx, node, out_grads, grads, p->err);
    for (uint32_t i = 0; i < node->n_in; i++) {
        if (grads[i] && !st && wanted[i])
            accumulate(p->history, node->in[i].value, t_sum_to(t_of(grads[i]), &node->in[i].type));
        history_unkeep(grads[i]);
    }
    return st;
}

static frit_status run_node(struct backward_pass *p, const struct history_node *node)
{
    const struct grad_row *row = grad_row_of(node->op);
    struct checked checked = {0};

    TRY(check_node(p, node));
    if (node->op == FRIT_OP_none)
        return run_function(p, node, NULL);
    TRY(check_call(p, node, &checked));
    if (row && row->kind != GRAD_PARTS)
        return run_rules(p, node, &checked);
    if (!decompose_has(node->op, node->n_in))
        return fail(p->err, FRIT_UNSUPPORTED,
                    "grad_backward: %s has no gradient; frit_grad_custom gives it one",
                    op_row(node->op)->name);
    return run_function(p, node, &checked);
}

static bool is_reached(const struct history *history, const struct history_node *node)
{
    for (uint32_t k = 0; k < node->n_out; k++) {
        if (node->out[k].value && history->values[node->out[k].value].grad)
            return true;
    }
    return false;
}

/* Temporaries belong to a scope of the node. */
static frit_status pass_node(struct backward_pass *p, struct history_node *node)
{
    const uint64_t depth = scope_begin(p->binding);
    frit_status st = run_node(p, node);

    scopes_close(p->binding, depth);
    arena_reset(&p->arena);
    for (uint32_t k = 0; k < node->n_out; k++)
        drop_grad(&p->history->values[node->out[k].value]);
    if (!st && !p->keep)
        history_spend(node);
    return st;
}

/* ---- the pass ---- */

static frit_status seed(struct backward_pass *p, frit_tensor *out, frit_tensor *grad)
{
    const uint32_t value = history_value_of(p->history, out);
    const struct grad_rule rule = {.device = p->history->device};
    const struct op_type *type = &p->history->values[value].type;
    struct op_type have;
    char text[128], other[128];
    uint64_t depth;

    if (!value) {
        struct slot *slot = slot_enter(out, p->err);

        if (!slot)
            return fail_context(p->err, "grad_backward: the tensor");
        slot_leave(slot);
        if (frit_tensor_status(out))
            return fail(p->err, frit_tensor_status(out), "grad_backward: %s",
                        frit_tensor_error(out));
        return fail(p->err, FRIT_INVALID,
                    "grad_backward: the tensor does not depend on a watched one, or was computed "
                    "before frit_grad_begin or between frit_no_grad_begin and frit_no_grad_end");
    }
    if (!grad && op_elements(type) != 1)
        return fail(p->err, FRIT_INVALID,
                    "grad_backward: a loss has one element, this tensor is %s; reduce it, or give "
                    "its gradient",
                    op_type_text(type, text, sizeof(text)));
    have = grad ? t_type(t_of(grad)) : *type;
    if (!op_type_equal(&have, type))
        return fail(p->err, FRIT_INVALID, "grad_backward: the gradient is %s, the tensor %s",
                    op_type_text(&have, other, sizeof(other)),
                    op_type_text(type, text, sizeof(text)));
    depth = scope_begin(p->binding);
    accumulate(p->history, value, grad ? t_of(grad) : t_full(&rule, type, 1));
    scopes_close(p->binding, depth);
    return FRIT_OK;
}

/* All nodes, after the losses have their gradients. */
static frit_status pass_nodes(struct backward_pass *p, const struct completion_watch *watch)
{
    struct history *history = p->history;
    struct completion completion;
    frit_status st = completion_begin(&completion, watch, history, p->err);

    for (uint32_t k = history->n_nodes; k-- > 0 && !st;) {
        if (is_reached(history, &history->nodes[k]))
            st = pass_node(p, &history->nodes[k]);
        if (!st)
            st = completion_passed(&completion, history, k, p->err);
    }
    completion_end(&completion);
    return st;
}

static frit_status run_pass(struct backward_pass *p, frit_tensor *const *out,
                            frit_tensor *const *grads, uint32_t n,
                            const struct completion_watch *watch)
{
    const struct history *history = p->history;

    if (history->is_short_of_memory)
        return fail(p->err, FRIT_NO_HOST_MEMORY,
                    "grad_backward: memory was short while ops were recorded");
    for (uint32_t i = 0; i < n; i++)
        TRY(seed(p, out[i], grads ? grads[i] : NULL));
    return pass_nodes(p, watch);
}

frit_status backward(struct history *history, frit_tensor *const *out, frit_tensor *const *grads,
                     uint32_t n, bool keep, const struct completion_watch *watch, frit_err *err)
{
    struct backward_pass p = {.history = history, .keep = keep, .err = err};
    frit_status st = binding_current(history->device, &p.binding, err);

    history_pause();
    if (!st)
        st = run_pass(&p, out, grads, n, watch);
    for (uint32_t v = 0; v < history->n_values; v++) /* what a failed pass left */
        drop_grad(&history->values[v]);
    history_resume();
    arena_fini(&p.arena);
    return st;
}
