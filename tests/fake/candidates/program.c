/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of one op over f32: add, mul and sum with all candidates that are offered, copy with
 * the first alone. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "candidates.h"
#include "util/op.h"

/* ---- which ops ---- */

static const uint32_t rows[] = {FRIT_OP_add, FRIT_OP_mul,  FRIT_OP_div,
                                FRIT_OP_sum, FRIT_OP_copy, FRIT_OP_mean};

static bool takes_dtype(const void *ctx, uint32_t dtype)
{
    (void)ctx;
    return dtype == FRIT_F32;
}

static bool runs(const void *ctx, const frit_op_desc *op)
{
    const struct instance *instance = ctx;

    if (op->id == FRIT_OP_mean && !instance->options.means)
        return false;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i] == op->id)
            return op_known(op) && op_dtypes_fit(op, takes_dtype, NULL);
    return false;
}

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err)
{
    (void)err;
    op_supports(ops, count, stride, bits, runs, ((struct device *)self)->instance);
    return FRIT_OK;
}

/* ---- slots ---- */

static frit_status program_describe(void *self, frit_program_info *out, frit_err *err)
{
    struct program *program = self;
    uint32_t turn = atomic_fetch_add(&program->describes, 1) % DESCRIBES;

    (void)err;
    out->n_candidates = program->n_offers;
    out->candidate_stride = sizeof(frit_candidate);
    out->n_ops = program->n_steps ? program->n_steps : 1;
    out->name = FRIT_STR("candidates");
    out->candidates = program->list[turn];
    return FRIT_OK;
}

/* Workspace, or the refusal, of a candidate that has one. */
static frit_status prepare_kind(struct program *program, enum kind kind, const frit_signature *sig,
                                frit_launch_spec *out, frit_err *err)
{
    struct instance *instance = program->instance;
    const uint64_t n = atomic_fetch_add(&instance->prepares[kind], 1);

    if (kind == KIND_big_workspace)
        out->workspace_bytes = (uint64_t)instance->options.workspace_bytes;
    if (kind == KIND_refuses ||
        (kind == KIND_refuses_size && sig->args[0].dims[0] == instance->options.refuse_size) ||
        (kind == KIND_refuses_later && n >= (uint64_t)instance->options.refuse_after))
        return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED, "%s: not with this signature",
                         kinds[kind].name.ptr);
    return FRIT_OK;
}

/* Whether it is an add that is refused for its size. */
static bool is_refused(const struct program *program, const frit_signature *sig)
{
    const int64_t limit = program->instance->options.add_refuses;
    const frit_arg_sig *out = frit_arg_sig_at(sig, sig->n_in);
    int64_t n = 1;

    for (uint32_t d = 0; d < out->rank; d++)
        n *= out->dims[d];
    return limit && program->op == FRIT_OP_add && n >= limit;
}

static frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                                   frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    static const frit_phase one = {{1, 1, 1}, {1, 1, 1}};
    struct program *program = self;
    const struct plug *plug = &program->instance->plug;
    frit_status status;

    variant->n_bytes = 0;
    if (sig->flags & FRIT_MUST_UNDERSTAND)
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "unknown flags");
    if (candidate >= program->n_offers)
        return plug_fail(plug, err, FRIT_INVALID, "there is no candidate %u", candidate);
    if (is_refused(program, sig))
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "an add of so many elements");
    status = prepare_kind(program, program->offers[candidate].kind, sig, out, err);
    if (!status && !program->reduces)
        status = specs_alias(&program->specs, sig, out, err);
    if (status) {
        specs_release(&program->specs, out);
        return status;
    }
    out->n_phases = 1;
    out->phases = &one;
    return program->instance->options.compiles && !atomic_load(&program->compiled[candidate])
               ? FRIT_PREPARE_NEEDS_COMPILE
               : FRIT_OK;
}

static frit_status program_compile(void *self, uint32_t candidate, const frit_variant *variant,
                                   const frit_cancel *cancel, frit_err *err)
{
    struct program *program = self;
    struct instance *instance = program->instance;

    (void)variant;
    (void)cancel;
    (void)err;
    atomic_fetch_add(&instance->compiles[program->offers[candidate].kind], 1);
    atomic_store(&program->compiled[candidate], true);
    return FRIT_OK;
}

static int32_t program_priority(void *self, uint32_t candidate, const frit_signature *sig)
{
    const struct program *program = self;
    struct instance *instance = program->instance;
    const enum kind kind = program->offers[candidate].kind;

    (void)sig;
    if (kind == KIND_changes_priority)
        return (int32_t)(atomic_fetch_add(&instance->priorities, 1) % 1000);
    return kinds[kind].priority;
}

