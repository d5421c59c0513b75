/* SPDX-License-Identifier: Apache-2.0 */
/* One launch: signature, prepare, outputs and workspace, arguments, submit.  Everything that is
 * only needed until submit returns lies in one arena; a workspace may go back to its pool at once,
 * since whatever gets its bytes next comes later on the same queue. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "stream/program.h"

struct launch {
    const struct exec_call *call;
    const frit_program *program;
    struct arena arena;
    struct value *in; /* per operand: the call's, or a copy under the strides the program wanted */
    bool *copied;
    frit_arg_sig *sigs;
    frit_scalar *scalars;
    uint8_t *classes;
    int64_t *bounds;
    uint32_t n_scalars, n_bounds;
    frit_launch_spec spec;
    frit_variant variant;
    struct buffer *workspace;
    struct buffer *derived[FRIT_MAX_DERIVED];
};

/* ---- scalars and bounds ---- */

static uint8_t class_of_real(double x)
{
    if (x == 0)
        return signbit(x) ? FRIT_SCALAR_CLASS_OTHER : FRIT_SCALAR_CLASS_ZERO;
    if (x == 1)
        return FRIT_SCALAR_CLASS_ONE;
    if (x == -1)
        return FRIT_SCALAR_CLASS_MINUS_ONE;
    if (x == 2)
        return FRIT_SCALAR_CLASS_TWO;
    if (x == 0.5)
        return FRIT_SCALAR_CLASS_HALF;
    return isfinite(x) && x == nearbyint(x) && fabs(x) < 0x1p53 ? FRIT_SCALAR_CLASS_INTEGER
                                                                : FRIT_SCALAR_CLASS_OTHER;
}

static uint8_t scalar_class(const frit_scalar *scalar)
{
    double real;

    if (scalar->kind == FRIT_SCALAR_F64) {
        memcpy(&real, &scalar->bits, sizeof(real));
        return class_of_real(real);
    }
    switch (scalar->bits) {
    case 0:
        return FRIT_SCALAR_CLASS_ZERO;
    case 1:
        return FRIT_SCALAR_CLASS_ONE;
    case 2:
        return FRIT_SCALAR_CLASS_TWO;
    default:
        return scalar->kind == FRIT_SCALAR_I64 && scalar->bits == UINT64_MAX
                   ? FRIT_SCALAR_CLASS_MINUS_ONE
                   : FRIT_SCALAR_CLASS_INTEGER;
    }
}

static void add_scalar(struct launch *l, frit_scalar scalar, uint8_t cls)
{
    l->classes[l->n_scalars] = cls;
    l->scalars[l->n_scalars++] = scalar;
}

static void add_field(struct launch *l, const frit_field_info *field, const unsigned char *at,
                      uint32_t rank)
{
    if (field->type == FRIT_ATTR_REAL) {
        frit_scalar scalar = {.kind = FRIT_SCALAR_F64};

        memcpy(&scalar.bits, at, sizeof(scalar.bits));
        add_scalar(l, scalar, scalar_class(&scalar));
    } else if (field->type == FRIT_ATTR_SLICES) {
        const frit_slices *slices = (const frit_slices *)(const void *)at;

        memcpy(l->bounds + l->n_bounds, slices->dim, rank * sizeof(frit_range));
        l->n_bounds += rank * 3;
    } else if (field->type == FRIT_ATTR_DIMS) {
        const frit_dims *dims = (const frit_dims *)(const void *)at;

        memcpy(l->bounds + l->n_bounds, dims->dim, rank * sizeof(int64_t));
        l->n_bounds += rank;
    }
}

/* In the order that the contract gives at frit_launch. */
static frit_status gather_words(struct launch *l, frit_err *err)
{
    const struct exec_call *call = l->call;
    const frit_op_info *row = frit_op_info_at(call->op);
    const frit_record_info *record = frit_record_info_at(row->record);
    uint32_t most = call->n_in + record->n_fields + 2;

    l->scalars = arena_array(&l->arena, most, sizeof(*l->scalars));
    l->classes = arena_alloc(&l->arena, most);
    l->bounds =
        arena_array(&l->arena, (size_t)record->n_fields * FRIT_MAX_RANK * 3, sizeof(int64_t));
    if (!l->scalars || !l->classes || !l->bounds)
        return fail_memory(err, most * sizeof(*l->scalars));
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (call->in[i].kind == FRIT_OPERAND_SCALAR)
            add_scalar(l, call->in[i].scalar, scalar_class(&call->in[i].scalar));
    }
    for (uint32_t i = 0; i < record->n_fields && call->attrs; i++) {
        const frit_field_info *field = &record->field[i];

        if (field->use == FRIT_USE_LAUNCH)
            add_field(l, field, (const unsigned char *)call->attrs + field->offset,
                      call->in[0].value.type.rank);
    }
    if (row->traits & FRIT_OP_SEEDED) {
        add_scalar(l, (frit_scalar){FRIT_SCALAR_U64, 0, call->seed}, FRIT_SCALAR_CLASS_OTHER);
        add_scalar(l, (frit_scalar){FRIT_SCALAR_U64, 0, call->counter}, FRIT_SCALAR_CLASS_OTHER);
    }
    return FRIT_OK;
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

