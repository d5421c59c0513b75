/* SPDX-License-Identifier: Apache-2.0 */
/* What op_check says depends on the row, the operands' types, which of them are scalars, and the
 * attributes.  A small table per stream, indexed by a hash and compared in full, remembers it; the
 * numbers of interned attributes go stale with the walker's generation.  Values of scalars are
 * converted each time. */
#include "api/fast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/host.h"
#include "record/predict.h"

enum { SETS = 64, WAYS = 2, MOST_IN = 3, MOST_ATTRS = 232 };

struct memo_entry {
    uint32_t op;
    uint32_t n_in;
    uint32_t attrs_id;
    uint32_t attrs_bytes;
    uint64_t serial; /* of the walker's generation */
    uint32_t kind[MOST_IN];
    struct op_type in[MOST_IN]; /* SCALAR: the type it is used as */
    struct op_type out;
    unsigned char raw[MOST_ATTRS];
    unsigned char checked[MOST_ATTRS];
};

struct memo {
    struct memo_entry entries[SETS][WAYS]; /* the newest of a set first */
};

/* The operands of a call as they are resolved. */
struct operands {
    struct segment_input in[MOST_IN];
    struct slot *taken[MOST_IN]; /* slots of the stream that the call takes an owner of */
    uint32_t n_taken;
};

/* Of the row, and of kind and outer dims of each operand. */
struct place {
    uint64_t mix;
};

static void place_add(struct place *place, uint32_t kind, const struct op_type *type)
{
    uint64_t mix = kind;

    if (kind == FRIT_OPERAND_TENSOR && type->rank)
        mix += (uint64_t)(type->dims[0] * 5 + type->dims[type->rank - 1] * 3 + type->rank);
    place->mix = (place->mix + mix) * 0x9e3779b97f4a7c15u;
}

static uint32_t place_set(const struct place *place)
{
    return (uint32_t)(place->mix >> 58);
}

_Static_assert(SETS == 64, "the hash has six bits");

static bool same_call(const struct memo_entry *entry, const struct api_call *call,
                      const struct operands *operands, uint64_t serial)
{
    if (entry->op != call->op || entry->n_in != call->n_in || entry->serial != serial)
        return false;
    for (uint32_t i = 0; i < call->n_in; i++) {
        const struct segment_input *in = &operands->in[i];

        if (entry->kind[i] != in->kind ||
            (in->kind == FRIT_OPERAND_TENSOR && !op_type_equal(&entry->in[i], in->type)))
            return false;
    }
    return !call->attrs || memcmp(entry->raw, call->attrs, entry->attrs_bytes) == 0;
}

/* ---- resolving ---- */

/* Remembers a slot that the call takes an owner of, once.  True. */
static inline bool take(struct operands *o, struct slot *slot)
{
    for (uint32_t k = 0; k < o->n_taken; k++) {
        if (o->taken[k] == slot)
            return true;
    }
    o->taken[o->n_taken++] = slot;
    return true;
}

/* What has aliases is taken on the long way, which drops them outside of the lock. */
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

static bool resolve(struct stream *stream, const struct api_call *call, struct operands *o)
{
    bool tensors = false;

    o->n_taken = 0;
    for (uint32_t i = 0; i < call->n_in; i++) {
        const frit_input *in = &call->in[i];

        if (in->tensor) {
            if (!resolve_tensor(stream, in->tensor, o, i))
                return false;
            tensors = true;
        } else if (in->scalar.kind - 1u < FRIT_SCALAR_U64) {
            o->in[i].kind = FRIT_OPERAND_SCALAR;
            o->in[i].type = NULL;
        } else {
            return false;
        }
    }
    return tensors;
}

/* A double in the place of a float tensor: rounded as op_check does.  Others take the long way. */
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
            return false; /* op_check tells */
        value = (double)(float)value;
        memcpy(&in->scalar.bits, &value, sizeof(value));
    }
    return true;
}

static bool convert_all(const struct api_call *call, const struct memo_entry *entry,
                        struct operands *o)
{
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (o->in[i].kind == FRIT_OPERAND_SCALAR &&
            !convert(&call->in[i].scalar, entry->in[i].dtype, &o->in[i]))
            return false;
    }
    return true;
}