static void program_spec_release(void *self, const frit_launch_spec *spec)
{
    specs_release(&((struct program *)self)->specs, spec);
}

static void program_destroy(void *self)
{
    struct program *program = self;

    specs_fini(&program->specs);
    plug_free(&program->instance->plug, program);
}

static const frit_program_table table = {
    .struct_size = sizeof(frit_program_table),
    .describe = program_describe,
    .prepare = program_prepare,
    .compile = program_compile,
    .destroy = program_destroy,
    .spec_release = program_spec_release,
    .priority = program_priority,
};

struct program *program_of(const frit_launch *launch)
{
    return launch->program->table == &table ? launch->program->self : NULL;
}

/* ---- making ---- */

static frit_candidate candidate_of(struct program *program, enum kind kind, uint32_t turn)
{
    const struct options *options = &program->instance->options;
    frit_candidate candidate = {.struct_size = sizeof(frit_candidate),
                                .version = (uint32_t)options->version,
                                .numeric_class = kinds[kind].numeric_class,
                                .identity = kinds[kind].name};

    if (kind == KIND_changes_identity)
        candidate.identity = (frit_str){program->identity[turn], strlen(program->identity[turn])};
    if (kind == KIND_changes_host)
        candidate.identity = (frit_str){program->host, strlen(program->host)};
    if (kind == KIND_changes_version)
        candidate.version += turn;
    if (kind == KIND_nameless)
        candidate.identity.len = 0;
    if (kind == KIND_twin)
        candidate.identity = kinds[KIND_first].name;
    return candidate;
}

static void list_candidates(struct program *program)
{
    struct instance *instance = program->instance;
    const uint32_t number = atomic_fetch_add(&instance->programs, 1);

    snprintf(program->host, IDENTITY_BYTES, "changes_host_%x", instance->number);
    if (!program->offers) {
        program->offers = instance->offers;
        program->n_offers = program->op == FRIT_OP_copy ? 1 : instance->n_offers;
    }
    for (uint32_t turn = 0; turn < DESCRIBES; turn++) {
        snprintf(program->identity[turn], IDENTITY_BYTES, "changes_%x_%x", (unsigned)getpid(),
                 number * DESCRIBES + turn);
        for (uint32_t i = 0; i < program->n_offers; i++)
            program->list[turn][i] = candidate_of(program, program->offers[i].kind, turn);
    }
}

static void read_axes(struct program *program, const frit_op_desc *op)
{
    frit_attrs_reduce attrs;

    op_copy_attrs(op, frit_record_info_at(frit_op_info_at(op->id)->record), &attrs);
    program->reduces = true;
    program->keeps = attrs.keep;
    for (int64_t i = 0; i < attrs.axes.count; i++)
        program->is_reduced[attrs.axes.axis[i]] = true;
}

static struct program *create(struct instance *instance, uint32_t op, frit_program *out,
                              frit_err *err)
{
    struct program *program = plug_new(&instance->plug, sizeof *program, "a program", err);

    if (!program)
        return NULL;
    program->instance = instance;
    program->op = op;
    specs_init(&program->specs, &instance->plug);
    out->table = &table;
    out->self = program;
    return program;
}

frit_status program_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    static const struct offer whole = {KIND_whole, 100};
    struct instance *instance = ((struct device *)self)->instance;
    struct program *program;

    if (!runs(instance, op))
        return plug_fail(&instance->plug, err, FRIT_UNSUPPORTED, "no program for op %u", op->id);
    program = create(instance, op->id, out, err);
    if (!program)
        return FRIT_NO_HOST_MEMORY;
    if (op->id == FRIT_OP_sum || op->id == FRIT_OP_mean)
        read_axes(program, op);
    if (op->id == FRIT_OP_mean) {
        program->offers = &whole;
        program->n_offers = 1;
    }
    list_candidates(program);
    return FRIT_OK;
}

frit_status program_fuse(struct instance *instance, const struct step *steps, uint32_t n_steps,
                         frit_program *out, frit_err *err)
{
    static const struct offer fused = {KIND_fused, 100};
    struct program *program = create(instance, FRIT_OP_LIMIT, out, err);

    if (!program)
        return FRIT_NO_HOST_MEMORY;
    program->n_steps = n_steps;
    memcpy(program->steps, steps, n_steps * sizeof *steps);
    fused_list_args(program);
    program->offers = &fused;
    program->n_offers = 1;
    list_candidates(program);
    return FRIT_OK;
}
