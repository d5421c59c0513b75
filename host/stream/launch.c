/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is only needed until the submit returned lies in the batch's arena; a workspace
 * is dead at once, so that the next launch of the batch may use it after a BARRIER. */
#include "stream/launch.h"

#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "stream/fallback.h"
#include "stream/label.h"
#include "stream/program.h"
#include "stream/replay.h"
#include "stream/words.h"

struct launch {
    const struct launch_call *call;
    struct frame *frame;
    struct batch *batch;
    const struct value *given; /* the only operand, where it is no value of the frame */
    struct value *in;  /* the frame's, or a copy under the strides that the program wanted */
    struct value *out; /* types and layouts; their buffers once they are placed */
    bool *copied;      /* by input */
    bool wait;         /* for a compile */
    struct words words;
    unsigned char *key; /* struct head, then the signature's arguments, then the scalar classes */
    size_t key_bytes;
    struct prepared *prepared; /* one reference */
    frit_launch *launch;
    frit_arg *args;
    struct batch_range *ranges;
    uint32_t n_ranges;
};

/* What of a signature is not an argument or a class. */
struct head {
    uint32_t candidate, n_in, n_out, n_scalars, index_width, reserved[3];
};

static uint64_t device_align(const struct launch *l)
{
    const frit_device_info *info = l->frame->device->info;

    return info->align_bytes ? info->align_bytes : 64;
}

/* ---- the signature ---- */

/* The bytes a value's elements lie in. */
struct extent {
    uint64_t first, bytes; /* first: from the start of the buffer */
    uint64_t origin;       /* of element 0,0,.. from first */
};

static struct extent value_extent(const struct value *value)
{
    int64_t low, high;

    layout_span(&value->type, &value->layout, &low, &high);
    if (op_elements(&value->type) == 0)
        return (struct extent){0};
    return (struct extent){.first = frit_storage_bytes(value->type.dtype, low),
                           .bytes = frit_storage_bytes(value->type.dtype, high - low + 1),
                           .origin =
                               frit_storage_bytes(value->type.dtype, value->layout.offset - low)};
}

static uint32_t align_log2(const struct launch *l, uint64_t offset)
{
    return (uint32_t)__builtin_ctzll(offset | device_align(l));
}

static void sign_value(const struct launch *l, const struct value *value, uint64_t flags,
                       frit_arg_sig *out)
{
    struct extent extent = value_extent(value);
    const struct buffer *buffer = value->buffer;

    out->dtype = value->type.dtype;
    out->rank = value->type.rank;
    out->flags = flags;
    if (buffer && buffer->offset + extent.first == 0)
        out->flags |= FRIT_ARG_START;
    out->align_log2 = align_log2(l, buffer ? buffer->offset + extent.first : 0);
    if (buffer && extent.first + extent.bytes == buffer->bytes)
        out->tail = buffer->tail;
    for (uint32_t d = 0; d < value->type.rank; d++) {
        out->dims[d] = value->type.dims[d];
        out->strides[d] = value->layout.strides[d];
    }
}

static const struct value *value_at(const struct launch *l, uint32_t index)
{
    return index < l->call->n_in ? &l->in[index] : &l->out[index - l->call->n_in];
}

static uint32_t index_width(const struct launch *l)
{
    for (uint32_t i = 0; i < l->call->n_in + l->call->n_out; i++) {
        const struct value *v = value_at(l, i);
        int64_t low, high;

        if (v->type.dtype == FRIT_NO_DTYPE)
            continue;
        layout_span(&v->type, &v->layout, &low, &high);
        if (high - low > INT32_MAX)
            return 64;
    }
    return 32;
}

