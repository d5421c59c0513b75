/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: a block and the kernel under which the device's driver knows it.  One candidate; any
 * layout of the inputs, but of a chain's, which are dense.  Constant once made. */
#include <string.h>

#include "blocks.h"

static frit_status program_describe(void *self, frit_program_info *out, frit_err *err)
{
    const struct program *program = self;

    (void)err;
    out->n_candidates = 1;
    out->candidate_stride = sizeof(program->candidate);
    out->n_ops = program->block.n_ops;
    out->name = fuser_name(program->kind);
    out->candidates = &program->candidate;
    return FRIT_OK;
}

/* ---- what may take an input's memory ---- */

/* The last op that reads a value by itself, and the last that reads it through a view; -1: none.
 * A view that is an output is read from when it is stored. */
struct reads {
    int32_t direct, viewed;
};

static int32_t later(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static struct reads reads_of(const struct block *block, uint16_t value)
{
    bool seen[BLOCK_ARGS] = {false}; /* the value and its views */
    struct reads reads = {-1, -1};

    seen[value] = true;
    for (uint32_t k = 0; k < block->n_ops; k++) {
        const struct block_op *op = &block->ops[k];

        for (uint32_t i = 0; i < op->n_in; i++) {
            if (op->in[i] == BLOCK_NONE || !seen[op->in[i]])
                continue;
            if (op->row->cls == FRIT_CLASS_VIEW)
                seen[op->out] = block->values[op->out].dies != BLOCK_NONE;
            if (op->row->cls == FRIT_CLASS_VIEW || op->in[i] != value)
                reads.viewed = later(reads.viewed, (int32_t)k);
            else
                reads.direct = (int32_t)k;
        }
    }
    return reads;
}

static bool is_dense(const frit_arg_sig *arg)
{
    int64_t dense = 1;

    for (uint32_t d = arg->rank; d-- > 0;) {
        if (arg->dims[d] != 1 && arg->strides[d] != dense)
            return false;
        dense *= arg->dims[d];
    }
    return true;
}

/* Whether the input's elements lie one for one where those of the dense output do. */
static bool lies_like(const frit_arg_sig *in, const frit_arg_sig *out)
{
    return in->rank == out->rank && frit_dtype_bits(in->dtype) == frit_dtype_bits(out->dtype) &&
           memcmp(in->dims, out->dims, in->rank * sizeof(*in->dims)) == 0 && is_dense(in);
}

/* An output is stored by the op that makes it.  It may take the memory of an input that nothing
 * reads from that op on, or that only this op reads, each element just before it is written.
 * Returns how many inputs those are. */
static uint32_t find_aliases(const struct program *program, const frit_signature *sig, uint32_t out,
                             uint32_t *inputs)
{
    const struct block *block = &program->block;
    int32_t maker = block->values[program->args[out]].maker;
    uint32_t cls = block->ops[maker].row->cls;
    bool in_step = cls == FRIT_CLASS_MAP || cls == FRIT_CLASS_CAST || cls == FRIT_CLASS_COPY;
    uint32_t n = 0;

    for (uint32_t i = 0; i < program->n_in; i++) {
        struct reads reads = reads_of(block, program->args[i]);

        if (reads.viewed >= maker || reads.direct > maker)
            continue;
        if (reads.direct < maker ||
            (in_step && lies_like(frit_arg_sig_at(sig, i), frit_arg_sig_at(sig, out))))
            inputs[n++] = i;
    }
    return n;
}

/* ---- prepare ---- */

/* What a spec points to: one piece of memory, with the outputs' aliases at the end. */
struct answer {
    frit_phase phase;
    frit_output_spec outputs[];
};

static frit_status make_answer(const struct program *program, const frit_signature *sig,
                               const frit_phase *phase, frit_launch_spec *out, frit_err *err)
{
    const struct instance *instance = program->instance;
    uint64_t bytes = sizeof(frit_output_spec) + program->n_in * sizeof(uint32_t);
    struct answer *answer =
        instance->core->mem_alloc(instance->host->self, sizeof(*answer) + sig->n_out * bytes, 64);
    uint32_t *inputs;

    if (!answer)
        return blocks_fail(instance, err, FRIT_NO_HOST_MEMORY, "blocks: no memory for a spec");
    inputs = (uint32_t *)(answer->outputs + sig->n_out);
    answer->phase = *phase;
    for (uint32_t k = 0; k < sig->n_out; k++) {
        answer->outputs[k] = (frit_output_spec){
            .alias = inputs, .n_alias = find_aliases(program, sig, sig->n_in + k, inputs)};
        inputs += answer->outputs[k].n_alias;
    }
    out->n_phases = 1;
    out->phases = &answer->phase;
    out->n_outputs = sig->n_out;
    out->output_stride = sizeof(*answer->outputs);
    out->outputs = answer->outputs;
    return FRIT_OK;
}

static void program_spec_release(void *self, const frit_launch_spec *spec)
{
    const struct program *program = self;

    program->instance->core->mem_free(program->instance->host->self, (void *)spec->phases);
}

/* An element for each lane of a chain. */
static frit_status prepare_chain(const struct program *program, const frit_signature *sig,
                                 frit_launch_spec *out, frit_err *err)
{
    frit_phase phase = {.grid = {1, 1, 1}, .group = {CHAIN_LANES, 1, 1}};
    uint64_t count = 1, groups;

    for (uint32_t i = 0; i < program->n_args; i++)
        if (!is_dense(frit_arg_sig_at(sig, i)))
            return blocks_fail(program->instance, err, FRIT_UNSUPPORTED,
                               "blocks: a chain of dense tensors only");
    for (uint32_t d = 0; d < sig->args->rank; d++)
        count *= (uint64_t)sig->args->dims[d];
    groups = (count + CHAIN_LANES - 1) / CHAIN_LANES;
    if (groups > INT32_MAX)
        return blocks_fail(program->instance, err, FRIT_UNSUPPORTED,
                           "blocks: a chain of more groups than a grid has");
    phase.grid[0] = (uint32_t)groups;
    out->driver[0] = count;
    return make_answer(program, sig, &phase, out, err);
}

static frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                                   frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    const struct program *program = self;
    int64_t extents[BLOCK_EXTENTS];

    if (candidate != 0 || sig->n_in != program->n_in || sig->n_in + sig->n_out != program->n_args)
        return blocks_fail(program->instance, err, FRIT_INVALID,
                           "blocks: the signature has other arguments than the program");
    if (sig->flags & FRIT_MUST_UNDERSTAND)
        return blocks_fail(program->instance, err, FRIT_UNSUPPORTED,
                           "blocks: unknown flags in a signature");
    variant->n_bytes = 0;
    if (is_chain(program->kind))
        return prepare_chain(program, sig, out, err);
    machine_extents(program, sig->args->dims, sig->arg_stride, extents);
    out->workspace_bytes = machine_workspace(program, extents);
    out->workspace_align = 8;
    return make_answer(program, sig, &(frit_phase){{1, 1, 1}, {1, 1, 1}}, out, err);
}

