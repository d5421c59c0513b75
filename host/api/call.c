/* SPDX-License-Identifier: Apache-2.0 */
/* One op call: inside the lock of the calling thread's stream its operands are resolved, checked
 * and recorded.  An operand of another stream that has no alias in this one yet gets it outside of
 * the lock, and the call starts again.  On every path each taken operand is released once, and each
 * output gets a tensor. */
#include "api/call.h"

#include <stdlib.h>
#include <string.h>

#include "api/tensor.h"
#include "base/err.h"
#include "base/fail.h"
#include "base/thread.h"
#include "device/device.h"
#include "load/registry.h"
#include "plan/key.h"
#include "record/alias.h"
#include "record/binding.h"
#include "record/predict.h"
#include "run/collective.h"
#include "run/drain.h"
#include "tensor/failure.h"

enum { FIXED = 8, SIMPLE_ATTRS = 512 };

frit_scalar frit_scalar_f(double value)
{
    frit_scalar scalar = {.kind = FRIT_SCALAR_F64};

    memcpy(&scalar.bits, &value, sizeof(value));
    return scalar;
}

frit_scalar frit_scalar_i(int64_t value)
{
    return (frit_scalar){.kind = FRIT_SCALAR_I64, .bits = (uint64_t)value};
}

frit_scalar frit_scalar_u(uint64_t value)
{
    return (frit_scalar){.kind = FRIT_SCALAR_U64, .bits = value};
}

/* The state of a call. */
struct call_state {
    const frit_op_info *row;
    uint32_t op;
    uint32_t n_in; /* `many` and `in` together */
    frit_tensor *const *many;
    uint64_t n_many;
    const frit_input *in;
    void *attrs;
    frit_device *device;
    struct binding *binding;
    struct failure *failure; /* of an operand, a reference */
    frit_tensor *unknown;    /* an operand that the stream does not know */
    uint32_t unknown_at;     /* its number */
    struct op_input *inputs;
    struct segment_input *operands;
    struct op_input fixed_inputs[FIXED];
    struct segment_input fixed_operands[FIXED];
    struct op_type types[FRIT_OP_MAX_OUT];
    uint32_t n_out;
    uint32_t wanted; /* outputs the caller has room for */
    bool full;       /* the queue is long enough */
};

static frit_input call_state_in(const struct call_state *w, uint32_t i)
{
    return i < w->n_many ? api_tensor(w->many[i]) : w->in[i - w->n_many];
}

static const char *operand_name(const struct call_state *w, uint32_t i)
{
    if (w->row->in[0].role == FRIT_ROLE_MANY || i >= op_n_slots(w->row))
        return "operand";
    return w->row->in[i].name;
}

static frit_status call_state_init(struct call_state *w, frit_err *err)
{
    w->inputs = w->fixed_inputs;
    w->operands = w->fixed_operands;
    if (w->n_many > INT32_MAX) {
        fail(err, FRIT_INVALID, "%s: %llu operands are too many", w->row->name,
             (unsigned long long)w->n_many);
        w->n_many = w->n_in = 0;
        return FRIT_INVALID;
    }
    if (w->n_many && !w->many) {
        fail(err, FRIT_INVALID, "%s: %llu operands at NULL", w->row->name,
             (unsigned long long)w->n_many);
        w->n_many = w->n_in = 0;
        return FRIT_INVALID;
    }
    if (w->n_in > FIXED) {
        w->inputs = malloc(w->n_in * sizeof(*w->inputs));
        w->operands = malloc(w->n_in * sizeof(*w->operands));
    }
    return w->inputs && w->operands ? FRIT_OK : fail_memory(err, w->n_in * sizeof(*w->inputs));
}

/* An operand that occurs twice is released once. */
static void consume(const struct call_state *w, uint32_t i)
{
    frit_tensor *tensor = call_state_in(w, i).tensor;

    for (uint32_t k = 0; k < i && handle_taken(tensor); k++) {
        if (call_state_in(w, k).tensor == tensor)
            return;
    }
    tensor_consume(tensor);
}

static void call_state_fini(struct call_state *w)
{
    for (uint32_t i = 0; i < w->n_in; i++)
        consume(w, i);
    if (w->inputs != w->fixed_inputs)
        free(w->inputs);
    if (w->operands != w->fixed_operands)
        free(w->operands);
    failure_unref(w->failure);
}

/* ---- the device of the call ---- */

