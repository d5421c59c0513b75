/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: they know how many ops, arguments, scalars and bounds they have, so that what the host
 * gives at prepare and launch can be compared, and nothing else.
 *
 * A program is one piece of memory and constant once made, but for `compiled`. */
#include <string.h>
#include <time.h>

#include <frit/op_table.h>

#include "null.h"

/* ---- what an op has ---- */

bool op_known(const frit_op_desc *op)
{
    const frit_op_info *info = frit_op_info_at(op->id);

    return info && op->rev == info->rev && !(op->flags & FRIT_MUST_UNDERSTAND);
}

void op_extras(const frit_op_desc *op, uint32_t *n_scalars, uint32_t *n_bounds)
{
    const frit_op_info *info = frit_op_info_at(op->id);
    const frit_record_info *record = frit_record_info_at(info->record);
    uint32_t rank = op->n_in ? frit_operand_at(op, op->in, 0)->rank : 0;

    *n_scalars = op->n_extra;
    *n_bounds = 0;
    for (uint32_t i = 0; i < op->n_in; i++)
        *n_scalars += frit_operand_at(op, op->in, i)->kind == FRIT_OPERAND_SCALAR;
    for (uint32_t i = 0; i < record->n_fields; i++)
        if (record->field[i].use == FRIT_USE_LAUNCH) {
            *n_scalars += record->field[i].type == FRIT_ATTR_REAL;
            *n_bounds += record->field[i].type == FRIT_ATTR_SLICES ? 3 * rank : 0;
            *n_bounds += record->field[i].type == FRIT_ATTR_DIMS ? rank : 0;
        }
}

/* ---- slots of frit.program/1 ---- */

static frit_status program_describe(void *self, frit_program_info *out, frit_err *err)
{
    struct program *program = self;
    frit_status status = null_count_call(program->instance, NULL_CALL_describe, err);

    if (status)
        return status;
    out->n_candidates = 1;
    out->candidate_stride = sizeof program->candidate;
    out->n_ops = program->cover.n_ops;
    out->name = program->fused ? FRIT_STR("null block") : FRIT_STR("null op");
    out->candidates = &program->candidate;
    return FRIT_OK;
}

void program_destroy(void *self)
{
    struct program *program = self;

    for (struct spec_memory *memory = program->specs, *next; memory; memory = next) {
        next = memory->next;
        null_free(program->instance, memory);
    }
    null_uncount(program->instance, NULL_COUNT_programs_now, 1);
    null_free(program->instance, program);
}

/* Whether both lie densely, row by row, with the same dims. */
static bool lie_alike(const frit_arg_sig *a, const frit_arg_sig *b)
{
    int64_t dense = 1;

    if (a->dtype == FRIT_NO_DTYPE || a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t d = a->rank; d-- > 0;) {
        if (a->dims[d] != b->dims[d] || (a->dims[d] != 1 && a->strides[d] != dense))
            return false;
        dense *= a->dims[d];
    }
    return true;
}

static frit_status check_signature(const struct program *program, uint32_t candidate,
                                   const frit_signature *sig, frit_err *err)
{
    const struct cover *cover = &program->cover;

    if (candidate != 0 || sig->n_in != cover->n_in || sig->n_out != cover->n_out ||
        sig->n_scalars != cover->n_scalars)
        return null_fail(program->instance, err, FRIT_INVALID,
                         "null: candidate %u, %u inputs, %u outputs, %u scalars for a program with "
                         "1 candidate, %u inputs, %u outputs, %u scalars",
                         candidate, sig->n_in, sig->n_out, sig->n_scalars, cover->n_in,
                         cover->n_out, cover->n_scalars);
    for (uint32_t i = 0; i < cover->n_in + cover->n_out; i++)
        if (frit_arg_sig_at(sig, i)->dtype != program->dtypes[i])
            return null_fail(program->instance, err, FRIT_INVALID,
                             "null: argument %u has element type %u where the op said %u", i,
                             frit_arg_sig_at(sig, i)->dtype, program->dtypes[i]);
    return FRIT_OK;
}

/* All sizes, where they are part of the variant; false if there are too many. */
static bool write_variant(const frit_signature *sig, frit_variant *variant)
{
    variant->n_bytes = 0;
    for (uint32_t i = 0; i < sig->n_in + sig->n_out; i++) {
        const frit_arg_sig *arg = frit_arg_sig_at(sig, i);
        uint32_t bytes = arg->rank * (uint32_t)sizeof arg->dims[0];

        if (bytes > sizeof variant->bytes - variant->n_bytes)
            return false;
        memcpy(variant->bytes + variant->n_bytes, arg->dims, bytes);
        variant->n_bytes += bytes;
    }
    return true;
}

