/* SPDX-License-Identifier: Apache-2.0 */
/* One op run by hand: what the host does between a call and its result, for one op at a time. */
#include <string.h>

#include "run_op.h"

#include <frit/op_table.h>

enum { ARGS = 5 };

struct launch_rig {
    frit_operand operands[ARGS];
    frit_arg_sig sigs[ARGS];
    frit_arg args[ARGS];
    frit_scalar scalars[ARGS + 2];
    frit_program program;
    frit_launch_spec spec;
    frit_variant variant;
    uint32_t n_scalars;
};

static frit_scalar scalar_of(uint32_t dtype, double real)
{
    frit_scalar scalar = {.kind = FRIT_SCALAR_I64, .bits = (uint64_t)(int64_t)real};

    if (dtype == FRIT_F64 || dtype == FRIT_F32 || dtype == FRIT_F16 || dtype == FRIT_BF16) {
        scalar.kind = FRIT_SCALAR_F64;
        memcpy(&scalar.bits, &real, sizeof real);
    }
    return scalar;
}

static void add_tensor(struct launch_rig *rig, uint32_t i, const struct tensor *tensor)
{
    rig->operands[i] = (frit_operand){
        .kind = FRIT_OPERAND_TENSOR, .dtype = tensor->dtype, .value = i, .rank = tensor->rank};
    rig->sigs[i] = (frit_arg_sig){.dtype = tensor->dtype, .rank = tensor->rank};
    rig->args[i] = (frit_arg){.extent = tensor->bytes,
                              .origin = frit_storage_bytes(tensor->dtype, tensor->first),
                              .dtype = tensor->dtype,
                              .rank = tensor->rank};
    memcpy(rig->sigs[i].dims, tensor->dims, sizeof tensor->dims);
    memcpy(rig->sigs[i].strides, tensor->strides, sizeof tensor->strides);
    memcpy(rig->args[i].dims, tensor->dims, sizeof tensor->dims);
    memcpy(rig->args[i].strides, tensor->strides, sizeof tensor->strides);
}

static void describe_op(struct launch_rig *rig, const struct op_run *run, frit_op_desc *desc)
{
    const frit_op_info *info = frit_op_info_at(run->id);

    memset(rig, 0, sizeof *rig);
    for (uint32_t i = 0; i < run->n_in; i++) {
        const struct operand *in = &run->in[i];

        if (in->tensor)
            add_tensor(rig, i, in->tensor);
        if (in->tensor || !in->dtype)
            continue;
        rig->operands[i] = (frit_operand){
            .kind = FRIT_OPERAND_SCALAR, .dtype = in->dtype, .value = rig->n_scalars};
        rig->scalars[rig->n_scalars++] = scalar_of(in->dtype, in->real);
    }
    add_tensor(rig, run->n_in, run->out);
    *desc = (frit_op_desc){.struct_size = FRIT_END_OF(frit_op_desc, dead),
                           .id = run->id,
                           .rev = info->rev,
                           .n_in = run->n_in,
                           .n_out = 1,
                           .operand_stride = sizeof(frit_operand),
                           .n_extra = info->traits & FRIT_OP_SEEDED ? 2 : 0,
                           .in = rig->operands,
                           .out = rig->operands + run->n_in,
                           .attrs = run->attrs};
    for (uint32_t i = 0; i < desc->n_extra; i++)
        rig->scalars[rig->n_scalars++] = (frit_scalar){FRIT_SCALAR_U64, 0, run->words[i]};
}

static void prepare(struct rig *rig, const struct op_run *run, struct launch_rig *launch)
{
    const frit_signature sig = {.struct_size = sizeof sig,
                                .n_in = run->n_in,
                                .n_out = 1,
                                .arg_stride = sizeof *launch->sigs,
                                .index_width = 64,
                                .args = launch->sigs};
    frit_op_desc desc;

    describe_op(launch, run, &desc);
    launch->program.struct_size = sizeof launch->program;
    launch->spec.struct_size = sizeof launch->spec;
    launch->variant.struct_size = sizeof launch->variant;
    assert_int_equal(rig->backend->op_program(rig->device, &desc, &launch->program, &rig->err),
                     FRIT_OK);
    assert_int_equal(launch->program.table->prepare(launch->program.self, 0, &sig, &launch->spec,
                                                    &launch->variant, &rig->err),
                     FRIT_OK);
}

