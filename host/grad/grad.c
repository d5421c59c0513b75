/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of frit/grad.h. */
#include <frit/grad.h>

#include <stdlib.h>
#include <string.h>

#include "api/report.h"
#include "api/tensor.h"
#include "base/fail.h"
#include "device/device.h"
#include "grad/backward.h"
#include "grad/parts.h"
#include "grad/rule.h"
#include "record/binding.h"
#include "tensor/slot.h"

/* ---- begin and end ---- */

frit_status frit_grad_begin(frit_device *device, frit_err *err)
{
    struct binding *binding;

    if (process_is_barred())
        return report_barred(err, "grad_begin");
    if (!device)
        return report_null(err, "grad_begin", "the device");
    TRY(binding_current(device, &binding, err));
    if (history_of(device))
        return fail(err, FRIT_BUSY, "grad_begin: this thread follows the ops of %s already",
                    frit_device_name(device));
    return history_open(device) ? FRIT_OK : fail_memory(err, sizeof(struct history));
}

void frit_grad_end(frit_device *device)
{
    struct history *history = device && !process_is_barred() ? history_of(device) : NULL;

    if (history)
        history_close(history);
}

void frit_no_grad_begin(void)
{
    history_pause();
}

void frit_no_grad_end(void)
{
    history_resume();
}

/* The history of the tensor's device. */
static frit_status find_history(frit_tensor *tensor, const char *call, struct history **out,
                                frit_err *err)
{
    struct slot *slot = slot_enter(tensor, err);
    const frit_device *device;

    *out = NULL;
    if (!slot)
        return fail_context(err, "%s: the tensor", call);
    device = slot->device;
    slot_leave(slot);
    if (device)
        *out = history_of(device);
    if (*out)
        return FRIT_OK;
    if (frit_tensor_status(tensor))
        return fail(err, frit_tensor_status(tensor), "%s: %s", call, frit_tensor_error(tensor));
    return fail(err, FRIT_INVALID, "%s: frit_grad_begin comes first, in the same thread", call);
}

frit_status frit_grad_watch(frit_tensor *tensor, frit_err *err)
{
    frit_err own = ERR_INIT;
    struct history *history;
    frit_status st = find_history(tensor, "grad_watch", &history, &own);

    if (!st)
        st = history_watch(history, tensor, &own);
    return report(err, st, &own);
}

/* ---- the backward pass ---- */

frit_status frit_grad_backward_many(frit_tensor *const *tensors, frit_tensor *const *grads,
                                    uint64_t count, uint32_t flags, frit_err *err)
{
    HOLD_CANCEL;
    frit_err own = ERR_INIT;
    struct history *history = NULL;
    frit_status st = FRIT_OK;

    if (!tensors || !count || count > UINT32_MAX)
        return fail(err, FRIT_INVALID, "grad_backward: there are no tensors");
    if (flags & ~(uint32_t)FRIT_GRAD_KEEP)
        return fail(err, FRIT_INVALID, "grad_backward: unknown flags %#x", flags);
    for (uint64_t i = 0; i < count && !st; i++) {
        struct history *first = history;

        st = find_history(tensors[i], "grad_backward", &history, &own);
        if (!st && first && first != history)
            st = fail(&own, FRIT_INVALID, "grad_backward: the tensors are of several devices");
    }
    if (!st)
        st = backward(history, tensors, grads, (uint32_t)count, flags & FRIT_GRAD_KEEP, NULL, &own);
    return report(err, st, &own);
}

frit_status frit_grad_backward(frit_tensor *loss, frit_err *err)
{
    return frit_grad_backward_many(&loss, NULL, 1, 0, err);
}

/* NULL: no memory. */
static frit_tensor *zeros_of(const struct history *history, const struct op_type *type)
{
    const struct grad_rule rule = {.device = history->device};
    struct binding *binding;
    frit_tensor *zeros;
    uint64_t depth;

    if (binding_current(history->device, &binding, NULL))
        return NULL;
    depth = scope_begin(binding);
    history_pause();
    zeros = history_keep(t_full(&rule, type, 0).tensor);
    history_resume();
    scopes_close(binding, depth);
    return zeros;
}

frit_tensor *frit_grad_of(frit_tensor *tensor)
{
    HOLD_CANCEL;
    frit_err err = ERR_INIT;
    struct history *history;
    frit_status st = find_history(tensor, "grad_of", &history, &err);
    const uint32_t value = st ? HISTORY_NONE : history_value_of(history, tensor);
    struct history_value *v = value ? &history->values[value] : NULL;

    if (!st && (!v || !v->is_watched))
        st = fail(&err, FRIT_INVALID, "grad_of: the tensor is not watched");
    if (!st && !v->grad)
        v->grad = zeros_of(history, &v->type);
    if (!st && !v->grad)
        st = fail_memory(&err, sizeof(*v));
    return st ? tensor_error(NULL, &err) : v->grad;
}

/* ---- functions ---- */

/* Of a call of frit_grad_recompute or frit_grad_custom. */
struct function {
    frit_grad_fn fn;
    frit_grad_rule rule;
    void (*drop)(void *ctx);
    void *ctx;
    frit_device *device;
    struct random_place place; /* of its first random op */
};

static void drop_function(void *ctx)
{
    struct function *f = ctx;

    if (f->drop)
        f->drop(f->ctx);
    free(f);
}

/* The tensors of a node that no rule of the table belongs to. */
static frit_tensor **operands(const struct history_node *node)
{
    frit_tensor **in = calloc(node->n_in + 1u, sizeof(frit_tensor *));

    for (uint32_t i = 0; in && i < node->n_in; i++)
        in[i] = node->in[i].held.tensor;
    return in;
}

