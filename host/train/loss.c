/* SPDX-License-Identifier: Apache-2.0 */
/* Losses as ops. */
#include <frit/train.h>

#include <string.h>

#include "api/tensor.h"
#include "base/fail.h"
#include "base/thread.h"
#include "grad/rule.h"
#include "record/binding.h"
#include "tensor/slot.h"

enum { MOST_OPERANDS = 4 };

/* A loss while it is recorded: its temporaries belong to a scope of its own. */
struct loss {
    const char *name;
    frit_tensor *const *in; /* as the caller gave them, perhaps marked by frit_take */
    uint32_t n_in;
    struct op_type types[MOST_OPERANDS];
    frit_device *device;
    struct binding *binding;
    uint64_t depth;
    frit_err err;
};

/* ---- begin and end ---- */

static frit_status read_operand(struct loss *loss, uint32_t i)
{
    struct slot *slot = slot_enter(loss->in[i], &loss->err);
    frit_status st = FRIT_OK;

    if (!slot)
        return fail_context(&loss->err, "%s: operand %u", loss->name, i);
    loss->types[i] = slot->value.type;
    loss->device = loss->device ? loss->device : slot->device;
    if (slot->state == SLOT_FAILED)
        st = FRIT_INVALID;
    slot_leave(slot);
    return st ? fail(&loss->err, frit_tensor_status(loss->in[i]), "%s: %s", loss->name,
                     frit_tensor_error(loss->in[i]))
              : FRIT_OK;
}

static frit_status loss_begin(struct loss *loss)
{
    loss->err = (frit_err)ERR_INIT;
    for (uint32_t i = 0; i < loss->n_in; i++)
        TRY(read_operand(loss, i));
    TRY(binding_current(loss->device, &loss->binding, &loss->err));
    loss->depth = scope_begin(loss->binding);
    return FRIT_OK;
}

/* An operand that occurs twice is released once. */
static void consume(const struct loss *loss, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        if (handle_plain(loss->in[k]) == handle_plain(loss->in[i]) && handle_taken(loss->in[k]))
            return;
    }
    if (loss->in[i])
        tensor_consume(loss->in[i]);
}

static frit_tensor *loss_end(struct loss *loss, frit_status st, term result)
{
    if (!st)
        frit_keep(result.tensor);
    if (loss->depth)
        scopes_close(loss->binding, loss->depth);
    if (st)
        result = t_of(tensor_error(loss->device, &loss->err));
    for (uint32_t i = 0; i < loss->n_in; i++)
        consume(loss, i);
    return result.tensor;
}

static term operand(const struct loss *loss, uint32_t i)
{
    return t_of(handle_plain(loss->in[i]));
}

/* ---- checks ---- */

static frit_status check_size(struct loss *loss, uint64_t size)
{
    return size ? FRIT_OK
                : fail(&loss->err, FRIT_INVALID, "%s: struct_size of the attributes is not set",
                       loss->name);
}

static frit_status check_reduction(struct loss *loss, int64_t reduction)
{
    return reduction >= FRIT_LOSS_MEAN && reduction <= FRIT_LOSS_NONE
               ? FRIT_OK
               : fail(&loss->err, FRIT_INVALID, "%s: there is no reduction %lld", loss->name,
                      (long long)reduction);
}

static bool is_float(uint32_t dtype)
{
    return frit_dtype_info_of(dtype).cls == FRIT_DTYPE_FLOAT;
}

static frit_status check_pair(struct loss *loss)
{
    char a[128], b[128];

    if (is_float(loss->types[0].dtype) && op_type_equal(&loss->types[0], &loss->types[1]))
        return FRIT_OK;
    return fail(&loss->err, FRIT_INVALID,
                "%s: operand and target are floats of one type and the same dims, not %s and %s",
                loss->name, op_type_text(&loss->types[0], a, sizeof(a)),
                op_type_text(&loss->types[1], b, sizeof(b)));
}

/* ---- reductions ---- */

static term sum_all(term x)
{
    return t_sum(x, &(frit_axes){0}, false);
}

static term mean_all(term x)
{
    frit_attrs_reduce attrs = {.struct_size = sizeof(attrs)};

    return t_op(FRIT_OP_mean, 1, &x, &attrs);
}

