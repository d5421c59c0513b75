/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: one op each, with one candidate that takes any layout.
 *
 * A program is one piece of memory: the struct, a copy of the op's attributes, what is known of its
 * inputs. Constant once made but for its specs, so that it may be prepared and run from any thread.
 */
#include "program.h"

#include "reference.h"

#include <string.h>

#include "packed.h"
#include "util/op.h"
#include "workspace.h"

/* ---- from an op to a program ---- */

/* Packed types are for the rows that make and read them. */
static bool takes_dtype(const void *info, uint32_t dtype)
{
    return value_has(dtype) ||
           (((const frit_op_info *)info)->cls == FRIT_CLASS_QUANT && packed_has(dtype));
}

/* The row of an op that can become a program, else NULL. */
static const struct row *claim(const frit_op_desc *op)
{
    const frit_op_info *info = op_known(op);

    return info && op_dtypes_fit(op, takes_dtype, info) ? row_of(op->id) : NULL;
}

static bool runs(const void *ctx, const frit_op_desc *op)
{
    (void)ctx;
    return claim(op);
}

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err)
{
    (void)self;
    (void)err;
    op_supports(ops, count, stride, bits, runs, NULL);
    return FRIT_OK;
}

static frit_status program_describe(void *self, frit_program_info *out, frit_err *err)
{
    const struct program *program = self;

    (void)err;
    out->n_candidates = 1;
    out->candidate_stride = sizeof program->candidate;
    out->n_ops = 1;
    out->name = (frit_str){program->row->name, strlen(program->row->name)};
    out->candidates = &program->candidate;
    return FRIT_OK;
}

static void program_destroy(void *self)
{
    struct program *program = self;

    specs_fini(&program->specs);
    plug_free(&program->instance->plug, program);
}

/* ---- preparing ---- */

static frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                                   frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    struct program *program = self;

    if (candidate != 0 || sig->n_in != program->n_in || sig->n_out != program->n_out)
        return plug_fail(
            &program->instance->plug, err, FRIT_INVALID,
            "%s has candidate 0, %u inputs, %u outputs; requested: candidate %u, %u, %u",
            program->row->name, program->n_in, program->n_out, candidate, sig->n_in, sig->n_out);
    if (sig->flags & FRIT_MUST_UNDERSTAND)
        return plug_fail(&program->instance->plug, err, FRIT_UNSUPPORTED,
                         "unknown flags in the signature of %s", program->row->name);
    out->workspace_bytes = workspace_bytes(program->row->needs, sig);
    out->workspace_align = out->workspace_bytes ? _Alignof(double) : 0;
    variant->n_bytes = 0;
    return program->row->needs & ROW_INPLACE ? specs_alias(&program->specs, sig, out, err)
                                             : FRIT_OK;
}

static void program_spec_release(void *self, const frit_launch_spec *spec)
{
    specs_release(&((struct program *)self)->specs, spec);
}

/* ---- launching ---- */

static const frit_program_table program_table = {
    .struct_size = sizeof(frit_program_table),
    .describe = program_describe,
    .prepare = program_prepare,
    .destroy = program_destroy,
    .spec_release = program_spec_release,
};

frit_status program_check(void *device, const frit_launch *launch, frit_err *err)
{
    const struct instance *instance = ((const struct device *)device)->instance;
    const struct program *program;

    if (launch->program->table != &program_table)
        return plug_fail(&instance->plug, err, FRIT_INVALID, "a program of another driver");
    program = launch->program->self;
    if (launch->n_args != program->n_in + program->n_out)
        return plug_fail(&instance->plug, err, FRIT_INVALID, "%s takes %u arguments, not %u",
                         program->row->name, program->n_in + program->n_out, launch->n_args);
    if (launch->n_scalars != program->n_launch_scalars)
        return plug_fail(&instance->plug, err, FRIT_INVALID, "%s takes %u scalars, not %u",
                         program->row->name, program->n_launch_scalars, launch->n_scalars);
    return FRIT_OK;
}

frit_status program_run(void *device, const frit_launch *launch, frit_err *err)
{
    const struct program *program = launch->program->self;
    const struct call call = {program, launch};

    (void)device;
    (void)err;
    program->row->run(&call);
    return FRIT_OK;
}

frit_str program_name(const frit_launch *launch)
{
    const char *name = ((const struct program *)launch->program->self)->row->name;

    return (frit_str){name, strlen(name)};
}

/* ---- making ---- */

/* REAL attributes of a record that are given at launch. */
static uint32_t launch_reals(const frit_record_info *record)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < record->n_fields; i++)
        n += record->field[i].type == FRIT_ATTR_REAL && record->field[i].use == FRIT_USE_LAUNCH;
    return n;
}

static void copy_operands(struct program *program, const frit_op_desc *op)
{
    for (uint32_t i = 0; i < op->n_in; i++) {
        const frit_operand *operand = frit_operand_at(op, op->in, i);

        program->operand_kind[i] = (uint8_t)operand->kind;
        program->operand_dtype[i] =
            operand->kind == FRIT_OPERAND_ABSENT ? FRIT_NO_DTYPE : operand->dtype;
        program->n_scalars += operand->kind == FRIT_OPERAND_SCALAR;
    }
}

frit_status program_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    const struct instance *instance = ((const struct device *)self)->instance;
    const frit_op_info *info = frit_op_info_at(op->id);
    const struct row *row = claim(op);
    struct program *program;
    const frit_record_info *record;
    uint64_t bytes;
    char *rest;

    if (!row)
        return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED, "no program for op %u %s, rev %u",
                         op->id, info ? info->name : "of unknown name", op->rev);
    record = frit_record_info_at(info->record);
    bytes = sizeof *program + record->size +
            op->n_in * (sizeof *program->operand_dtype + sizeof *program->operand_kind);
    program = plug_new(&instance->plug, bytes, row->name, err);
    if (!program)
        return FRIT_NO_HOST_MEMORY;
    rest = (char *)(program + 1);
    *program = (struct program){
        .instance = instance,
        .row = row,
        .candidate = {.struct_size = sizeof(frit_candidate),
                      .version = 1,
                      .identity = FRIT_STR("reference")},
        .n_in = op->n_in,
        .n_out = op->n_out,
        .attrs = rest,
        .operand_dtype = (uint32_t *)(void *)(rest + record->size),
        .operand_kind = (uint8_t *)rest + record->size + op->n_in * sizeof(uint32_t),
    };
    specs_init(&program->specs, &instance->plug);
    op_copy_attrs(op, record, program->attrs);
    copy_operands(program, op);
    program->n_launch_scalars = program->n_scalars + launch_reals(record) + op->n_extra;
    out->table = &program_table;
    out->self = program;
    return FRIT_OK;
}