static frit_status custom_backward(void *ctx, const struct history_node *node,
                                   frit_tensor *const *out_grads, frit_tensor **grads,
                                   frit_err *err)
{
    struct function *f = ctx;
    frit_tensor **in = operands(node);
    frit_status st =
        in ? f->rule(f->ctx, in, out_grads, grads, err) : fail_memory(err, sizeof(*in));

    /* They belong to the node's scope; the caller releases a reference of his own. */
    for (uint32_t i = 0; i < node->n_in; i++)
        grads[i] = grads[i] ? history_keep(grads[i]) : NULL;
    free(in);
    return st;
}

static frit_status record_again(void *ctx, frit_device *device, frit_tensor *const *in,
                                frit_tensor **out, frit_err *err)
{
    struct function *f = ctx;
    struct random_place place = f->place, *before = stream_draw_from(&place);
    const frit_status st = f->fn(f->ctx, in, out, err);

    (void)device;
    stream_draw_from(before);
    for (uint32_t k = 0; k < FRIT_OP_MAX_OUT && out[k] && !st; k++)
        frit_ref(out[k]);
    if (st)
        memset(out, 0, FRIT_OP_MAX_OUT * sizeof(frit_tensor *));
    return st;
}

static frit_status recompute_backward(void *ctx, const struct history_node *node,
                                      frit_tensor *const *out_grads, frit_tensor **grads,
                                      frit_err *err)
{
    struct function *f = ctx;
    const struct replay replay = {record_again, f, node->n_in, node->n_out};
    frit_tensor **in = operands(node);
    bool *wanted = calloc(node->n_in + 1u, sizeof(*wanted));
    frit_status st = in && wanted ? FRIT_OK : fail_memory(err, sizeof(*in));

    for (uint32_t i = 0; i < node->n_in && !st; i++)
        wanted[i] = node->in[i].value != HISTORY_NONE;
    if (!st)
        st = replay_backward(f->device, &replay, in, wanted, out_grads, grads, err);
    free(in);
    free(wanted);
    return st;
}

static bool depends(struct history *history, frit_tensor *const *in, uint64_t n_in)
{
    for (uint64_t i = 0; history && i < n_in; i++) {
        if (history_value_of(history, in[i]))
            return true;
    }
    return false;
}

static frit_status add_function(const struct function *f, frit_tensor *const *in, uint64_t n_in,
                                frit_tensor *const *out, uint64_t n_out, frit_err *err)
{
    struct history *history = history_of(f->device);
    struct function *copy;
    struct history_function function = {.drop = drop_function,
                                        .backward = f->rule ? custom_backward : recompute_backward};

    if (!depends(history, in, n_in)) {
        if (f->drop)
            f->drop(f->ctx);
        return FRIT_OK;
    }
    copy = malloc(sizeof(*copy));
    if (!copy) {
        if (f->drop)
            f->drop(f->ctx);
        return fail_memory(err, sizeof(*copy));
    }
    *copy = *f;
    function.ctx = copy;
    return history_add_function(history, &function, in, (uint32_t)n_in, out, (uint32_t)n_out, err);
}

static frit_status check_function(const char *call, frit_device *device, bool has_function,
                                  frit_tensor *const *in, uint64_t n_in, frit_tensor *const *out,
                                  uint64_t n_out, frit_err *err)
{
    if (process_is_barred())
        return report_barred(err, call);
    if (!device || !has_function || (n_in && !in) || !out || !n_out)
        return fail(err, FRIT_INVALID, "%s: the %s is NULL", call,
                    !device         ? "device"
                    : !has_function ? "function"
                    : n_in && !in   ? "list of operands"
                                    : "list of outputs");
    if (n_out > FRIT_OP_MAX_OUT || n_in > INT32_MAX)
        return fail(err, FRIT_INVALID, "%s: at most %d outputs", call, FRIT_OP_MAX_OUT);
    return FRIT_OK;
}

frit_status frit_grad_recompute(frit_device *device, frit_grad_fn fn, void *ctx,
                                frit_tensor *const *in, uint64_t n_in, frit_tensor **out,
                                uint64_t n_out, frit_err *err)
{
    struct function f = {.fn = fn, .ctx = ctx, .device = device};
    frit_err own = ERR_INIT;
    struct binding *binding;
    frit_status st = check_function("grad_recompute", device, fn, in, n_in, out, n_out, &own);

    if (!st)
        st = binding_current(device, &binding, &own);
    if (st)
        return report(err, st, &own);
    f.place = stream_place(binding->stream);
    memset(out, 0, n_out * sizeof(frit_tensor *));
    history_pause();
    st = fn(ctx, in, out, &own);
    history_resume();
    if (!st)
        st = add_function(&f, in, n_in, out, n_out, &own);
    return report(err, st, &own);
}

frit_status frit_grad_custom(frit_device *device, frit_grad_rule rule, void (*drop)(void *ctx),
                             void *ctx, frit_tensor *const *in, uint64_t n_in,
                             frit_tensor *const *out, uint64_t n_out, frit_err *err)
{
    const struct function f = {.rule = rule, .drop = drop, .ctx = ctx, .device = device};
    frit_err own = ERR_INIT;
    frit_status st = check_function("grad_custom", device, rule, in, n_in, out, n_out, &own);

    if (!st)
        st = add_function(&f, in, n_in, out, n_out, &own);
    else if (drop)
        drop(ctx);
    return report(err, st, &own);
}