/* Outputs are signed as the host would give them: dense, from the start of a buffer. */
static void sign(struct launch *l, uint32_t candidate, frit_signature *out)
{
    const struct launch_call *call = l->call;
    uint32_t n = call->n_in + call->n_out;
    struct head head = {.candidate = candidate,
                        .n_in = call->n_in,
                        .n_out = call->n_out,
                        .n_scalars = l->words.n_scalars,
                        .index_width = index_width(l)};
    frit_arg_sig *args = (frit_arg_sig *)(void *)(l->key + sizeof(head));

    memset(args, 0, n * sizeof(*args));
    for (uint32_t i = 0; i < n; i++) {
        if (value_at(l, i)->type.dtype != FRIT_NO_DTYPE)
            sign_value(l, value_at(l, i), i < call->n_in ? FRIT_ARG_READ : FRIT_ARG_WRITE,
                       &args[i]);
    }
    memcpy(l->key, &head, sizeof(head));
    memcpy(args + n, l->words.classes, l->words.n_scalars);
    *out = (frit_signature){.struct_size = sizeof(*out),
                            .n_in = call->n_in,
                            .n_out = call->n_out,
                            .arg_stride = sizeof(frit_arg_sig),
                            .n_scalars = l->words.n_scalars,
                            .index_width = head.index_width,
                            .args = args,
                            .scalar_classes = l->words.classes};
}

/* ---- prepare ---- */

static frit_status ask(struct launch *l, uint32_t candidate, frit_err *err)
{
    frit_signature signature;
    struct question question = {
        .candidate = candidate, .signature = &signature, .key = l->key, .wait = l->wait};

    prepared_unref(l->prepared);
    l->prepared = NULL;
    sign(l, candidate, &signature);
    question.key_bytes = l->key_bytes;
    TRY(answers_get(l->frame->device, l->call->answers, &question, &l->prepared, err));
    if (l->prepared->status < 0)
        return fail(err, l->prepared->status, "%s", l->prepared->text);
    return l->prepared->status;
}

/* Until the candidate is content with its operands' strides; each may be asked for once. */
static frit_status prepare_candidate(struct launch *l, uint32_t candidate, frit_err *err)
{
    for (uint32_t round = 0; round <= l->call->n_in; round++) {
        frit_status st = ask(l, candidate, err);
        struct value copy;
        uint32_t arg;

        if (st != FRIT_PREPARE_RELAYOUT)
            return st;
        arg = l->prepared->spec.wanted_arg;
        if (l->copied[arg])
            break;
        TRY(launch_copy(l->frame, &l->in[arg], l->prepared->spec.wanted_strides, &copy, err));
        l->in[arg] = copy;
        l->copied[arg] = true;
    }
    return fail(err, FRIT_INTERNAL,
                "%s: prepare asks for a relayout again, or for one that cannot be",
                l->frame->device->entry->name);
}

static void take_operands(struct launch *l)
{
    for (uint32_t i = 0; i < l->call->n_in; i++) {
        if (l->given)
            l->in[i] = *l->given;
        else if (l->call->in[i] != GRAPH_NO_VALUE)
            l->in[i] = l->frame->values[l->call->in[i]].value;
        l->copied[i] = l->given;
    }
}

/* The first candidate that takes the signature; FRIT_BUSY if none does yet. */
static frit_status prepare_first(struct launch *l, frit_err *err)
{
    uint32_t n = answers_n_candidates(l->call->answers);
    struct frame_mark mark = frame_mark(l->frame);
    frit_err later = ERR_INIT;
    frit_status st = FRIT_OK;
    bool busy = false;

    for (uint32_t candidate = 0; candidate < n; candidate++) {
        take_operands(l);
        st = prepare_candidate(l, candidate, candidate ? &later : err);
        l->launch->candidate = candidate;
        if (!st || launch_lacked_memory(st))
            return st;
        if (st == FRIT_BUSY && candidate)
            *err = later;
        busy |= st == FRIT_BUSY;
        frame_undo(l->frame, &mark);
        if (candidate + 1 < n)
            fallback_tell(l->frame, l->call->label, FALLBACK_CANDIDATE, candidate ? &later : err);
    }
    return busy ? FRIT_BUSY : st;
}

/* A block has its ops to run meanwhile; a single op that has no other way waits. */
static frit_status prepare(struct launch *l, frit_err *err)
{
    frit_status st;

    l->wait = !l->call->block && answers_n_candidates(l->call->answers) == 1;
    st = prepare_first(l, err);
    if (st != FRIT_BUSY || l->wait || l->call->block)
        return st;
    l->wait = true;
    return prepare_first(l, err);
}

/* ---- arguments ---- */