/* The device of the first tensor that has one. */
static void find_device(struct call_state *w)
{
    for (uint32_t i = 0; i < w->n_in && !w->device; i++) {
        frit_tensor *tensor = call_state_in(w, i).tensor;
        struct slot *slot = tensor ? slot_enter(tensor, NULL) : NULL;

        if (!slot)
            continue;
        w->device = slot->device;
        if (slot->state == SLOT_FAILED && !w->failure)
            w->failure = failure_ref(slot->failure);
        slot_leave(slot);
    }
}

/* Resolves all operands, so that the error names the first bad one. */
static frit_status check_handles(const struct call_state *w, frit_err *err)
{
    for (uint32_t i = 0; i < w->n_in; i++) {
        const frit_input in = call_state_in(w, i);
        bool null = !in.tensor && in.scalar.kind == INPUT_NULL;
        struct slot *slot = in.tensor ? slot_enter(in.tensor, err) : NULL;

        if (slot)
            slot_leave(slot);
        if (null)
            slot_refuse(NULL, err);
        if (null || (in.tensor && !slot))
            return fail_context(err, "%s: %s (operand %u)", w->row->name, operand_name(w, i), i);
    }
    if (w->row->in[0].role == FRIT_ROLE_MANY && w->n_in == 0)
        return fail(err, FRIT_INVALID, "%s: there are no operands", w->row->name);
    return fail(err, FRIT_INVALID, "%s: the device is NULL", w->row->name);
}

static frit_status find_binding(struct call_state *w, frit_err *err)
{
    if (!w->device)
        find_device(w);
    if (!w->device)
        return w->failure ? w->failure->status : check_handles(w, err);
    return binding_current(w->device, &w->binding, err);
}

/* ---- inside the lock ---- */

static void refuse(const struct call_state *w, uint32_t i, frit_err *err)
{
    slot_refuse(call_state_in(w, i).tensor, err);
    fail_context(err, "%s: %s (operand %u)", w->row->name, operand_name(w, i), i);
}

/* FRIT_BUSY: the stream has no alias of it. */
static frit_status resolve_tensor(struct call_state *w, uint32_t i, frit_tensor *tensor,
                                  frit_err *err)
{
    struct stream *stream = w->binding->stream;
    struct segment_input *operand = &w->operands[i];
    struct slot *slot = slot_of(tensor);

    if (!slot || !slot_is(slot, tensor)) {
        refuse(w, i, err);
        return FRIT_INVALID;
    }
    operand->kind = w->inputs[i].kind = FRIT_OPERAND_TENSOR;
    if (atomic_load_explicit(&slot->home, memory_order_relaxed) == &stream->home) {
        if (slot->state == SLOT_FAILED) {
            if (!w->failure)
                w->failure = failure_ref(slot->failure);
            return FRIT_OK;
        }
        operand->slot = slot;
        operand->type = &slot->value.type;
    } else {
        operand->alias = alias_find(&stream->aliases, slot);
        if (!operand->alias) {
            w->unknown = tensor;
            w->unknown_at = i;
            return FRIT_BUSY;
        }
        operand->type = &operand->alias->value.type;
    }
    w->inputs[i].type = *operand->type;
    return FRIT_OK;
}

static frit_status resolve(struct call_state *w, frit_err *err)
{
    frit_status first = FRIT_OK;

    for (uint32_t i = 0; i < w->n_in; i++) {
        const frit_input in = call_state_in(w, i);
        frit_status st = FRIT_OK;

        w->inputs[i].kind = FRIT_OPERAND_ABSENT;
        w->operands[i] = (struct segment_input){.kind = FRIT_OPERAND_ABSENT};
        if (in.tensor) {
            st = resolve_tensor(w, i, in.tensor, first ? NULL : err);
        } else if (in.scalar.kind == INPUT_NULL) {
            st = FRIT_INVALID;
            if (!first)
                refuse(w, i, err);
        } else if (in.scalar.kind != FRIT_SCALAR_NONE) {
            w->inputs[i].kind = w->operands[i].kind = FRIT_OPERAND_SCALAR;
            w->inputs[i].scalar = in.scalar;
        }
        if (st == FRIT_BUSY)
            return st;
        if (st && !first)
            first = st;
    }
    return first ? first : w->failure ? w->failure->status : FRIT_OK;
}

