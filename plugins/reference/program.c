/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: one op each, with one candidate that takes any layout.
 *
 * A program is one piece of memory: the struct, a copy of the op's attributes, what is known of its
 * inputs. Constant once made but for its specs, so that it may be prepared and run from any thread.
 */
#include "program.h"

#include "reference.h"

#include <string.h>

#include <frit/op_table.h>

#include "packed.h"
#include "workspace.h"

/* ---- from an op to a program ---- */

static const frit_operand *operand_at(const frit_op_desc *op, const frit_operand *first, uint32_t i)
{
    return (const frit_operand *)(const void *)((const char *)first +
                                                (size_t)i * op->operand_stride);
}

/* Packed types are for the rows that make and read them. */
static bool type_fits(const frit_op_info *info, uint32_t dtype)
{
    return value_has(dtype) || (info->cls == FRIT_CLASS_QUANT && packed_has(dtype));
}

static bool operands_fit(const frit_op_desc *op, const frit_op_info *info,
                         const frit_operand *first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const frit_operand *operand = operand_at(op, first, i);

        if (operand->kind != FRIT_OPERAND_ABSENT && !type_fits(info, operand->dtype))
            return false;
    }
    return true;
}

/* Whether the op has as many operands as its row; rows that take many tensors take nothing else. */
static bool arity_fits(const frit_op_desc *op, const frit_op_info *info)
{
    uint32_t n_in = 0, n_out = 0;

    while (info->in[n_in].name)
        n_in++;
    while (info->out[n_out].name)
        n_out++;
    return op->n_out == n_out && (op->n_in == n_in || info->in[0].role == FRIT_ROLE_MANY);
}

/* The row of an op that can become a program, else NULL. */
static const struct row *claim(const frit_op_desc *op)
{
    const frit_op_info *info = frit_op_info_at(op->id);
    const struct row *row = row_of(op->id);

    if (!info || !row || op->rev != info->rev || op->flags & FRIT_MUST_UNDERSTAND ||
        !arity_fits(op, info))
        return NULL;
    return operands_fit(op, info, op->in, op->n_in) && operands_fit(op, info, op->out, op->n_out)
               ? row
               : NULL;
}

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err)
{
    (void)self;
    (void)err;
    memset(bits, 0, (count + 63) / 64 * sizeof *bits);
    for (uint32_t i = 0; i < count; i++) {
        const void *op = (const char *)ops + (size_t)i * stride;

        if (claim(op))
            bits[i / 64] |= 1ull << i % 64;
    }
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

/* The op's record in the size this driver knows: a shorter one is filled up with zeros. */
static void copy_attrs(void *to, uint64_t bytes, const void *from)
{
    uint32_t given;

    memset(to, 0, bytes);
    if (!from)
        return;
    memcpy(&given, from, sizeof given);
    memcpy(to, from, given < bytes ? given : bytes);
}

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
        const frit_operand *operand = operand_at(op, op->in, i);

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
    program = plug_alloc(&instance->plug, bytes, _Alignof(max_align_t));
    if (!program)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory for a program of %s",
                         row->name);
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
    copy_attrs(program->attrs, record->size, op->attrs);
    copy_operands(program, op);
    program->n_launch_scalars = program->n_scalars + launch_reals(record) + op->n_extra;
    out->table = &program_table;
    out->self = program;
    return FRIT_OK;
}
