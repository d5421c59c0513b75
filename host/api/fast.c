/* SPDX-License-Identifier: Apache-2.0 */
/* The fast path of a call: the op is the predicted one, because the segment recorded it at this
 * position last time.  Handles, operand types, attributes and kinds of scalars are compared with
 * that op; the op table, the checks and the key are not needed.  Any other call takes api_op_long.
 */
#include "api/fast.h"

#include <math.h>
#include <string.h>

#include "api/call.h"
#include "device/device.h"
#include "device/watch.h"
#include "record/alias.h"
#include "record/binding.h"
#include "record/predict.h"
#include "record/segments.h"
#include "record/stream.h"
#include "run/drain.h"

/* Operands of a call, resolved. */
struct operands {
    struct segment_input in[PREDICT_IN];
    struct slot *taken[PREDICT_IN]; /* slots of the stream that the call takes an owner of */
    uint32_t n_taken;
};

/* ---- resolving ---- */

/* Adds a slot to those that the call releases, once.  Returns true. */
static inline bool take(struct operands *o, struct slot *slot)
{
    for (uint32_t k = 0; k < o->n_taken; k++) {
        if (o->taken[k] == slot)
            return true;
    }
    o->taken[o->n_taken++] = slot;
    return true;
}

/* A tensor with aliases is left to api_op_long, which drops them outside of the lock. */
static inline bool resolve_slot(struct slot *slot, frit_tensor *tensor, struct operands *o,
                                uint32_t i)
{
    struct segment_input *in = &o->in[i];

    if (slot->state == SLOT_FAILED || (handle_taken(tensor) && slot->aliases))
        return false;
    in->slot = slot;
    in->alias = NULL;
    in->type = &slot->value.type;
    return !handle_taken(tensor) || take(o, slot);
}

static bool resolve_tensor(struct stream *stream, frit_tensor *tensor, struct operands *o,
                           uint32_t i)
{
    struct slot *slot = slot_of(tensor);
    struct segment_input *in = &o->in[i];

    if (!slot || !slot_is(slot, tensor))
        return false;
    in->kind = FRIT_OPERAND_TENSOR;
    if (atomic_load_explicit(&slot->home, memory_order_relaxed) == &stream->home)
        return resolve_slot(slot, tensor, o, i);
    if (handle_taken(tensor))
        return false;
    in->slot = NULL;
    in->alias = alias_find(&stream->aliases, slot);
    if (!in->alias)
        return false;
    in->type = &in->alias->value.type;
    return true;
}

/* ---- scalars ---- */

/* A double where a float operand is expected: rounded as op_check does.  Other kinds take
 * api_op_long. */
static bool convert(const frit_scalar *from, uint32_t dtype, struct segment_input *in)
{
    double value;

    if (from->kind != FRIT_SCALAR_F64 || (dtype != FRIT_F32 && dtype != FRIT_F64))
        return false;
    in->scalar.kind = FRIT_SCALAR_F64;
    in->scalar.reserved = 0;
    in->scalar.bits = from->bits;
    in->dtype = dtype;
    if (dtype == FRIT_F32) {
        memcpy(&value, &from->bits, sizeof(value));
        if (isfinite(value) && !isfinite((float)value))
            return false; /* op_check reports it */
        value = (double)(float)value;
        memcpy(&in->scalar.bits, &value, sizeof(value));
    }
    return true;
}

/* ---- comparing with the predicted op ---- */

/* Writes a new scalar to the predicted op at once; if the call turns out to be another op, the
 * predicted one is not recorded. */
static inline bool is_predicted_scalar(struct recorded_input *known, const frit_scalar *given)
{
    struct segment_input in;

    if (!known->varies)
        return given->kind == known->given.kind && given->bits == known->given.bits;
    if (!convert(given, known->dtype, &in))
        return false;
    known->scalar.bits = in.scalar.bits;
    return true;
}

/* An operand that no op of the segment has used yet. */
static inline __attribute__((always_inline)) bool
is_predicted_new(struct stream *stream, const struct recorded_op *known, frit_tensor *tensor,
                 struct operands *o, uint32_t i, uint32_t *n_new)
{
    const struct segment *segment = stream->segment;
    const struct segment_input *in = &o->in[i];

    return resolve_tensor(stream, tensor, o, i) &&
           (in->slot ? in->slot->epoch : in->alias->epoch) != segment->epoch &&
           predict_new(segment, known, o->in, i, n_new);
}