/* After op_check, so that scalars have their final kind and type. */
static void finish_operands(struct call_state *w)
{
    for (uint32_t i = 0; i < w->n_in; i++) {
        struct segment_input *operand = &w->operands[i];

        if (w->inputs[i].kind != FRIT_OPERAND_SCALAR)
            continue;
        operand->given = call_state_in(w, i).scalar;
        operand->scalar = w->inputs[i].scalar;
        operand->dtype = w->inputs[i].type.dtype;
        /* Scalars of other roles keep their precision, and some are checked by their op. */
        operand->varies =
            operand->scalar.kind == FRIT_SCALAR_F64 && w->row->in[i].role == FRIT_ROLE_IN;
    }
}

static uint32_t sizeof_attrs(const struct call_state *w)
{
    return op_record(w->row)->size;
}

/* Whether the next op of this kind can be predicted; see fast.c. */
static bool is_simple(const struct call_state *w)
{
    return w->n_in <= PREDICT_IN && w->n_out > 0 && sizeof_attrs(w) <= SIMPLE_ATTRS;
}

static frit_status record(struct call_state *w, struct slot **out, frit_err *err)
{
    struct op_call checked = {
        .op = w->op, .n_in = w->n_in, .wanted = w->wanted, .in = w->inputs, .attrs = w->attrs};
    struct segment_call call = {.op = w->op,
                                .n_in = w->n_in,
                                .n_out = w->n_out,
                                .in = w->operands,
                                .attrs = w->attrs,
                                .types = w->types};
    struct segment *segment;
    uint64_t raw[SIMPLE_ATTRS / sizeof(uint64_t)];

    stream_settle_all(w->binding->stream);
    TRY(resolve(w, err));
    call.simple = is_simple(w);
    if (w->attrs && call.simple) {
        memcpy(raw, w->attrs, sizeof_attrs(w));
        call.raw = raw;
    }
    TRY(op_check(&checked, w->types, err));
    finish_operands(w);
    call.attrs_id = key_attrs(&w->binding->stream->walker, w->op, w->attrs);
    if (!stream_append(w->binding, &call, out))
        return fail(err, FRIT_NO_HOST_MEMORY, "%s: no memory to record it", w->row->name);
    segment = w->binding->stream->segment;
    w->full = segment->n_ops >= (uint64_t)w->device->config.max_ops;
    return FRIT_OK;
}

static frit_status record_locked(struct call_state *w, frit_tensor **out, frit_err *err)
{
    struct slot *slots[FRIT_OP_MAX_OUT] = {0};
    struct slot_home *home = &w->binding->stream->home;
    frit_status st;

    home_enter(home);
    st = record(w, slots, err);
    for (uint32_t i = 0; i < w->n_out; i++)
        out[i] = !st && slots[i] ? slot_handle(slots[i]) : NULL;
    home_leave_drop(home);
    return st;
}

/* Gives an operand an alias in the stream. */
static frit_status learn_operand(struct call_state *w, frit_err *err)
{
    struct slot *slot = stream_enter_settled(w->unknown, DRAIN_SHARE, err);
    struct failure *failure = NULL;
    frit_status st = slot ? alias_make(w->binding->stream, slot, &failure, err) : FRIT_INVALID;
    bool noted = failure;

    w->unknown = NULL;
    if (noted && !w->failure)
        w->failure = failure;
    else
        failure_unref(failure);
    if (st && !noted)
        return fail_context(err, "%s: %s (operand %u)", w->row->name,
                            operand_name(w, w->unknown_at), w->unknown_at);
    return st;
}

/* Repeats until every operand is of the stream or has an alias: each round adds one. */
static frit_status run_known(struct call_state *w, frit_tensor **out, frit_err *err)
{
    frit_status st = record_locked(w, out, err);

    while (st == FRIT_BUSY && w->unknown) {
        TRY(learn_operand(w, err));
        st = record_locked(w, out, err);
    }
    return st;
}

static void publish_error(struct call_state *w, const frit_err *err, frit_tensor **out)
{
    struct failure *failure = w->failure ? failure_ref(w->failure) : failure_create(err);

    for (uint32_t i = 0; i < w->n_out; i++)
        out[i] = w->wanted >> i & 1 ? tensor_failed(w->device, failure) : NULL;
    if (w->n_out == 0 && w->binding)
        stream_note_error(w->binding->stream, failure);
    if (w->row && w->row->cls == FRIT_CLASS_COLLECTIVE && w->n_out && w->binding)
        collective_refuse(w->binding->stream, w->op, w->attrs, failure);
    failure_unref(failure);
}