static uint32_t align_log2(const frit_device *device, uint64_t offset)
{
    uint64_t align = device->info->align_bytes ? device->info->align_bytes : 64;

    return (uint32_t)__builtin_ctzll(offset | align);
}

static void sign_value(const frit_device *device, const struct value *value, uint64_t flags,
                       frit_arg_sig *out)
{
    struct extent extent = value_extent(value);
    const struct buffer *buffer = value->buffer;

    out->dtype = value->type.dtype;
    out->rank = value->type.rank;
    out->flags = flags;
    if (buffer && buffer->offset + extent.first == 0)
        out->flags |= FRIT_ARG_START;
    out->align_log2 = align_log2(device, buffer ? buffer->offset + extent.first : 0);
    if (buffer && extent.first + extent.bytes == buffer->bytes)
        out->tail = buffer->tail;
    for (uint32_t d = 0; d < value->type.rank; d++) {
        out->dims[d] = value->type.dims[d];
        out->strides[d] = value->layout.strides[d];
    }
}

static void plan_output(const struct exec_call *call, struct value *out)
{
    layout_dense(&out->type, &out->layout);
    if (call->out_strides)
        memcpy(out->layout.strides, call->out_strides, out->type.rank * sizeof(int64_t));
}

static uint32_t index_width(const struct launch *l)
{
    for (uint32_t i = 0; i < l->call->n_in + l->call->n_out; i++) {
        const struct value *v = i < l->call->n_in ? &l->in[i] : &l->call->out[i - l->call->n_in];
        int64_t low, high;

        if (v->type.dtype == FRIT_NO_DTYPE)
            continue;
        layout_span(&v->type, &v->layout, &low, &high);
        if (high - low > INT32_MAX)
            return 64;
    }
    return 32;
}

static frit_status prepare_once(struct launch *l, frit_err *err)
{
    const struct exec_call *call = l->call;
    uint32_t n = call->n_in + call->n_out;
    frit_signature signature = {.struct_size = sizeof(signature),
                                .n_in = call->n_in,
                                .n_out = call->n_out,
                                .arg_stride = sizeof(frit_arg_sig),
                                .n_scalars = l->n_scalars,
                                .index_width = index_width(l),
                                .args = l->sigs,
                                .scalar_classes = l->classes};

    memset(l->sigs, 0, n * sizeof(*l->sigs));
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (l->in[i].type.dtype != FRIT_NO_DTYPE)
            sign_value(call->device, &l->in[i], FRIT_ARG_READ, &l->sigs[i]);
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        if (call->out[i].type.dtype != FRIT_NO_DTYPE)
            sign_value(call->device, &call->out[i], FRIT_ARG_WRITE, &l->sigs[call->n_in + i]);
    }
    return programs_prepare(call->device, l->program, &signature, &l->spec, &l->variant, err);
}

static bool any_negative(const int64_t *strides, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (strides[d] < 0)
            return true;
    }
    return false;
}

/* A driver is not trusted: what it asks for must be something the host can give. */
static frit_status check_spec(const struct launch *l, frit_status answer, frit_err *err)
{
    const char *name = l->call->device->entry->name;

    if (answer < 0)
        return answer;
    if (answer > 0)
        return fail(err, FRIT_INTERNAL, "%s: prepare answered %d, which means nothing", name,
                    answer);
    if (l->spec.n_derived > FRIT_MAX_DERIVED)
        return fail(err, FRIT_INTERNAL, "%s: prepare asks for %u derived memories, at most %d",
                    name, l->spec.n_derived, FRIT_MAX_DERIVED);
    for (uint32_t i = 0; i < l->call->n_out; i++) {
        const frit_output_spec *out = &l->spec.outputs[i];

        if (out->flags & 1 && any_negative(out->strides, l->call->out[i].type.rank))
            return fail(err, FRIT_INTERNAL, "%s: prepare gives output %u a negative stride", name,
                        i);
    }
    return FRIT_OK;
}