/* An operand that the segment has numbered. */
static inline bool is_predicted_recorded(const struct segment *segment, uint32_t number,
                                         frit_tensor *tensor, struct operands *o)
{
    const struct seg_value *value = &segment->values[number];

    if (!predict_recorded(value, tensor))
        return false;
    return !handle_taken(tensor) || (value->slot && !value->slot->aliases && take(o, value->slot));
}

static inline __attribute__((always_inline)) bool
is_predicted(struct stream *stream, struct recorded_op *known, const frit_input *given,
             struct operands *o, uint32_t i, uint32_t *n_new)
{
    const struct segment *segment = stream->segment;
    struct recorded_input *in = &known->in[i];

    if (!given->tensor)
        return in->kind == FRIT_OPERAND_SCALAR
                   ? is_predicted_scalar(in, &given->scalar)
                   : in->kind == FRIT_OPERAND_ABSENT && given->scalar.kind == FRIT_SCALAR_NONE;
    if (in->kind != FRIT_OPERAND_TENSOR)
        return false;
    if (in->value < segment->n_values)
        return is_predicted_recorded(segment, in->value, given->tensor, o);
    return is_predicted_new(stream, known, given->tensor, o, i, n_new);
}

enum { USUAL = 3 }; /* operands, of most ops */

static __attribute__((noinline)) bool rest_is_predicted(struct stream *stream,
                                                        struct recorded_op *known,
                                                        const struct api_call *call,
                                                        struct operands *o, uint32_t *n_new)
{
    for (uint32_t i = USUAL; i < known->n_in; i++) {
        if (!is_predicted(stream, known, &call->in[i], o, i, n_new))
            return false;
    }
    return true;
}

static inline __attribute__((always_inline)) bool are_predicted(struct stream *stream,
                                                                struct recorded_op *known,
                                                                const struct api_call *call,
                                                                struct operands *o, uint32_t *n_new)
{
#pragma GCC unroll 3
    for (uint32_t i = 0; i < USUAL; i++) {
        if (i == known->n_in)
            return true;
        if (!is_predicted(stream, known, &call->in[i], o, i, n_new))
            return false;
    }
    return known->n_in == USUAL || rest_is_predicted(stream, known, call, o, n_new);
}

/* An op of other sections may have another key: what a composite op runs as depends on them. */
static inline __attribute__((always_inline)) bool
is_predicted_call(struct binding *binding, struct recorded_op *known, const struct api_call *call,
                  struct operands *o, uint32_t *n_new)
{
    struct stream *stream = binding->stream;

    *n_new = 0;
    o->n_taken = 0;
    return known->op == call->op && known->n_in == call->n_in && known->simple &&
           (!call->device || call->device == binding->device) &&
           known->context == binding->context && are_predicted(stream, known, call, o, n_new) &&
           (!call->attrs || !known->raw_bytes ||
            memcmp(known->raw, call->attrs, known->raw_bytes) == 0);
}

/* Slots for the outputs; false: memory is short, or the predicted op has others. */
static __attribute__((noinline)) bool create_outputs(struct binding *binding,
                                                     const struct recorded_op *known,
                                                     uint32_t wanted, struct slot **out)
{
    const struct segment *segment = binding->stream->segment;

    for (uint32_t k = 0; k < known->n_out; k++) {
        if ((known->out[k] != SEGMENT_EXTERNAL) != (wanted >> k & 1))
            return false;
    }
    for (uint32_t k = 0; k < known->n_out; k++) {
        out[k] = NULL;
        if (!(wanted >> k & 1))
            continue;
        out[k] = binding_create_output(binding, known->op, &segment->types[known->out[k]]);
        for (uint32_t j = 0; !out[k] && j < k; j++) {
            if (out[j] && slot_disown(out[j]))
                slot_end(out[j]);
        }
        if (!out[k])
            return false;
    }
    return true;
}

/* As a mask of outputs: the op has one, whatever the call takes. */
enum { ONLY_OUTPUT = 0 };

/* Inside the lock.  False: it is another op, memory is short, or the device is watched (inspector,
 * trace), which needs the long path. */
static inline __attribute__((always_inline)) bool confirm(struct binding *binding,
                                                          const struct api_call *call,
                                                          uint32_t wanted, struct operands *o,
                                                          struct slot **out)
{
    struct stream *stream = binding->stream;
    struct segment *segment = stream->segment;
    struct recorded_op *known = segment_predicted(segment);
    uint32_t n_new;

