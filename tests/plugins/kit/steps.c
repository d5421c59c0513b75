/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"

#include <string.h>

int steps_open(void **state)
{
    static struct rig rig;

    memset(&rig, 0, sizeof rig);
    rig_open(&rig);
    *state = &rig;
    return 0;
}

int steps_close(void **state)
{
    rig_close(*state);
    return 0;
}

static frit_operand operand(uint32_t value)
{
    if (value == 0)
        return (frit_operand){.kind = FRIT_OPERAND_SCALAR, .dtype = FRIT_F32};
    return (frit_operand){.kind = FRIT_OPERAND_TENSOR,
                          .dtype = FRIT_F32,
                          .value = value,
                          .rank = 2,
                          .extent = {2, 3}};
}

void op_of(struct op *op, uint32_t id, uint32_t a, uint32_t b, uint32_t y, uint32_t dead)
{
    const frit_op_info *info = frit_op_info_at(id);

    memset(op, 0, sizeof *op);
    op->in[0] = operand(a);
    op->in[1] = operand(b);
    op->out[0] = operand(y);
    op->dead[0] = dead;
    op->attrs.struct_size = frit_record_info_at(info->record)->size;
    op->desc = (frit_op_desc){.struct_size = sizeof op->desc,
                              .id = id,
                              .rev = info->rev,
                              .n_out = 1,
                              .n_dead = dead != 0,
                              .operand_stride = sizeof(frit_operand),
                              .in = op->in,
                              .out = op->out,
                              .attrs = &op->attrs,
                              .dead = op->dead};
    while (info->in[op->desc.n_in].name)
        op->desc.n_in++;
}

frit_program program_for(struct rig *rig, const struct op *op)
{
    frit_program program = {.struct_size = sizeof program};

    assert_int_equal(rig->backend->op_program(rig->device, &op->desc, &program, &rig->err),
                     FRIT_OK);
    return program;
}

frit_arg_sig sig_of(int64_t rows, int64_t columns, bool turned)
{
    return (frit_arg_sig){.dtype = FRIT_F32,
                          .rank = 2,
                          .dims = {rows, columns},
                          .strides = {turned ? 1 : columns, turned ? rows : 1}};
}

frit_status prepare(struct rig *rig, const frit_program *program, const frit_arg_sig *args,
                    uint32_t n_in, frit_launch_spec *spec, frit_variant *variant)
{
    const frit_signature sig = {.struct_size = sizeof sig,
                                .n_in = n_in,
                                .n_out = 1,
                                .arg_stride = sizeof *args,
                                .args = args};

    *spec = (frit_launch_spec){.struct_size = sizeof *spec};
    *variant = (frit_variant){.struct_size = sizeof *variant};
    return program->table->prepare(program->self, 0, &sig, spec, variant, &rig->err);
}

void launch_of(struct rig *rig, struct launch *l, const frit_program *program, uint32_t n)
{
    const frit_alloc_desc desc = {sizeof desc, 0, 24, 64};

    memset(l, 0, sizeof *l);
    l->memory.struct_size = sizeof l->memory;
    assert_int_equal(rig->backend->alloc(rig->device, &desc, &l->memory, &rig->err), FRIT_OK);
    for (uint32_t i = 0; i < n; i++)
        l->args[i] = (frit_arg){.memory = l->memory.memory,
                                .extent = 24,
                                .dtype = FRIT_F32,
                                .rank = 2,
                                .dims = {2, 3},
                                .strides = {3, 1}};
    l->launch = (frit_launch){.struct_size = sizeof l->launch,
                              .n_args = n,
                              .arg_stride = sizeof *l->args,
                              .cookie = 9,
                              .program = program,
                              .spec = &l->spec,
                              .args = l->args,
                              .scalars = l->scalars,
                              .bounds = l->bounds,
                              .variant = &l->variant};
}

void set_scalar(struct launch *l, uint32_t i, double value)
{
    l->scalars[i].kind = FRIT_SCALAR_F64;
    memcpy(&l->scalars[i].bits, &value, sizeof value);
}

frit_status submit_and_wait(struct rig *rig, const struct launch *l, frit_failure *failure)
{
    const frit_cmd cmd = {.struct_size = sizeof cmd, .kind = FRIT_CMD_LAUNCH, .launch = &l->launch};
    uint64_t value = 0;
    frit_status status =
        rig->backend->submit(rig->device, NULL, &cmd, 1, sizeof cmd, NULL, 0, &value, &rig->err);

    *failure = (frit_failure){.struct_size = sizeof *failure};
    return status ? status : rig->backend->wait(rig->device, NULL, value, 0, failure, &rig->err);
}
