/* SPDX-License-Identifier: Apache-2.0 */
#include "add.h"

#include <frit/op_table.h>

static frit_status make(struct rig *rig, struct add *add)
{
    frit_operand operands[3];
    frit_op_desc op = {.struct_size = FRIT_END_OF(frit_op_desc, dead),
                       .id = FRIT_OP_add,
                       .rev = frit_op_info_at(FRIT_OP_add)->rev,
                       .n_in = 2,
                       .n_out = 1,
                       .operand_stride = sizeof(frit_operand),
                       .in = operands,
                       .out = operands + 2};

    for (uint32_t i = 0; i < 3; i++)
        operands[i] = (frit_operand){
            .kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .value = i, .rank = 1, .extent = {2}};
    add->program.struct_size = sizeof add->program;
    return rig->backend->op_program(rig->device, &op, &add->program, &rig->err);
}

static frit_status prepare(struct rig *rig, struct add *add, int64_t n)
{
    frit_arg_sig args[3];
    const frit_signature sig = {.struct_size = sizeof sig,
                                .n_in = 2,
                                .n_out = 1,
                                .arg_stride = sizeof *args,
                                .index_width = 32,
                                .args = args};
    const frit_program_table *table = add->program.table;
    frit_status status;

    for (uint32_t i = 0; i < 3; i++)
        args[i] = (frit_arg_sig){
            .dtype = FRIT_F32, .rank = 1, .align_log2 = 2, .dims = {n}, .strides = {1}};
    add->spec.struct_size = sizeof add->spec;
    add->variant.struct_size = sizeof add->variant;
    status = table->prepare(add->program.self, 0, &sig, &add->spec, &add->variant, &rig->err);
    if (status != FRIT_PREPARE_NEEDS_COMPILE)
        return status;
    return table->compile(add->program.self, 0, &add->variant, NULL, &rig->err);
}

frit_status add_open(struct rig *rig, struct add *add, const struct vector vectors[3], int64_t n)
{
    frit_status status;

    *add = (struct add){0};
    status = make(rig, add);
    if (!status)
        status = prepare(rig, add, n);
    for (uint32_t i = 0; i < 3; i++)
        add->args[i] = (frit_arg){.memory = vectors[i].memory,
                                  .offset = vectors[i].offset,
                                  .extent = (uint64_t)n * sizeof(float),
                                  .dtype = FRIT_F32,
                                  .rank = 1,
                                  .align_log2 = 2,
                                  .flags = i < 2 ? FRIT_ARG_READ : FRIT_ARG_WRITE,
                                  .dims = {n},
                                  .strides = {1}};
    add->launch = (frit_launch){.struct_size = sizeof add->launch,
                                .n_args = 3,
                                .arg_stride = sizeof *add->args,
                                .cookie = 5,
                                .program = &add->program,
                                .spec = &add->spec,
                                .variant = &add->variant,
                                .args = add->args};
    add->cmd =
        (frit_cmd){.struct_size = sizeof add->cmd, .kind = FRIT_CMD_LAUNCH, .launch = &add->launch};
    return status;
}

void add_close(struct add *add)
{
    if (add->program.self)
        add->program.table->destroy(add->program.self);
    add->program.self = NULL;
}

void add_run(struct rig *rig, uint32_t shift)
{
    frit_allocation a = rig_alloc(rig, 64), y = rig_alloc(rig, 64);
    const struct vector vectors[3] = {
        {a.memory, 0}, {a.memory, shift * sizeof(float)}, {y.memory, 0}};
    const float numbers[7] = {1, 10, 100, 1000, 2, 20, 200};
    float got[3];
    struct add add;

    rig_write(rig, a.memory, 0, numbers, sizeof numbers);
    if (add_open(rig, &add, vectors, 3))
        fail_msg("%s", rig->err.text);
    rig_run(rig, &add.cmd, 1);
    rig_read(rig, y.memory, 0, got, sizeof got);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(got[i] == numbers[i] + numbers[i + shift]);
    add_close(&add);
    rig->backend->free(rig->device, a.memory);
    rig->backend->free(rig->device, y.memory);
}