/* The number of a custom op is valid in the process, but the op belongs to one host. */
static frit_status check_offered(const struct call_state *w, frit_err *err)
{
    if (w->op < FRIT_OP_CUSTOM || registry_has_op(w->device->config.registry, w->op))
        return FRIT_OK;
    return fail(err, FRIT_INVALID, "%s: no plugin of the host of %s offers this op", w->row->name,
                w->device->entry->name);
}

/* `out` has room for FRIT_OP_MAX_OUT. */
static frit_status run(struct call_state *w, frit_tensor **out)
{
    HOLD_CANCEL;
    frit_err err = ERR_INIT;
    frit_status st = call_state_init(w, &err);

    if (!st)
        st = find_binding(w, &err);
    if (!st)
        st = check_offered(w, &err);
    if (!st)
        st = run_known(w, out, &err);
    if (st)
        publish_error(w, &err, out);
    call_state_fini(w);
    if (w->full)
        stream_drain(w->binding->stream, DRAIN_FULL);
    return st;
}

/* The outputs that a call wants: those that the row always has, and those that the caller takes. */
static uint32_t wanted_outputs(const struct api_call *call, const frit_op_info *row)
{
    uint32_t wanted = 1;

    for (uint32_t i = 1; i < FRIT_OP_MAX_OUT && row->out[i].name; i++) {
        if (call->more[i - 1] || row->out[i].role == FRIT_ROLE_OUT)
            wanted |= 1u << i;
    }
    return wanted;
}

static void call_state_of(const struct api_call *call, uint32_t wanted, struct call_state *w)
{
    *w = (struct call_state){.row = op_row(call->op),
                             .op = call->op,
                             .n_in = call->n_in,
                             .many = call->many,
                             .n_many = call->n_many,
                             .in = call->in,
                             .attrs = call->attrs,
                             .device = call->device,
                             .wanted = wanted};
    w->n_in += (uint32_t)w->n_many;
    w->n_out = op_n_out(w->row);
}

/* Records the call; `out` has space for FRIT_OP_MAX_OUT. */
static frit_status run_call(const struct api_call *call, uint32_t wanted, frit_tensor **out)
{
    struct call_state w;

    call_state_of(call, wanted, &w);
    return run(&w, out);
}

/* Outputs after the first go to the caller or are released. */
static void give_more(const struct api_call *call, frit_tensor **out, uint32_t n_out)
{
    for (uint32_t i = 1; i < n_out; i++) {
        if (call->more[i - 1])
            *call->more[i - 1] = out[i];
        else
            stream_disown(out[i]);
    }
}

frit_tensor *api_op_long(const struct api_call *call)
{
    const frit_op_info *row = op_row(call->op);
    const uint32_t wanted = wanted_outputs(call, row);
    frit_tensor *out[FRIT_OP_MAX_OUT] = {0};

    /* Others were tried by fast_op. */
    if ((!row->out[1].name && !call->n_many) || !fast_outputs(call, wanted, out))
        run_call(call, wanted, out);
    give_more(call, out, op_n_out(row));
    return out[0];
}

_Thread_local const struct op_observer *op_observer __attribute__((tls_model("initial-exec")));

frit_tensor *api_op_observed(const struct api_call *call)
{
    const struct op_observer *observer = op_observer;
    const frit_op_info *row = op_row(call->op);
    uint32_t wanted = wanted_outputs(call, row);
    frit_tensor *out[FRIT_OP_MAX_OUT] = {0};
    void *seen = observer->before(call, &wanted);

    if (!fast_outputs(call, wanted, out))
        run_call(call, wanted, out);
    if (seen)
        observer->after(seen, out, op_n_out(row));
    give_more(call, out, op_n_out(row));
    return out[0];
}

frit_status api_op_status(const struct api_call *call)
{
    frit_tensor *out[FRIT_OP_MAX_OUT] = {0};

    return run_call(call, wanted_outputs(call, op_row(call->op)), out);
}

/* ---- the generic call ---- */