static void touch(struct launch *l, const void *memory, uint64_t begin, uint64_t bytes, bool write)
{
    l->ranges[l->n_ranges++] = (struct batch_range){memory, begin, begin + bytes, write};
}

/* A program may write the tail of what it writes. */
static void bind(struct launch *l, uint32_t index, uint64_t flags)
{
    const struct value *value = value_at(l, index);
    const struct buffer *buffer = value->buffer;
    struct extent extent = value_extent(value);
    frit_arg *arg = &l->args[index];
    bool write = flags & FRIT_ARG_WRITE;

    *arg = (frit_arg){.memory = buffer->handle,
                      .offset = buffer->offset + extent.first,
                      .extent = extent.bytes,
                      .origin = extent.origin,
                      .dtype = value->type.dtype,
                      .rank = value->type.rank,
                      .align_log2 = align_log2(l, buffer->offset + extent.first),
                      .tail = extent.first + extent.bytes == buffer->bytes ? buffer->tail : 0,
                      .flags = flags};
    if (arg->offset == 0)
        arg->flags |= FRIT_ARG_START;
    memcpy(arg->dims, value->type.dims, sizeof(arg->dims));
    memcpy(arg->strides, value->layout.strides, sizeof(arg->strides));
    touch(l, arg->memory, arg->offset, arg->extent + (write ? arg->tail : 0), write);
}

static frit_status bind_inputs(struct launch *l, frit_err *err)
{
    struct run_scratch *s = l->frame->scratch;

    if (!array_grow(&s->seen, &s->seen_room, s->n_seen, l->call->n_in, sizeof(*s->seen)))
        return fail_memory(err, l->call->n_in * sizeof(*s->seen));
    for (uint32_t i = 0; i < l->call->n_in; i++) {
        if (l->in[i].type.dtype == FRIT_NO_DTYPE)
            continue;
        bind(l, i, FRIT_ARG_READ);
        s->seen[s->n_seen++] = atomic_load(&l->in[i].buffer->last_write);
    }
    return FRIT_OK;
}

/* ---- outputs ---- */

static bool op_makes(const struct graph_op *op, uint32_t value)
{
    for (uint32_t k = 0; k < op->n_out; k++) {
        if (op->out[k] == value)
            return true;
    }
    return false;
}

/* Only what somebody sees after the run is worth a block of its own. */
static bool is_persistent(const struct launch *l, uint32_t value)
{
    if (!l->frame->values[value].wanted)
        return false;
    for (uint32_t i = 0; i < l->call->n_ops; i++) {
        if (op_makes(&l->frame->graph->ops[l->call->ops[i]], value))
            return l->frame->ops[l->call->ops[i]].persistent;
    }
    return false;
}

/* Whether an output of so many bytes may take the memory of input `index`: it is the input's last
 * use, nobody else has the memory, no other argument lies in it, and both begin at one place. */
static bool may_take(const struct launch *l, uint32_t index, uint64_t bytes, bool persistent)
{
    uint32_t value = l->given ? GRAPH_NO_VALUE : l->call->in[index];
    const struct buffer *buffer = l->in[index].buffer;
    struct extent extent;

    if (value == GRAPH_NO_VALUE || l->copied[index] || !buffer->handle ||
        l->frame->values[value].value.buffer != buffer)
        return false;
    extent = value_extent(&l->in[index]);
    if (extent.bytes == 0 || extent.first % device_align(l) ||
        bytes > buffer->bytes - extent.first || buffer_is_persistent(buffer) != persistent)
        return false;
    for (uint32_t i = 0; i < l->call->n_in; i++) {
        if (i != index && l->in[i].type.dtype != FRIT_NO_DTYPE && l->in[i].buffer == buffer)
            return false;
    }
    for (uint32_t k = 0; k < l->call->n_out; k++) {
        if (l->out[k].buffer == buffer)
            return false;
    }
    return frame_dies(l->frame, value) && frame_is_sole_owner(l->frame, value);
}

/* How many elements lie in so many bytes; false if that is no whole number. */
static bool elements_before(uint32_t dtype, uint64_t bytes, int64_t *count)
{
    uint64_t one = frit_storage_bytes(dtype, 1);

    *count = one ? (int64_t)(bytes / one) : 0;
    return frit_storage_bytes(dtype, *count) == bytes;
}