static term reduced(term losses, int64_t reduction)
{
    return reduction == FRIT_LOSS_NONE  ? losses
           : reduction == FRIT_LOSS_SUM ? sum_all(losses)
                                        : mean_all(losses);
}

/* ---- squares ---- */

static term mse(const struct loss *loss)
{
    return t_square(t_sub(operand(loss, 0), operand(loss, 1)));
}

/* Both terms are >= 0, so that nothing cancels. */
static term bce(const struct loss *loss)
{
    const term x = operand(loss, 0), y = operand(loss, 1);

    return t_add(t_mul(y, t_op1(FRIT_OP_softplus, t_neg(x))),
                 t_mul(t_sub(t_num(1), y), t_op1(FRIT_OP_softplus, x)));
}

static frit_tensor *pair_loss(const char *name, term (*fn)(const struct loss *),
                              frit_tensor *const *in, const frit_loss_attrs *attrs)
{
    HOLD_CANCEL;
    struct loss loss = {.name = name, .in = in, .n_in = 2};
    const int64_t reduction = attrs ? attrs->reduction : 0;
    frit_status st = loss_begin(&loss);

    if (!st)
        st = check_size(&loss, attrs ? attrs->struct_size : 1);
    if (!st)
        st = check_reduction(&loss, reduction);
    if (!st)
        st = check_pair(&loss);
    return loss_end(&loss, st, st ? t_none() : reduced(fn(&loss), reduction));
}

frit_tensor *frit_loss_mse_with(frit_tensor *x, frit_tensor *target, const frit_loss_attrs *attrs)
{
    return pair_loss("loss_mse", mse, (frit_tensor *const[]){x, target}, attrs);
}

frit_tensor *frit_loss_bce_with(frit_tensor *x, frit_tensor *target, const frit_loss_attrs *attrs)
{
    return pair_loss("loss_bce", bce, (frit_tensor *const[]){x, target}, attrs);
}

/* ---- cross-entropy ---- */

static frit_status check_classes(struct loss *loss, int64_t *axis)
{
    const struct op_type *x = &loss->types[0], *target = &loss->types[1];
    struct op_type want = {.dtype = target->dtype, .rank = x->rank - 1};
    char have[128], other[128];

    if (!is_float(x->dtype) || !x->rank)
        return fail(&loss->err, FRIT_INVALID, "%s: x is %s, not floats of rank 1 or more",
                    loss->name, op_type_text(x, have, sizeof(have)));
    if (*axis < -(int64_t)x->rank || *axis >= (int64_t)x->rank)
        return fail(&loss->err, FRIT_INVALID, "%s: x is %s and has no axis %lld", loss->name,
                    op_type_text(x, have, sizeof(have)), (long long)*axis);
    *axis += *axis < 0 ? x->rank : 0;
    for (uint32_t d = 0; d < want.rank; d++)
        want.dims[d] = x->dims[d < *axis ? d : d + 1];
    if (target->dtype != FRIT_I32 && target->dtype != FRIT_I64)
        want.dtype = FRIT_I64;
    if (op_type_equal(target, &want))
        return FRIT_OK;
    return fail(&loss->err, FRIT_INVALID, "%s: the target is %s, not %s (or i32)", loss->name,
                op_type_text(target, have, sizeof(have)),
                op_type_text(&want, other, sizeof(other)));
}

/* The target with extent 1 at `axis`. */
static term classes_of(const struct loss *loss, int64_t axis)
{
    struct op_type type = loss->types[0];

    type.dims[axis] = 1;
    return t_reshape(operand(loss, 1), &type);
}

/* `picked` -log softmax at the target, by a comparison with all classes: with its gradient it fuses
 * with the softmax, where a gather and the scatter of its gradient would stand alone. */