/* Each output with the inputs whose memory it may take; one piece of memory, of the spec. */
static frit_status write_outputs(struct program *program, const frit_signature *sig,
                                 frit_launch_spec *out, frit_err *err)
{
    uint64_t alias_bytes = program->cover.n_in * sizeof(uint32_t);
    struct spec_memory *memory = null_alloc(
        program->instance,
        sizeof *memory + program->cover.n_out * (sizeof(frit_output_spec) + alias_bytes));
    frit_output_spec *outputs = (frit_output_spec *)(void *)(memory + 1);
    uint32_t *alias = (uint32_t *)(outputs + program->cover.n_out);

    if (!memory)
        return null_fail(program->instance, err, FRIT_NO_HOST_MEMORY, "null: no memory for a spec");
    memory->next = atomic_load(&program->specs);
    while (!atomic_compare_exchange_weak(&program->specs, &memory->next, memory))
        ;
    for (uint32_t o = 0; o < program->cover.n_out; o++) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < program->cover.n_in; i++)
            if (lie_alike(frit_arg_sig_at(sig, i), frit_arg_sig_at(sig, sig->n_in + o)))
                alias[n++] = i;
        outputs[o] = (frit_output_spec){.alias = alias, .n_alias = n};
        alias += n;
    }
    out->n_outputs = program->cover.n_out;
    out->output_stride = sizeof *outputs;
    out->outputs = outputs;
    return FRIT_OK;
}

static void write_derived(const frit_signature *sig, frit_launch_spec *out)
{
    static const frit_derived_spec first = {.tag = 1, .bytes = 256};

    if (!sig->n_in || !frit_arg_sig_at(sig, 0)->dtype)
        return;
    for (uint32_t d = 0; d < frit_arg_sig_at(sig, 0)->rank; d++)
        if (frit_arg_sig_at(sig, 0)->dims[d] == 0)
            return;
    out->n_derived = 1;
    out->derived_stride = sizeof first;
    out->derived = &first;
}

static frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                                   frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    struct program *program = self;
    const struct options *options = &program->instance->options;
    frit_status status = null_count_call(program->instance, NULL_CALL_prepare, err);

    if (!status)
        status = check_signature(program, candidate, sig, err);
    if (status)
        return status;
    variant->n_bytes = 0;
    if (options->static_shapes && !write_variant(sig, variant))
        return null_fail(program->instance, err, FRIT_UNSUPPORTED,
                         "null: the sizes of %u arguments are too many for a variant",
                         sig->n_in + sig->n_out);
    if (options->derive)
        write_derived(sig, out);
    if (program->cover.n_out)
        status = write_outputs(program, sig, out, err);
    if (status)
        return status;
    null_count(program->instance, NULL_COUNT_specs_now, 1);
    if (options->compiles && (options->static_shapes || !atomic_load(&program->compiled)))
        return FRIT_PREPARE_NEEDS_COMPILE;
    return FRIT_OK;
}

static void program_spec_release(void *self, const frit_launch_spec *spec)
{
    const struct program *program = self;

    (void)spec;
    null_uncount(program->instance, NULL_COUNT_specs_now, 1);
}

static bool is_cancelled(const frit_cancel *cancel)
{
    return cancel && __atomic_load_n(&cancel->requested, __ATOMIC_ACQUIRE);
}

/* Whether the gate lets one more compile end; takes its place then. */
static bool pass_gate(struct instance *instance)
{
    uint64_t left = atomic_load(&instance->gate_left);

    while (left && left != UINT64_MAX)
        if (atomic_compare_exchange_weak(&instance->gate_left, &left, left - 1))
            return true;
    return left == UINT64_MAX;
}

static frit_status program_compile(void *self, uint32_t candidate, const frit_variant *variant,
                                   const frit_cancel *cancel, frit_err *err)
{
    static const struct timespec millisecond = {0, 1000000};
    struct program *program = self;
    struct instance *instance = program->instance;
    int64_t left = instance->options.compile_ms;
    frit_status status = null_count_call(instance, NULL_CALL_compile, err);

    (void)candidate;
    (void)variant;
    if (status)
        return status;
    null_count(instance, NULL_COUNT_compiles_now, 1);
    while (left-- > 0 || (instance->options.gate && !pass_gate(instance))) {
        if (is_cancelled(cancel)) {
            null_count(instance, NULL_COUNT_cancels, 1);
            status = null_fail(instance, err, FRIT_CANCELLED, "null: compile cancelled");
            break;
        }
        nanosleep(&millisecond, NULL);
    }
    null_uncount(instance, NULL_COUNT_compiles_now, 1);
    if (!status)
        atomic_store(&program->compiled, true);
    return status;
}

/* ---- state ---- */

/* A saved program: this head, then a 32-bit type per argument. */
struct state_head {
    char magic[8];
    struct cover cover;
};

static const char state_magic[8] = {'n', 'u', 'l', 'l', ' ', '1', '.', '0'};

static struct state_head head_of(const struct program *program)
{
    struct state_head head = {.cover = program->cover};

    memcpy(head.magic, state_magic, sizeof head.magic);
    return head;
}