/* The memory of an input that the program allows, if there is one. */
static bool place_inside(struct launch *l, uint32_t k, const frit_output_spec *spec, uint64_t bytes,
                         bool persistent)
{
    for (uint32_t i = 0; i < l->call->n_in && i < 64; i++) {
        uint32_t dtype = l->out[k].type.dtype, from;
        struct buffer *buffer;
        int64_t offset;
        uint64_t first;

        if (!(spec->alias >> i & 1) || !may_take(l, i, bytes, persistent))
            continue;
        first = value_extent(&l->in[i]).first;
        if (!elements_before(dtype, first, &offset))
            continue;
        buffer = frame_inherit(l->frame, l->call->in[i], &from);
        l->out[k].layout.offset = offset;
        l->out[k].buffer = buffer;
        frame_make(l->frame, l->call->out[k], buffer, from);
        if (l->frame->tape)
            tape_add_made(l->frame->tape, l->call->out[k],
                          &(struct tape_made){.of = l->call->in[i], .written = true});
        atomic_fetch_add(&l->frame->device->count.in_place, 1);
        frame_remark(l->frame, RUN_IN_PLACE);
        return true;
    }
    return false;
}

static frit_status poison(struct launch *l, struct buffer *buffer, frit_err *err)
{
    return l->frame->device->config.poison ? batch_fill(l->batch, buffer, 0, 0xff, err) : FRIT_OK;
}

static frit_status place_output(struct launch *l, uint32_t k, frit_err *err)
{
    static const frit_output_spec dense;
    const frit_output_spec *spec = k < FRIT_MAX_OUTPUTS ? &l->prepared->spec.outputs[k] : &dense;
    bool persistent = !l->given && is_persistent(l, l->call->out[k]);
    struct value *out = &l->out[k];
    uint64_t flags = FRIT_ARG_WRITE, bytes;
    uint32_t from;

    if (spec->flags & 1)
        memcpy(out->layout.strides, spec->strides, out->type.rank * sizeof(int64_t));
    bytes = value_extent(out).bytes;
    if (spec->bytes > bytes)
        bytes = spec->bytes;
    if (!place_inside(l, k, spec, bytes, persistent)) {
        TRY(frame_claim(l->frame, bytes, persistent, &out->buffer, &from, err));
        if (l->given)
            frame_workspace(l->frame, out->buffer, from);
        else
            frame_make(l->frame, l->call->out[k], out->buffer, from);
        if (l->frame->tape && !l->given)
            tape_add_made(l->frame->tape, l->call->out[k],
                          &(struct tape_made){GRAPH_NO_VALUE, true, persistent, bytes});
        TRY(poison(l, out->buffer, err));
        flags |= FRIT_ARG_NOALIAS;
    }
    atomic_store(&out->buffer->last_write, 0);
    bind(l, l->call->n_in + k, flags);
    return batch_writes(l->batch, out->buffer, err);
}

static frit_status workspace(struct launch *l, uint64_t bytes, bool zeroed, struct buffer **out,
                             frit_err *err)
{
    uint32_t from;

    TRY(frame_claim(l->frame, bytes, false, out, &from, err));
    frame_workspace(l->frame, *out, from);
    touch(l, (*out)->handle, (*out)->offset, bytes, true);
    if (zeroed)
        return batch_fill(l->batch, *out, bytes, 0, err);
    return poison(l, *out, err);
}

static frit_status place(struct launch *l, frit_err *err)
{
    const frit_launch_spec *spec = &l->prepared->spec;
    frit_derived *derived = arena_array(&l->batch->arena, FRIT_MAX_DERIVED, sizeof(*derived));
    struct buffer *space;

    if (!derived)
        return fail_memory(err, sizeof(*derived));
    TRY(frame_reserve(l->frame, 2 * l->call->n_out + 1 + spec->n_derived, err));
    for (uint32_t k = 0; k < l->call->n_out; k++) {
        if (l->out[k].type.dtype != FRIT_NO_DTYPE)
            TRY(place_output(l, k, err));
    }
    if (spec->workspace_bytes) {
        TRY(workspace(l, spec->workspace_bytes, spec->workspace_zeroed, &space, err));
        l->launch->workspace = space->handle;
        l->launch->workspace_offset = space->offset;
    }
    for (uint32_t i = 0; i < spec->n_derived; i++) {
        TRY(workspace(l, spec->derived[i].bytes, false, &space, err));
        derived[i] = (frit_derived){space->handle, space->offset, 1, 0};
    }
    l->launch->n_derived = spec->n_derived;
    l->launch->derived = derived;
    return FRIT_OK;
}