/* ---- the same op as the time before ---- */

/* The number of a scalar operand goes to the record at once: where the op is another one after all
 * the record is not met. */
static inline bool is_predicted_scalar(struct recorded_input *known, const frit_scalar *given)
{
    struct segment_input in;

    if (known->kind != FRIT_OPERAND_SCALAR || !convert(given, known->dtype, &in))
        return false;
    known->scalar.bits = in.scalar.bits;
    return true;
}

/* An operand that is new in the segment. */
static bool is_predicted_new(struct stream *stream, const struct recorded_op *known,
                             frit_tensor *tensor, struct operands *o, uint32_t i, uint32_t *n_new)
{
    const struct segment *segment = stream->segment;
    const struct segment_input *in = &o->in[i];

    return resolve_tensor(stream, tensor, o, i) &&
           (in->slot ? in->slot->epoch : in->alias->epoch) != segment->epoch &&
           predict_new(segment, known, o->in, i, n_new);
}

/* One that stands in the segment. */
static inline bool is_predicted_recorded(const struct segment *segment, uint32_t number,
                                         frit_tensor *tensor, struct operands *o)
{
    const struct seg_value *value = &segment->values[number];

    if (!predict_recorded(value, tensor))
        return false;
    return !handle_taken(tensor) || (value->slot && !value->slot->aliases && take(o, value->slot));
}

static inline bool is_predicted(struct stream *stream, struct recorded_op *known,
                                const frit_input *given, struct operands *o, uint32_t i,
                                uint32_t *n_new)
{
    const struct segment *segment = stream->segment;
    struct recorded_input *in = &known->in[i];

    if (!given->tensor)
        return is_predicted_scalar(in, &given->scalar);
    if (in->kind != FRIT_OPERAND_TENSOR)
        return false;
    if (in->value < segment->n_values)
        return is_predicted_recorded(segment, in->value, given->tensor, o);
    return is_predicted_new(stream, known, given->tensor, o, i, n_new);
}

static inline bool is_predicted_call(struct stream *stream, struct recorded_op *known,
                                     const struct api_call *call, struct operands *o,
                                     uint32_t *n_new)
{
    *n_new = 0;
    o->n_taken = 0;
    if (known->op != call->op || known->n_in != call->n_in || !known->simple)
        return false;
#pragma GCC unroll 3
    for (uint32_t i = 0; i < MOST_IN; i++) {
        if (i == known->n_in)
            break;
        if (!is_predicted(stream, known, &call->in[i], o, i, n_new))
            return false;
    }
    return !call->attrs || memcmp(known->raw, call->attrs, known->raw_bytes) == 0;
}

/* Inside the lock.  NULL: it is another op, or there is no memory.  Who watches sees every op on
 * the longer way. */
static inline __attribute__((always_inline)) struct slot *
confirm(struct binding *binding, const struct api_call *call, struct operands *o)
{
    struct stream *stream = binding->stream;
    struct segment *segment = stream->segment;
    struct recorded_op *known = segment_predicted(segment);
    struct slot *out;
    uint32_t n_new;

    if (!known || watch_is_on(&stream->device->watch) ||
        !is_predicted_call(stream, known, call, o, &n_new))
        return NULL;
    out = binding_create_output(binding, call->op, &segment->types[known->out[0]]);
    if (!out)
        return NULL;
    segment->persistent |= known->persistent = binding->persistent > 0;
    if (n_new)
        predict_set_operands(segment, known, o->in);
    predict_confirm(segment, known, out, segment->on_prediction || stream_is_settled(stream));
    stream_count(&stream->count.ops, 1);
    return out;
}

/* ---- recording ---- */

static const struct memo_entry *recall(struct stream *stream, const struct api_call *call,
                                       struct operands *o)
{
    struct place place = {call->op};
    const struct memo_entry *set;

    if (!stream->memo || !fast_takes(call) || !resolve(stream, call, o))
        return NULL;
    for (uint32_t i = 0; i < call->n_in; i++)
        place_add(&place, o->in[i].kind, o->in[i].type);
    set = stream->memo->entries[place_set(&place)];
    for (uint32_t way = 0; way < WAYS; way++) {
        if (same_call(&set[way], call, o, stream->walker.serial))
            return convert_all(call, &set[way], o) ? &set[way] : NULL;
    }
    return NULL;
}