/* Copies the caller's attributes, whose record may be shorter, to a record of full size. */
static frit_status copy_attrs(const frit_call *call, const frit_op_info *row, unsigned char *out,
                              size_t capacity, frit_err *err)
{
    const frit_record_info *record = op_record(row);
    uint64_t size = record->size, given = 0;

    if (size > capacity)
        return fail(err, FRIT_INTERNAL, "%s: its record has %u bytes", row->name, record->size);
    memset(out, 0, size);
    if (call->attrs)
        memcpy(&given, call->attrs, sizeof(given));
    if (call->attrs && given < sizeof(given))
        return fail(err, FRIT_INVALID,
                    "%s: struct_size of the attributes is %llu; set it to their sizeof", row->name,
                    (unsigned long long)given);
    if (call->attrs)
        memcpy(out, call->attrs, given < size ? given : size);
    memcpy(out, &size, sizeof(size));
    return FRIT_OK;
}

static bool call_is_sized(const frit_call *call)
{
    return call && call->struct_size >= FRIT_END_OF(frit_call, attrs);
}

static frit_status check_generic(const frit_call *call, frit_tensor **outputs, uint64_t n_outputs,
                                 frit_err *err)
{
    if (!call_is_sized(call))
        return fail(err, FRIT_INVALID, "frit_op: the call is NULL or its struct_size is not set");
    if (!op_row(call->op))
        return fail(err, FRIT_INVALID, "frit_op: there is no op %u", call->op);
    if (call->n_in && !call->in)
        return fail(err, FRIT_INVALID, "frit_op: %u operands at NULL", call->n_in);
    if (n_outputs && !outputs)
        return fail(err, FRIT_INVALID, "%s: room for %llu outputs at NULL", op_row(call->op)->name,
                    (unsigned long long)n_outputs);
    return FRIT_OK;
}

/* Fills outputs beyond those of the op, or all outputs of a refused call, with an error tensor. */
static void give_outputs(frit_device *device, frit_tensor **out, uint64_t n_out,
                         const frit_err *err, frit_tensor **outputs, uint64_t n_outputs)
{
    for (uint64_t i = 0; i < n_outputs; i++)
        outputs[i] = i < n_out && out[i] ? out[i] : tensor_error(device, err);
    for (uint64_t i = n_outputs; i < n_out; i++)
        stream_disown(out[i]);
}

void api_refuse(frit_device *device, const frit_input *in, uint32_t n_in, frit_tensor **outputs,
                uint64_t n_outputs, const frit_err *err)
{
    const struct call_state w = {.in = in, .n_in = in ? n_in : 0};
    frit_tensor *none[1] = {NULL};

    for (uint32_t i = 0; i < w.n_in; i++)
        consume(&w, i);
    if (!outputs || !n_outputs)
        stream_disown(tensor_error(device, err));
    give_outputs(device, none, 0, err, outputs, outputs ? n_outputs : 0);
}

static void run_generic(struct call_state *w, frit_tensor **out)
{
    const struct op_observer *observer = op_observer;
    const struct api_call call = {
        .op = w->op, .n_in = w->n_in, .device = w->device, .in = w->in, .attrs = w->attrs};
    void *seen = observer ? observer->before(&call, &w->wanted) : NULL;

    if (!fast_outputs(&call, w->wanted, out))
        run(w, out);
    if (seen)
        observer->after(seen, out, w->n_out);
}

void frit_op(frit_device *device, const frit_call *call, frit_tensor **outputs, uint64_t n_outputs)
{
    uint64_t attrs[64];
    frit_tensor *out[FRIT_OP_MAX_OUT] = {0};
    struct call_state w = {.device = device};
    frit_status st;
    frit_err err;

    err_init(&err);
    st = check_generic(call, outputs, n_outputs, &err);
    if (!st)
        st = copy_attrs(call, op_row(call->op), (unsigned char *)attrs, sizeof(attrs), &err);
    if (st) {
        bool sized = call_is_sized(call);

        api_refuse(device, sized ? call->in : NULL, sized ? call->n_in : 0, outputs, n_outputs,
                   &err);
        return;
    }
    w.row = op_row(call->op);
    w.n_out = op_n_out(w.row);
    w.op = call->op;
    w.n_in = call->n_in;
    w.in = call->in;
    w.attrs = attrs;
    for (uint32_t i = 0; i < w.n_out; i++)
        w.wanted |= (uint32_t)(i < n_outputs || w.row->out[i].role == FRIT_ROLE_OUT) << i;
    run_generic(&w, out);
    if (n_outputs > w.n_out)
        fail(&err, FRIT_INVALID, "%s: has %u outputs, room was given for %llu", w.row->name,
             w.n_out, (unsigned long long)n_outputs);
    give_outputs(device, out, w.n_out, &err, outputs, n_outputs);
}