/* ---- the command ---- */

enum { MAX_RECORDED = 1024 };

bool launch_commands_known(const frit_cmd *cmds, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (cmds[i].kind != FRIT_CMD_DISPATCH && cmds[i].kind != FRIT_CMD_BARRIER)
            return false;
        if (cmds[i].kind == FRIT_CMD_DISPATCH && (!cmds[i].kernel || !cmds[i].launch))
            return false;
    }
    return n > 0;
}

/* A program of another plugin writes its own commands. */
static frit_status record(struct launch *l, frit_err *err)
{
    const frit_program *program = l->call->program;
    uint32_t capacity = 8, n = 0;
    frit_cmd *cmds = NULL;

    for (int round = 0; round < 2 && (!cmds || n > capacity); round++) {
        capacity = n > capacity ? n : capacity;
        cmds = arena_array(&l->batch->arena, capacity, sizeof(*cmds));
        if (!cmds)
            return fail_memory(err, capacity * sizeof(*cmds));
        for (uint32_t i = 0; i < capacity; i++)
            cmds[i].struct_size = sizeof(*cmds);
        TRY(fail_from(err,
                      program->table->record(program->self, l->launch, cmds, capacity, &n, err),
                      "record"));
        if (n > MAX_RECORDED)
            break;
    }
    if (n > capacity || !launch_commands_known(cmds, n))
        return fail(err, FRIT_INTERNAL, "%s: record gives commands that no program may give",
                    l->call->label);
    return batch_add(l->batch, cmds, n, l->ranges, l->n_ranges, err);
}

static frit_status command(struct launch *l, frit_err *err)
{
    const frit_program_table *table = l->call->program->table;
    frit_cmd cmd = {.struct_size = sizeof(cmd), .kind = FRIT_CMD_LAUNCH, .launch = l->launch};

    if (FRIT_HAS(table, frit_program_table, record) && table->record)
        return record(l, err);
    return batch_add(l->batch, &cmd, 1, l->ranges, l->n_ranges, err);
}

static void fill_launch(struct launch *l)
{
    struct labels *labels = l->frame->device->labels;
    frit_launch *launch = l->launch;

    launch->struct_size = FRIT_END_OF(frit_launch, reserved);
    launch->n_args = l->call->n_in + l->call->n_out;
    launch->arg_stride = sizeof(*l->args);
    launch->n_scalars = l->words.n_scalars;
    launch->n_bounds = l->words.n_bounds;
    launch->cookie = label_of(labels, l->call->label) | (uint64_t)l->frame->stream << 32;
    launch->program = l->call->program;
    launch->spec = &l->prepared->spec;
    launch->variant = &l->prepared->variant;
    launch->args = l->args;
    launch->scalars = l->words.scalars;
    launch->bounds = l->words.bounds;
}

static frit_status init(struct launch *l, frit_err *err)
{
    const struct launch_call *call = l->call;
    struct arena *arena = &l->batch->arena;
    uint32_t n = call->n_in + call->n_out;

    TRY(words_gather(l->frame->graph, call->ops, call->n_ops, l->frame->ops, arena, &l->words,
                     err));
    l->key_bytes = sizeof(struct head) + n * sizeof(frit_arg_sig) + l->words.n_scalars;
    l->in = arena_array(arena, n, sizeof(*l->in));
    l->copied = arena_array(arena, call->n_in, sizeof(*l->copied));
    l->key = arena_alloc(arena, l->key_bytes);
    l->launch = arena_alloc(arena, sizeof(*l->launch));
    l->args = arena_array(arena, n, sizeof(*l->args));
    l->ranges = arena_array(arena, n + 1 + FRIT_MAX_DERIVED, sizeof(*l->ranges));
    if (!l->in || !l->copied || !l->key || !l->launch || !l->args || !l->ranges)
        return fail_memory(err, l->key_bytes);
    l->out = l->in + call->n_in;
    for (uint32_t k = 0; k < call->n_out; k++) {
        if (l->given)
            l->out[k].type = l->given->type;
        else if (call->out[k] != GRAPH_NO_VALUE)
            l->out[k].type = l->frame->graph->values[call->out[k]].type;
        layout_dense(&l->out[k].type, &l->out[k].layout);
        if (call->strides)
            memcpy(l->out[k].layout.strides, call->strides, l->out[k].type.rank * sizeof(int64_t));
    }
    return FRIT_OK;
}