static void destroy(struct launch_rig *launch)
{
    const frit_program_table *table = launch->program.table;

    if (table->spec_release)
        table->spec_release(launch->program.self, &launch->spec);
    table->destroy(launch->program.self);
}

void prepare_op(struct rig *rig, const struct op_run *run, uint64_t *aliases, uint64_t *workspace)
{
    struct launch_rig launch;

    prepare(rig, run, &launch);
    *aliases = rig_aliases(&launch.spec, 0);
    *workspace = launch.spec.workspace_bytes;
    destroy(&launch);
}

static frit_memory *new_buffer(struct rig *rig, uint64_t bytes, const void *data)
{
    const frit_alloc_desc desc = {sizeof desc, 0, bytes, 64};
    frit_allocation allocation = {.struct_size = sizeof allocation};
    frit_transfer transfer = {.struct_size = sizeof transfer, .bytes = bytes};
    uint64_t value;

    assert_int_equal(rig->backend->alloc(rig->device, &desc, &allocation, &rig->err), FRIT_OK);
    transfer.memory = allocation.memory;
    if (data)
        assert_int_equal(rig->backend->write(rig->device, &transfer, data, &value, &rig->err),
                         FRIT_OK);
    return allocation.memory;
}

static void submit(struct rig *rig, const struct op_run *run, struct launch_rig *launch,
                   frit_memory *workspace)
{
    const frit_launch command = {.struct_size = sizeof command,
                                 .n_args = run->n_in + 1,
                                 .arg_stride = sizeof *launch->args,
                                 .n_scalars = launch->n_scalars,
                                 .program = &launch->program,
                                 .spec = &launch->spec,
                                 .variant = &launch->variant,
                                 .args = launch->args,
                                 .scalars = launch->scalars,
                                 .bounds = run->bounds,
                                 .workspace = workspace};
    const frit_cmd cmd = {.struct_size = sizeof cmd, .kind = FRIT_CMD_LAUNCH, .launch = &command};
    frit_failure failure = {.struct_size = sizeof failure, .status = FRIT_INTERNAL};
    uint64_t value;

    assert_int_equal(
        rig->backend->submit(rig->device, NULL, &cmd, 1, sizeof cmd, NULL, 0, &value, &rig->err),
        FRIT_OK);
    assert_int_equal(rig->backend->wait(rig->device, NULL, value, 0, &failure, &rig->err), FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
}

void run_op(struct rig *rig, const struct op_run *run)
{
    struct launch_rig launch;
    frit_transfer transfer = {.struct_size = sizeof transfer, .bytes = run->out->bytes};
    frit_memory *workspace = NULL;
    uint64_t value;

    prepare(rig, run, &launch);
    for (uint32_t i = 0; i <= run->n_in; i++) {
        const struct tensor *tensor = i < run->n_in ? run->in[i].tensor : run->out;

        if (tensor && tensor->bytes) /* without elements, without memory */
            launch.args[i].memory = new_buffer(rig, tensor->bytes, tensor->data);
    }
    if (launch.spec.workspace_bytes)
        workspace = new_buffer(rig, launch.spec.workspace_bytes, NULL);
    submit(rig, run, &launch, workspace);
    transfer.memory = launch.args[run->n_in].memory;
    assert_int_equal(rig->backend->read(rig->device, &transfer, run->out->data, &value, &rig->err),
                     FRIT_OK);
    for (uint32_t i = 0; i <= run->n_in; i++)
        rig->backend->free(rig->device, launch.args[i].memory);
    rig->backend->free(rig->device, workspace);
    destroy(&launch);
}
