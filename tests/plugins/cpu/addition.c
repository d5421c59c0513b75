/* SPDX-License-Identifier: Apache-2.0 */
#include "addition.h"

#include <string.h>

#include <frit/op_table.h>

static frit_status new_floats(struct rig *rig, uint64_t n, frit_allocation *out)
{
    const frit_alloc_desc desc = {sizeof desc, 0, n * sizeof(float), 64};

    out->struct_size = sizeof *out;
    return rig->backend->alloc(rig->device, &desc, out, &rig->err);
}

static frit_status make_program(struct addition *a)
{
    const frit_operand in[] = {
        {.kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .value = 0, .rank = 1, .extent = {2}},
        {.kind = FRIT_OPERAND_SCALAR, .dtype = FRIT_F32}};
    const frit_operand out = {
        .kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .value = 1, .rank = 1, .extent = {2}};
    const frit_op_desc op = {.struct_size = FRIT_END_OF(frit_op_desc, dead),
                             .id = FRIT_OP_add,
                             .rev = frit_op_info_at(FRIT_OP_add)->rev,
                             .n_in = 2,
                             .n_out = 1,
                             .operand_stride = sizeof(frit_operand),
                             .in = in,
                             .out = &out};
    uint64_t bits = 0;
    frit_status status =
        a->rig->backend->supports(a->rig->device, &op, 1, sizeof op, &bits, &a->rig->err);

    if (status || !bits)
        return status ? status : FRIT_UNSUPPORTED;
    a->program.struct_size = sizeof a->program;
    return a->rig->backend->op_program(a->rig->device, &op, &a->program, &a->rig->err);
}

static frit_status prepare(struct addition *a)
{
    const uint8_t scalar_class = FRIT_SCALAR_CLASS_INTEGER;
    frit_arg_sig sigs[3] = {{0}};
    const frit_signature sig = {.struct_size = sizeof sig,
                                .n_in = 2,
                                .n_out = 1,
                                .arg_stride = sizeof *sigs,
                                .n_scalars = 1,
                                .index_width = 32,
                                .args = sigs,
                                .scalar_classes = &scalar_class};
    const frit_program_table *table = a->program.table;
    frit_status status;

    sigs[0] = (frit_arg_sig){.dtype = FRIT_F32, .rank = 1, .align_log2 = 6};
    sigs[0].dims[0] = (int64_t)a->n;
    sigs[0].strides[0] = 1;
    sigs[2] = sigs[0];
    a->spec.struct_size = sizeof a->spec;
    a->variant.struct_size = sizeof a->variant;
    status = table->prepare(a->program.self, 0, &sig, &a->spec, &a->variant, &a->rig->err);
    a->has_spec = status >= 0;
    if (status == FRIT_PREPARE_NEEDS_COMPILE)
        status = table->compile(a->program.self, 0, &a->variant, NULL, &a->rig->err);
    return status;
}

static void fill(struct addition *a)
{
    for (uint64_t i = 0; i < a->n; i++)
        ((float *)a->x.host_pointer)[i] = (float)(i % 1000);
    a->args[0] = (frit_arg){.memory = a->x.memory,
                            .extent = a->n * sizeof(float),
                            .dtype = FRIT_F32,
                            .rank = 1,
                            .dims = {(int64_t)a->n},
                            .strides = {1}};
    a->args[2] = a->args[0];
    a->args[2].memory = a->y.memory;
}

frit_status addition_open(struct addition *a, struct rig *rig, uint64_t n)
{
    frit_status status;

    memset(a, 0, sizeof *a);
    a->rig = rig;
    a->n = n;
    status = new_floats(rig, n, &a->x);
    if (!status)
        status = new_floats(rig, n, &a->y);
    if (!status)
        status = make_program(a);
    if (!status)
        status = prepare(a);
    if (status)
        addition_close(a);
    else
        fill(a);
    return status;
}

frit_status addition_run(struct addition *a, uint64_t *value)
{
    const double three = 3;
    frit_scalar scalar = {.kind = FRIT_SCALAR_F64};
    const frit_launch launch = {.struct_size = sizeof launch,
                                .n_args = 3,
                                .arg_stride = sizeof *a->args,
                                .n_scalars = 1,
                                .cookie = 77,
                                .program = &a->program,
                                .spec = &a->spec,
                                .variant = &a->variant,
                                .args = a->args,
                                .scalars = &scalar};
    const frit_cmd cmd = {.struct_size = sizeof cmd, .kind = FRIT_CMD_LAUNCH, .launch = &launch};

    memcpy(&scalar.bits, &three, sizeof three);
    return a->rig->backend->submit(a->rig->device, NULL, &cmd, 1, sizeof cmd, NULL, 0, value,
                                   &a->rig->err);
}

void addition_close(struct addition *a)
{
    if (a->has_spec && a->program.table->spec_release)
        a->program.table->spec_release(a->program.self, &a->spec);
    if (a->program.self)
        a->program.table->destroy(a->program.self);
    a->rig->backend->free(a->rig->device, a->x.memory);
    a->rig->backend->free(a->rig->device, a->y.memory);
}