    if (!known || watch_is_on(&stream->device->watch) ||
        (segment->n_ops == 0 && !stream->has_ordinal) || /* stream_append gives one */
        !is_predicted_call(binding, known, call, o, &n_new))
        return false;
    if (__builtin_expect(known->n_out > 1, 0)) {
        if (wanted == ONLY_OUTPUT || !create_outputs(binding, known, wanted, out))
            return false;
        for (uint32_t k = 1; k < known->n_out; k++) {
            if (known->out[k] != SEGMENT_EXTERNAL)
                predict_set(segment, out[k], known->out[k]);
        }
    } else {
        out[0] = binding_create_output(binding, call->op, &segment->types[known->out[0]]);
        if (!out[0])
            return false;
    }
    segment->context |= known->context;
    if (known->seeded)
        stream_take_numbers(stream, &known->seed, &known->counter);
    if (n_new)
        predict_set_operands(segment, known, o->in);
    predict_confirm(segment, known, out[0], segment->on_prediction || stream_is_settled(stream));
    stream_count(&stream->count.ops, 1);
    return true;
}

/* ---- the call ---- */

/* Inside the lock.  If the first op of a segment is not the predicted one, it may be the first op
 * of another known segment.  Returns true if the stream switched to such a segment, which is then
 * to be tried.  `tried`: the segment before the switch; NULL in the first round. */
static bool try_other(struct stream *stream, struct segment **tried)
{
    struct segment *segment = stream->segment, *other;

    if (segment->n_ops)
        return false;
    if (!*tried)
        *tried = segment;
    other = segments_other(&stream->segments, *tried, segment == *tried ? NULL : segment);
    stream_switch(stream, other ? other : *tried);
    return other;
}

/* Inside the lock. */
static inline __attribute__((always_inline)) bool confirm_or_not(struct binding *binding,
                                                                 const struct api_call *call,
                                                                 uint32_t wanted, struct slot **out)
{
    struct segment *tried = NULL;
    struct operands o;
    bool confirmed;

    stream_settle(binding->stream);
    do
        confirmed = confirm(binding, call, wanted, &o, out);
    while (!confirmed && try_other(binding->stream, &tried));
    if (!confirmed)
        return false;
    for (uint32_t i = 0; i < o.n_taken; i++)
        stream_disown_locked(binding->stream, o.taken[i]);
    return true;
}

static inline void leave(struct slot_home *home)
{
    if (home->dying)
        home_drop(home);
    else
        owner_lock_leave(&home->lock);
}

frit_tensor *fast_op(const struct api_call *call)
{
    struct binding *binding = binding_last;
    struct slot *out[FRIT_OP_MAX_OUT];
    struct slot_home *home;
    frit_tensor *tensor = NULL;

    if (!binding || call->n_many || !home_is_mine(&binding->stream->home))
        return NULL;
    home = &binding->stream->home;
    owner_lock_enter(&home->lock);
    if (confirm_or_not(binding, call, ONLY_OUTPUT, out))
        tensor = slot_handle(out[0]);
    leave(home);
    return tensor;
}

/* The call with its MANY operands among the others; false: there are too many. */
static bool in_one_list(const struct api_call *call, frit_input *in, struct api_call *out)
{
    if (call->n_many + call->n_in > PREDICT_IN || !call->many)
        return false;
    for (uint64_t i = 0; i < call->n_many; i++)
        in[i] = api_tensor(call->many[i]);
    for (uint32_t i = 0; i < call->n_in; i++)
        in[call->n_many + i] = call->in[i];
    *out = *call;
    out->n_in += (uint32_t)call->n_many;
    out->n_many = 0;
    out->in = in;
    return true;
}

bool fast_outputs(const struct api_call *call, uint32_t wanted, frit_tensor **out)
{
    struct binding *binding = binding_last;
    struct slot *slots[FRIT_OP_MAX_OUT] = {0};
    frit_input in[PREDICT_IN];
    struct slot_home *home;
    struct api_call flat;
    bool confirmed;

    if (!binding || !home_is_mine(&binding->stream->home))
        return false;
    if (call->n_many) {
        if (!in_one_list(call, in, &flat))
            return false;
        call = &flat;
    }
    home = &binding->stream->home;
    owner_lock_enter(&home->lock);
    confirmed = confirm_or_not(binding, call, wanted, slots);
    for (uint32_t k = 0; k < FRIT_OP_MAX_OUT && confirmed; k++)
        out[k] = wanted >> k & 1 ? slot_handle(slots[k]) : NULL;
    leave(home);
    return confirmed;
}