static frit_status program_to_state(void *self, void *bytes, uint64_t *n_bytes, frit_err *err)
{
    const struct program *program = self;
    struct state state = state_of(&program->block, program->kind);

    (void)err;
    if (*n_bytes)
        memcpy(bytes, &state, *n_bytes < sizeof(state) ? *n_bytes : sizeof(state));
    *n_bytes = sizeof(state);
    return FRIT_OK;
}

static frit_status program_record(void *self, const frit_launch *launch, struct frit_cmd *cmds,
                                  uint32_t capacity, uint32_t *count, frit_err *err)
{
    const struct program *program = self;
    const frit_phase *phase = launch->spec->phases;

    (void)err;
    *count = 1;
    if (capacity < 1)
        return FRIT_OK;
    cmds[0] = (frit_cmd){.struct_size = sizeof(frit_cmd),
                         .kind = FRIT_CMD_DISPATCH,
                         .launch = launch,
                         .kernel = program->kernel};
    memcpy(cmds[0].grid, phase->grid, sizeof(phase->grid));
    memcpy(cmds[0].group, phase->group, sizeof(phase->group));
    return FRIT_OK;
}

static void program_destroy(void *self)
{
    struct program *program = self;

    program->kernel_unload(program->device, program->kernel);
    program->instance->core->mem_free(program->instance->host->self, program);
}

const frit_program_table program_table = {
    .struct_size = sizeof(program_table),
    .describe = program_describe,
    .prepare = program_prepare,
    .destroy = program_destroy,
    .to_state = program_to_state,
    .record = program_record,
    .spec_release = program_spec_release,
};

static frit_status load_kernel(const frit_fuser_device *device, struct program *program,
                               frit_err *err)
{
    const frit_host_fn function = {
        .struct_size = sizeof(function), .run = machine_run, .ctx = program};
    uint32_t words[CHAIN_WORDS];
    char text[CHAIN_PTX_BYTES];

    if (!is_chain(program->kind))
        return device->kernel_load(device->self, FRIT_STR(FRIT_FORMAT_HOST_FN), &function,
                                   sizeof(function), &program->kernel, err);
    if (program->kind == FUSER_CHAIN_PTX)
        return device->kernel_load(device->self, FRIT_STR(FRIT_FORMAT_PTX), text,
                                   chain_ptx(program, text), &program->kernel, err);
    return device->kernel_load(device->self, FRIT_STR(FRIT_FORMAT_SPIRV), words,
                               chain_words(program, words) * sizeof(*words), &program->kernel, err);
}

frit_status program_create(const struct instance *instance, const frit_fuser_device *device,
                           enum fuser_kind kind, const struct block *block, frit_program *out,
                           frit_err *err)
{
    struct program *program = instance->core->mem_alloc(instance->host->self, sizeof(*program), 64);
    frit_status status;

    if (!program)
        return blocks_fail(instance, err, FRIT_NO_HOST_MEMORY, "blocks: no memory for a program");
    *program = (struct program){
        .instance = instance,
        .kind = kind,
        .device = device->self,
        .kernel_unload = device->kernel_unload,
        .native_get = device->native_get,
        .candidate = {.struct_size = sizeof(frit_candidate),
                      .version = 1,
                      .identity = is_chain(kind) ? FRIT_STR("shader") : FRIT_STR("interpreter")},
    };
    block_copy(&program->block, block);
    program->n_args = block_args(block, program->args, &program->n_in);
    status = load_kernel(device, program, err);
    if (status) {
        instance->core->mem_free(instance->host->self, program);
        return status;
    }
    out->table = &program_table;
    out->self = program;
    return FRIT_OK;
}