static term cross_entropy(const struct loss *loss, int64_t axis,
                          const frit_loss_cross_entropy_attrs *attrs, term *counted)
{
    const struct grad_rule rule = {.device = loss->device};
    const frit_axes line = {.count = 1, .axis = {axis}};
    const term target = classes_of(loss, axis);
    const term at = t_iota(&rule, &loss->types[0], axis, loss->types[1].dtype);
    const term log_p =
        t_op(FRIT_OP_log_softmax, 1, (term[]){operand(loss, 0)},
             &(frit_attrs_axis){.struct_size = sizeof(frit_attrs_axis), .axis = axis});
    const double spread = attrs->label_smoothing;
    term out = t_neg(t_sum(t_keep(t_eq(at, target), log_p), &line, false));

    if (spread != 0) {
        const double each = spread / (double)loss->types[0].dims[axis];

        out = t_sub(t_mul(out, t_num(1 - spread)), t_mul(t_sum(log_p, &line, false), t_num(each)));
    }
    *counted = t_none();
    if (attrs->has_ignore) {
        *counted = t_op2(FRIT_OP_ne, operand(loss, 1), api_i(attrs->ignore_index));
        out = t_keep(*counted, out);
    }
    return out;
}

/* The mean over targets that count. */
static term mean_counted(const struct loss *loss, term losses, term counted)
{
    return t_div(sum_all(losses), sum_all(t_cast(counted, loss->types[0].dtype)));
}

frit_tensor *frit_loss_cross_entropy_with(frit_tensor *x, frit_tensor *target, int64_t axis,
                                          const frit_loss_cross_entropy_attrs *attrs)
{
    HOLD_CANCEL;
    static const frit_loss_cross_entropy_attrs defaults = {.struct_size = sizeof(defaults)};
    struct loss loss = {
        .name = "loss_cross_entropy", .in = (frit_tensor *const[]){x, target}, .n_in = 2};
    const frit_loss_cross_entropy_attrs *a = attrs ? attrs : &defaults;
    term out = t_none(), counted = t_none();
    frit_status st = loss_begin(&loss);

    if (!st)
        st = check_size(&loss, a->struct_size);
    if (!st)
        st = check_reduction(&loss, a->reduction);
    if (!st)
        st = check_classes(&loss, &axis);
    if (!st && !(a->label_smoothing >= 0 && a->label_smoothing <= 1))
        st = fail(&loss.err, FRIT_INVALID, "%s: label_smoothing is %g, not 0 to 1", loss.name,
                  a->label_smoothing);
    if (!st) {
        out = cross_entropy(&loss, axis, a, &counted);
        out = a->reduction == FRIT_LOSS_MEAN && t_has(counted) ? mean_counted(&loss, out, counted)
                                                               : reduced(out, a->reduction);
    }
    return loss_end(&loss, st, out);
}

/* ---- connectionist temporal classification ---- */

/* Each loss by its target's length, at least 1. */
static term by_length(const struct loss *loss, term losses)
{
    const term lengths = t_cast(operand(loss, 3), loss->types[0].dtype);

    return t_div(losses, t_op2(FRIT_OP_maximum, lengths, t_num(1)));
}

frit_tensor *frit_loss_ctc_with(frit_tensor *log_probs, frit_tensor *targets,
                                frit_tensor *input_lengths, frit_tensor *target_lengths,
                                int64_t blank, const frit_loss_ctc_attrs *attrs)
{
    HOLD_CANCEL;
    static const frit_loss_ctc_attrs defaults = {.struct_size = sizeof(defaults)};
    struct loss loss = {
        .name = "loss_ctc",
        .in = (frit_tensor *const[]){log_probs, targets, input_lengths, target_lengths},
        .n_in = 4};
    const frit_loss_ctc_attrs *a = attrs ? attrs : &defaults;
    frit_attrs_ctc ctc = {.struct_size = sizeof(ctc), .blank = blank};
    term out = t_none();
    frit_status st = loss_begin(&loss);

    if (!st)
        st = check_size(&loss, a->struct_size);
    if (!st)
        st = check_reduction(&loss, a->reduction);
    if (!st) {
        out = t_op(
            FRIT_OP_ctc_loss, 4,
            (term[]){operand(&loss, 0), operand(&loss, 1), operand(&loss, 2), operand(&loss, 3)},
            &ctc);
        if (a->zero_infinity)
            out = t_where(t_op1(FRIT_OP_is_inf, out), t_num(0), out);
        if (a->reduction == FRIT_LOSS_MEAN)
            out = by_length(&loss, out);
        out = reduced(out, a->reduction);
    }
    return loss_end(&loss, st, out);
}