static void leave_on_tape(const struct launch *l, uint32_t n_barriers)
{
    const struct launch_call *call = l->call;
    const struct tape_launch played = {.launch = l->launch,
                                       .answers = call->answers,
                                       .prepared = l->prepared,
                                       .ops = call->ops,
                                       .in = call->in,
                                       .out = call->out,
                                       .n_ops = call->n_ops,
                                       .n_in = call->n_in,
                                       .n_out = call->n_out,
                                       .barrier = l->batch->n_barriers > n_barriers,
                                       .block = call->block,
                                       .classes = l->words.classes};
    bool copies = l->given;

    for (uint32_t i = 0; i < call->n_in; i++)
        copies |= l->copied[i];
    if (l->frame->tape && copies)
        tape_spoil(l->frame->tape);
    else if (l->frame->tape)
        tape_add_launch(l->frame->tape, &played);
}

/* What prepare said is kept with the batch, which takes the reference over. */
static frit_status finish(struct launch *l, frit_err *err)
{
    struct prepared *prepared = l->prepared;
    uint32_t n_barriers = l->batch->n_barriers;

    TRY(bind_inputs(l, err));
    TRY(place(l, err));
    fill_launch(l);
    TRY(command(l, err));
    leave_on_tape(l, n_barriers);
    l->prepared = NULL;
    TRY(batch_keep(l->batch, prepared, err));
    for (uint32_t k = 0; k < l->call->n_out && !l->given; k++) {
        if (l->call->out[k] != GRAPH_NO_VALUE)
            l->frame->values[l->call->out[k]].value = l->out[k];
    }
    l->batch->n_launches++;
    return FRIT_OK;
}

static frit_status launch(struct launch *l, frit_err *err)
{
    struct frame_mark mark = frame_mark(l->frame);
    frit_status st = init(l, err);

    if (!st)
        st = prepare(l, err);
    if (!st)
        st = finish(l, err);
    prepared_unref(l->prepared);
    if (st)
        frame_undo(l->frame, &mark);
    return st;
}

frit_status launch_add(const struct launch_call *call, frit_err *err)
{
    struct launch l = {.call = call, .frame = call->frame, .batch = &call->frame->scratch->batch};

    TRY(launch(&l, err));
    if (call->block)
        atomic_fetch_add(&call->frame->device->count.fused, 1);
    return FRIT_OK;
}

frit_status launch_copy(struct frame *frame, const struct value *value, const int64_t *strides,
                        struct value *out, frit_err *err)
{
    struct op_input in = {.kind = FRIT_OPERAND_TENSOR, .type = value->type};
    struct program_call row = {
        .op = FRIT_OP_copy, .n_in = 1, .n_out = 1, .in = &in, .out = &value->type};
    struct launch_call call = {
        .frame = frame, .label = "copy", .n_in = 1, .n_out = 1, .strides = strides};
    struct launch l = {
        .call = &call, .frame = frame, .batch = &frame->scratch->batch, .given = value};
    const struct op_program *program;

    TRY(programs_get(frame->device, &row, &program, err));
    if (!program->program.table)
        return fail(err, FRIT_UNSUPPORTED, "the driver of %s cannot copy this type",
                    frame->device->entry->name);
    call.program = &program->program;
    call.answers = program->answers;
    TRY(launch(&l, err));
    *out = l.out[0];
    return FRIT_OK;
}

bool launch_lacked_memory(frit_status status)
{
    return status == FRIT_NO_DEVICE_MEMORY || status == FRIT_NO_HOST_MEMORY;
}