static frit_status program_to_state(void *self, void *bytes, uint64_t *n_bytes, frit_err *err)
{
    struct program *program = self;
    uint64_t n_dtypes = (uint64_t)program->cover.n_in + program->cover.n_out;
    uint64_t capacity = *n_bytes, dtype_bytes = n_dtypes * sizeof program->dtypes[0];
    frit_status status = null_count_call(program->instance, NULL_CALL_to_state, err);
    struct state_head head = head_of(program);

    if (status)
        return status;
    *n_bytes = sizeof head + dtype_bytes;
    if (capacity < sizeof head)
        return FRIT_OK;
    memcpy(bytes, &head, sizeof head);
    capacity -= sizeof head;
    memcpy((char *)bytes + sizeof head, program->dtypes,
           capacity < dtype_bytes ? capacity : dtype_bytes);
    return FRIT_OK;
}

bool program_state_is(const struct program *program, const void *bytes, uint64_t n_bytes)
{
    uint64_t n_dtypes = (uint64_t)program->cover.n_in + program->cover.n_out;
    uint64_t dtype_bytes = n_dtypes * sizeof program->dtypes[0];
    struct state_head head = head_of(program);

    return n_bytes == sizeof head + dtype_bytes && memcmp(bytes, &head, sizeof head) == 0 &&
           memcmp((const char *)bytes + sizeof head, program->dtypes, dtype_bytes) == 0;
}

/* ---- making ---- */

static const frit_program_table program_table = {
    .struct_size = sizeof(frit_program_table),
    .describe = program_describe,
    .prepare = program_prepare,
    .compile = program_compile,
    .destroy = program_destroy,
    .to_state = program_to_state,
    .spec_release = program_spec_release,
};

frit_status program_create(struct instance *instance, const struct cover *cover, bool fused,
                           frit_program *out, struct program **made, frit_err *err)
{
    uint64_t n_dtypes = (uint64_t)cover->n_in + cover->n_out;
    struct program *program =
        null_alloc(instance, sizeof *program + n_dtypes * sizeof program->dtypes[0]);

    if (!program)
        return null_fail(instance, err, FRIT_NO_HOST_MEMORY, "null: no memory for a program");
    *program = (struct program){.instance = instance,
                                .candidate = {.struct_size = sizeof(frit_candidate),
                                              .version = 1,
                                              .identity = FRIT_STR("null")},
                                .cover = *cover,
                                .fused = fused};
    out->table = &program_table;
    out->self = program;
    *made = program;
    null_count(instance, NULL_COUNT_programs_now, 1);
    return FRIT_OK;
}

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err)
{
    struct instance *instance = ((struct device *)self)->instance;
    frit_status status = null_count_call(instance, NULL_CALL_supports, err);

    memset(bits, 0, (count + 63) / 64 * sizeof *bits);
    if (status)
        return status;
    for (uint32_t i = 0; i < count; i++) {
        const void *op = (const char *)ops + (size_t)i * stride;

        if (op_known(op) &&
            !null_listed(instance->options.refuse,
                         frit_op_info_at(((const frit_op_desc *)op)->id)->name, NULL))
            bits[i / 64] |= 1ull << i % 64;
    }
    return FRIT_OK;
}

frit_status program_for_op(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    struct instance *instance = ((struct device *)self)->instance;
    struct cover cover = {.n_ops = 1, .n_in = op->n_in, .n_out = op->n_out};
    frit_status status = null_count_call(instance, NULL_CALL_op_program, err);
    struct program *program;

    if (status)
        return status;
    if (!op_known(op))
        return null_fail(instance, err, FRIT_UNSUPPORTED, "null: no program for op %u, rev %u",
                         op->id, op->rev);
    op_extras(op, &cover.n_scalars, &cover.n_bounds);
    status = program_create(instance, &cover, false, out, &program, err);
    if (!status)
        program->fails = null_op_fault(instance, op);
    for (uint32_t i = 0; i < op->n_in + op->n_out && !status; i++) {
        const frit_operand *operand = i < op->n_in ? frit_operand_at(op, op->in, i)
                                                   : frit_operand_at(op, op->out, i - op->n_in);

        program->dtypes[i] = operand->kind == FRIT_OPERAND_TENSOR ? operand->dtype : FRIT_NO_DTYPE;
    }
    return status;
}

/* ---- launching ---- */

frit_status program_check(struct instance *instance, const frit_launch *launch, frit_err *err)
{
    const struct program *program = launch->program->self;
    const struct cover *cover = &program->cover;

    if (launch->program->table != &program_table)
        return null_fail(instance, err, FRIT_INVALID, "null: a program of another driver");
    if (launch->n_args != cover->n_in + cover->n_out || launch->n_scalars != cover->n_scalars ||
        launch->n_bounds != cover->n_bounds)
        return null_fail(instance, err, FRIT_INVALID,
                         "null: launch with %u arguments, %u scalars, %u bounds of a program with "
                         "%u, %u, %u",
                         launch->n_args, launch->n_scalars, launch->n_bounds,
                         cover->n_in + cover->n_out, cover->n_scalars, cover->n_bounds);
    if (instance->options.compiles && !atomic_load(&program->compiled))
        return null_fail(instance, err, FRIT_INVALID, "null: a program that was never compiled");
    return FRIT_OK;
}