/* Until the program is content with its operands' strides; each may be asked for once. */
static frit_status prepare(struct launch *l, frit_err *err)
{
    for (uint32_t round = 0; round <= l->call->n_in; round++) {
        frit_status st = prepare_once(l, err);
        uint32_t arg = l->spec.wanted_arg;
        struct value copy;

        if (st != FRIT_PREPARE_RELAYOUT)
            return check_spec(l, st, err);
        if (arg >= l->call->n_in || l->copied[arg] || l->call->op == FRIT_OP_copy ||
            any_negative(l->spec.wanted_strides, l->in[arg].type.rank))
            break;
        TRY(exec_relayout(l->call->device, &l->in[arg], l->spec.wanted_strides, &copy, err));
        l->in[arg] = copy;
        l->copied[arg] = true;
    }
    return fail(err, FRIT_INTERNAL,
                "%s: prepare asks for a relayout again, or for one that cannot be",
                l->call->device->entry->name);
}

/* ---- memory ---- */

static frit_status claim(struct launch *l, uint64_t bytes, uint64_t align, bool persistent,
                         struct buffer **out, frit_err *err)
{
    uint64_t have = l->call->device->info->align_bytes ? l->call->device->info->align_bytes : 64;

    if (align > have)
        return fail(
            err, FRIT_INTERNAL, "%s: a launch asks for alignment %llu, the device declared %llu",
            l->call->device->entry->name, (unsigned long long)align, (unsigned long long)have);
    return buffer_create(l->call->device->memory, bytes, persistent, out, err);
}

static frit_status output_memory(struct launch *l, uint32_t index, frit_err *err)
{
    struct value *out = &l->call->out[index];
    const frit_output_spec *spec = &l->spec.outputs[index];
    uint64_t bytes;

    if (spec->flags & 1)
        memcpy(out->layout.strides, spec->strides, out->type.rank * sizeof(int64_t));
    bytes = value_extent(out).bytes;
    if (spec->bytes > bytes)
        bytes = spec->bytes;
    return claim(l, bytes, spec->align, l->call->persistent, &out->buffer, err);
}

static frit_status allocate(struct launch *l, frit_err *err)
{
    for (uint32_t i = 0; i < l->call->n_out; i++) {
        if (l->call->out[i].type.dtype != FRIT_NO_DTYPE)
            TRY(output_memory(l, i, err));
    }
    if (l->spec.workspace_bytes)
        TRY(claim(l, l->spec.workspace_bytes, l->spec.workspace_align, false, &l->workspace, err));
    for (uint32_t i = 0; i < l->spec.n_derived && i < FRIT_MAX_DERIVED; i++)
        TRY(claim(l, l->spec.derived[i].bytes, 0, false, &l->derived[i], err));
    return FRIT_OK;
}

/* ---- the command ---- */

static void bind_value(const frit_device *device, const struct value *value, uint64_t flags,
                       frit_arg *out)
{
    struct extent extent = value_extent(value);
    const struct buffer *buffer = value->buffer;

    *out = (frit_arg){.memory = buffer->handle,
                      .offset = buffer->offset + extent.first,
                      .extent = extent.bytes,
                      .origin = extent.origin,
                      .dtype = value->type.dtype,
                      .rank = value->type.rank,
                      .align_log2 = align_log2(device, buffer->offset + extent.first),
                      .tail = extent.first + extent.bytes == buffer->bytes ? buffer->tail : 0,
                      .flags = flags};
    if (out->offset == 0)
        out->flags |= FRIT_ARG_START;
    memcpy(out->dims, value->type.dims, sizeof(out->dims));
    memcpy(out->strides, value->layout.strides, sizeof(out->strides));
}

static frit_status submit(struct launch *l, const frit_launch *launch, uint64_t *value,
                          frit_err *err)
{
    frit_cmd cmds[3];
    uint32_t n = 0;

    memset(cmds, 0, sizeof(cmds));
    if (l->workspace && l->spec.workspace_zeroed) {
        cmds[n++] = (frit_cmd){.struct_size = sizeof(frit_cmd),
                               .kind = FRIT_CMD_FILL,
                               .dst = l->workspace->handle,
                               .dst_offset = l->workspace->offset,
                               .bytes = l->spec.workspace_bytes,
                               .pattern_bytes = 1};
        cmds[n++] = (frit_cmd){.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_BARRIER};
    }
    cmds[n++] =
        (frit_cmd){.struct_size = sizeof(frit_cmd), .kind = FRIT_CMD_LAUNCH, .launch = launch};
    return device_submit(l->call->device, cmds, n, value, err);
}

