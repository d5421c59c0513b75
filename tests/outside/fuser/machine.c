/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a block: op by op over whole tensors.  A value that is seen later is its argument, one that
 * dies inside lies in the workspace, a view that dies inside is a layout over its operand. */
#include <string.h>

#include "blocks.h"

struct machine {
    const struct program *program;
    int64_t extents[BLOCK_EXTENTS];
    struct tensor tensors[BLOCK_ARGS]; /* by value */
    char *workspace;                   /* next free byte */
    const frit_scalar *scalars;        /* next */
    const int64_t *bounds;             /* next */
    char nothing;                      /* where tensors without elements lie; never read */
};

void machine_extents(const struct program *program, const void *dims_of_first, uint32_t stride,
                     int64_t *extents)
{
    for (uint32_t k = 0; k < program->n_args; k++) {
        const struct block_value *value = &program->block.values[program->args[k]];
        const char *at = (const char *)dims_of_first + (size_t)k * stride;
        const int64_t *dims = (const int64_t *)(const void *)at;

        for (uint32_t d = 0; d < value->rank; d++)
            if (value->extent[d] > 1)
                extents[value->extent[d] - 2] = dims[d];
    }
}

/* The value's type and dims; neither data nor strides. */
static struct tensor shape_of(const struct block_value *value, const int64_t *extents)
{
    struct tensor tensor = {.dtype = value->dtype, .rank = value->rank};

    for (uint32_t d = 0; d < value->rank; d++)
        tensor.dims[d] = value->extent[d] > 1 ? extents[value->extent[d] - 2] : value->extent[d];
    return tensor;
}

/* Bytes in the workspace, a multiple of 8. */
static uint64_t room_of(const struct tensor *tensor)
{
    return (frit_storage_bytes(tensor->dtype, tensor_count(tensor)) + 7) / 8 * 8;
}

static bool is_stored(const struct block_value *value)
{
    return value->dies == BLOCK_NONE;
}

uint64_t machine_workspace(const struct program *program, const int64_t *extents)
{
    const struct block *block = &program->block;
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < block->n_ops; k++) {
        const struct block_op *op = &block->ops[k];
        const struct tensor out = shape_of(&block->values[op->out], extents);

        /* Of the views, reshape is the one that strides cannot always say. */
        if (!is_stored(&block->values[op->out]) &&
            (op->row->cls != FRIT_CLASS_VIEW || op->row->op == FRIT_OP_reshape))
            bytes += room_of(&out);
    }
    return bytes;
}

/* ---- binding ---- */

static char *host_pointer(const struct program *program, void *memory)
{
    return program->native_get(program->device, memory, FRIT_STR("host.ptr"));
}

static frit_status bind(struct machine *m, const frit_launch *launch, frit_err *err)
{
    const struct program *program = m->program;

    if (launch->n_args != program->n_args)
        return blocks_fail(program->instance, err, FRIT_INVALID,
                           "blocks: a launch has not the arguments of its program");
    machine_extents(program, launch->args->dims, launch->arg_stride, m->extents);
    for (uint32_t k = 0; k < program->n_args; k++) {
        const char *at = (const char *)launch->args + (size_t)k * launch->arg_stride;
        const frit_arg *arg = (const frit_arg *)(const void *)at;
        struct tensor *tensor = &m->tensors[program->args[k]];
        char *data = arg->memory ? host_pointer(program, arg->memory) : NULL;

        *tensor = shape_of(&program->block.values[program->args[k]], m->extents);
        if (!data && tensor_count(tensor) > 0)
            return blocks_fail(program->instance, err, FRIT_INVALID,
                               "blocks: an argument has no host memory");
        tensor->data = data ? data + arg->offset + arg->origin : &m->nothing;
        for (uint32_t d = 0; d < tensor->rank; d++)
            tensor->strides[d] = arg->strides[d] * (frit_dtype_bits(tensor->dtype) / 8);
    }
    m->workspace = &m->nothing;
    if (launch->spec->workspace_bytes) {
        char *data = launch->workspace ? host_pointer(program, launch->workspace) : NULL;

        if (!data)
            return blocks_fail(program->instance, err, FRIT_INVALID,
                               "blocks: a launch lacks its workspace");
        m->workspace = data + launch->workspace_offset;
    }
    m->scalars = launch->scalars;
    m->bounds = launch->bounds;
    return FRIT_OK;
}

/* ---- running ---- */

static void place_in_workspace(struct machine *m, struct tensor *tensor)
{
    tensor_dense(tensor);
    tensor->data = m->workspace;
    m->workspace += room_of(tensor);
}

static void run_view(struct machine *m, const struct block_op *op)
{
    const struct block_value *value = &m->program->block.values[op->out];
    const struct tensor *in = &m->tensors[op->in[0]];
    struct tensor *out = &m->tensors[op->out], view = shape_of(value, m->extents);
    bool said = op->row->view(&view, in, &op->attrs, m->bounds);

    if (op->row->op == FRIT_OP_slice)
        m->bounds += 3 * (size_t)in->rank;
    if (said && !is_stored(value)) {
        *out = view;
        return;
    }
    if (!is_stored(value)) {
        *out = view;
        place_in_workspace(m, out);
    }
    if (!said) { /* the same elements in the same order: under the operand's dims */
        view = *in;
        view.data = out->data;
        tensor_dense(&view);
        tensor_copy(&view, in);
    } else {
        tensor_copy(out, &view);
    }
}

static void run_op(struct machine *m, const struct block_op *op)
{
    const struct block_value *value = &m->program->block.values[op->out];
    struct tensor *out = &m->tensors[op->out];
    struct row_call call = {.attrs = &op->attrs, .row = op->row};

    if (!is_stored(value)) {
        *out = shape_of(value, m->extents);
        place_in_workspace(m, out);
    }
    call.out = *out;
    for (uint32_t i = 0; i < op->n_in; i++) {
        call.in_dtype[i] = op->in_dtype[i];
        if (op->in[i] != BLOCK_NONE)
            call.in[i] = m->tensors[op->in[i]];
        else
            memcpy(&call.scalar[i], &(m->scalars++)->bits, sizeof(call.scalar[i]));
    }
    op->row->run(&call);
}

frit_status machine_run(void *self, const frit_launch *launch, frit_err *err)
{
    const struct program *program = self;
    struct machine m = {.program = program};
    frit_status status = bind(&m, launch, err);

    if (status)
        return status;
    for (uint32_t k = 0; k < program->block.n_ops; k++) {
        const struct block_op *op = &program->block.ops[k];

        if (op->row->cls == FRIT_CLASS_VIEW)
            run_view(&m, op);
        else
            run_op(&m, op);
    }
    return FRIT_OK;
}