static struct slot *append(struct binding *binding, const struct api_call *call, struct operands *o)
{
    const struct memo_entry *entry = recall(binding->stream, call, o);
    struct segment_call recorded = {
        .op = call->op, .n_in = call->n_in, .n_out = 1, .in = o->in, .simple = true};
    struct slot *out;

    if (!entry)
        return NULL;
    recorded.attrs_id = entry->attrs_id;
    recorded.types = &entry->out;
    if (call->attrs) {
        recorded.raw = call->attrs;
        recorded.attrs = entry->checked;
    }
    return stream_append(binding, &recorded, &out) ? out : NULL;
}

/* Inside the lock: the first op of a segment that is not the predicted one may be the first of
 * another segment.  True: that is recorded into now, and is to be tried.  `tried` is what was
 * recorded into before, NULL at the first time. */
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

/* Inside the lock: what is not met, or is but there was no memory. */
static struct slot *record(struct binding *binding, const struct api_call *call, struct operands *o)
{
    struct stream *stream = binding->stream;

    stream_settle_all(stream);
    if (stream->segment->n_ops + 1 >= (uint64_t)stream->device->config.max_ops)
        return NULL;
    return append(binding, call, o);
}

/* Inside the lock. */
static inline __attribute__((always_inline)) frit_tensor *
confirm_or_record(struct binding *binding, const struct api_call *call)
{
    struct segment *tried = NULL;
    struct operands o;
    struct slot *out;

    stream_settle(binding->stream);
    do
        out = confirm(binding, call, &o);
    while (!out && try_other(binding->stream, &tried));
    if (!out)
        out = record(binding, call, &o);
    if (!out)
        return NULL;
    for (uint32_t i = 0; i < o.n_taken; i++)
        stream_disown_inside(binding->stream, o.taken[i]);
    return slot_handle(out);
}

frit_tensor *fast_op(const struct api_call *call)
{
    struct binding *binding = binding_used;
    struct slot_home *home;
    frit_tensor *out;

    if (!binding || !home_is_mine(&binding->stream->home))
        return NULL;
    home = &binding->stream->home;
    owner_lock_enter(&home->lock);
    out = confirm_or_record(binding, call);
    if (home->dying)
        home_drop(home);
    else
        owner_lock_leave(&home->lock);
    return out;
}

bool fast_takes(const struct api_call *call)
{
    return call->n_in - 1u < MOST_IN && call->n_many == 0;
}

void fast_learn(struct stream *stream, const struct fast_seen *seen)
{
    const frit_op_info *row = op_row(seen->op);
    uint32_t bytes = op_record(row)->size;
    struct place place = {seen->op};
    struct memo_entry *entry;

    if (op_n_out(row) != 1 || (seen->attrs && bytes > MOST_ATTRS))
        return;
    for (uint32_t i = 0; i < seen->n_in; i++) {
        if (row->traits & FRIT_OP_SEEDED || row->in[i].role != FRIT_ROLE_IN ||
            seen->in[i].kind == FRIT_OPERAND_ABSENT)
            return;
        place_add(&place, seen->in[i].kind, &seen->in[i].type);
    }
    if (!stream->memo)
        stream->memo = calloc(1, sizeof(*stream->memo));
    if (!stream->memo)
        return;
    entry = stream->memo->entries[place_set(&place)];
    memmove(entry + 1, entry, (WAYS - 1) * sizeof(*entry));
    entry->op = seen->op;
    entry->n_in = seen->n_in;
    entry->attrs_id = seen->attrs_id;
    entry->serial = stream->walker.serial;
    entry->out = *seen->out;
    for (uint32_t i = 0; i < seen->n_in; i++) {
        entry->kind[i] = seen->in[i].kind;
        entry->in[i] = seen->in[i].type;
    }
    entry->attrs_bytes = seen->attrs ? bytes : 0;
    if (seen->attrs) {
        memcpy(entry->raw, seen->raw, bytes);
        memcpy(entry->checked, seen->attrs, bytes);
    }
}