/* Fails if a write is known to have failed. */
static frit_status spoiled(frit_device *device, uint64_t value, frit_err *err)
{
    struct failure *failure = device_poison_of(device, value);
    frit_status st;

    if (!failure)
        return FRIT_OK;
    st = fail(err, failure->status, "%s", failure->text);
    failure_unref(failure);
    return st;
}

static frit_status launch_bound(struct launch *l, frit_err *err)
{
    const struct exec_call *call = l->call;
    uint32_t n = call->n_in + call->n_out;
    frit_arg *args = arena_array(&l->arena, n, sizeof(*args));
    frit_derived derived[FRIT_MAX_DERIVED] = {0};
    uint64_t value = 0;

    if (!args)
        return fail_memory(err, n * sizeof(*args));
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (l->in[i].type.dtype != FRIT_NO_DTYPE)
            bind_value(call->device, &l->in[i], FRIT_ARG_READ, &args[i]);
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        if (call->out[i].type.dtype != FRIT_NO_DTYPE)
            bind_value(call->device, &call->out[i], FRIT_ARG_WRITE | FRIT_ARG_NOALIAS,
                       &args[call->n_in + i]);
    }
    for (uint32_t i = 0; i < l->spec.n_derived && i < FRIT_MAX_DERIVED; i++)
        derived[i] = (frit_derived){l->derived[i]->handle, l->derived[i]->offset, 1, 0};
    frit_launch launch = {.struct_size = FRIT_END_OF(frit_launch, reserved),
                          .n_args = n,
                          .arg_stride = sizeof(*args),
                          .n_scalars = l->n_scalars,
                          .n_bounds = l->n_bounds,
                          .n_derived = l->spec.n_derived,
                          .cookie = call->op,
                          .program = l->program,
                          .spec = &l->spec,
                          .variant = &l->variant,
                          .args = args,
                          .scalars = l->scalars,
                          .bounds = l->bounds,
                          .derived = derived,
                          .workspace = l->workspace ? l->workspace->handle : NULL,
                          .workspace_offset = l->workspace ? l->workspace->offset : 0};
    TRY(submit(l, &launch, &value, err));
    atomic_fetch_add(&call->device->count.launches, 1);
    TRY(spoiled(call->device, value, err));
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (l->in[i].buffer)
            TRY(spoiled(call->device, atomic_load(&l->in[i].buffer->last_write), err));
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        if (call->out[i].buffer)
            atomic_store(&call->out[i].buffer->last_write, value);
    }
    return FRIT_OK;
}

static frit_status launch_init(struct launch *l, frit_err *err)
{
    const struct exec_call *call = l->call;
    uint32_t n = call->n_in + call->n_out;

    l->in = arena_array(&l->arena, call->n_in, sizeof(*l->in));
    l->copied = arena_array(&l->arena, call->n_in, sizeof(*l->copied));
    l->sigs = arena_array(&l->arena, n, sizeof(*l->sigs));
    if (!l->in || !l->copied || !l->sigs)
        return fail_memory(err, n * sizeof(*l->sigs));
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (call->in[i].kind == FRIT_OPERAND_TENSOR)
            l->in[i] = call->in[i].value;
    }
    for (uint32_t i = 0; i < call->n_out; i++)
        plan_output(call, &call->out[i]);
    return gather_words(l, err);
}

frit_status launch_run(const struct exec_call *call, const frit_program *program, frit_err *err)
{
    struct launch l = {.call = call, .program = program};
    frit_status st = launch_init(&l, err);

    if (!st)
        st = prepare(&l, err);
    if (!st)
        st = allocate(&l, err);
    if (!st)
        st = launch_bound(&l, err);
    buffer_disown(l.workspace);
    for (uint32_t i = 0; i < FRIT_MAX_DERIVED; i++)
        buffer_disown(l.derived[i]);
    for (uint32_t i = 0; i < call->n_in && l.copied; i++) {
        if (l.copied[i])
            buffer_disown(l.in[i].buffer);
    }
    for (uint32_t i = 0; i < call->n_out && st; i++) {
        buffer_disown(call->out[i].buffer);
        call->out[i].buffer = NULL;
    }
    arena_fini(&l.arena);
    return st;
}
