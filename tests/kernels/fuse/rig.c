/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/fuse/rig.h"

#include <sched.h>
#include <string.h>

#include "ir/eval.h"

/* ---- relative ops ---- */

frit_operand rig_tensor(uint32_t value, uint32_t rank)
{
    frit_operand operand = {
        .kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .value = value, .rank = rank};

    for (uint32_t d = 0; d < rank; d++)
        operand.extent[d] = 2 + d;
    return operand;
}

frit_operand rig_scalar(uint32_t number)
{
    return (frit_operand){.kind = FRIT_OPERAND_SCALAR, .dtype = FRIT_F32, .value = number};
}

static void append(struct rig_ops *ops, uint32_t id, uint32_t n_in, const uint32_t *dead)
{
    uint32_t i = ops->n++;

    ops->op[i] = (frit_op_desc){.struct_size = FRIT_END_OF(frit_op_desc, dead),
                                .id = id,
                                .rev = 1,
                                .n_in = n_in,
                                .n_out = 1,
                                .operand_stride = sizeof(frit_operand),
                                .in = ops->operand[i],
                                .out = ops->operand[i] + n_in,
                                .dead = ops->dead[i]};
    for (uint32_t k = 0; dead && dead[k] != UINT32_MAX; k++)
        ops->dead[i][ops->op[i].n_dead++] = dead[k];
}

void rig_unary(struct rig_ops *ops, uint32_t id, frit_operand x, frit_operand y,
               const uint32_t *dead)
{
    ops->operand[ops->n][0] = x;
    ops->operand[ops->n][1] = y;
    append(ops, id, 1, dead);
}

void rig_binary(struct rig_ops *ops, uint32_t id, frit_operand a, frit_operand b, frit_operand y,
                const uint32_t *dead)
{
    ops->operand[ops->n][0] = a;
    ops->operand[ops->n][1] = b;
    ops->operand[ops->n][2] = y;
    append(ops, id, 2, dead);
}

void rig_chain(struct rig_ops *ops, uint32_t rank)
{
    *ops = (struct rig_ops){0};
    rig_binary(ops, FRIT_OP_add, rig_tensor(0, rank), rig_scalar(0), rig_tensor(2, rank), NULL);
    rig_binary(ops, FRIT_OP_mul, rig_tensor(2, rank), rig_tensor(1, rank), rig_tensor(3, rank),
               RIG_DEAD(2));
    rig_unary(ops, FRIT_OP_neg, rig_tensor(3, rank), rig_tensor(4, rank), RIG_DEAD(3));
}

/* ---- the device ---- */

static void *copy_array(const void *from, size_t count, size_t size)
{
    void *to = calloc(count + 1, size);

    assert_non_null(to);
    if (count)
        memcpy(to, from, count * size);
    return to;
}

static struct kir_module *copy_module(const struct kir_module *from)
{
    struct kir_module *to = copy_array(from, 1, sizeof(*to));

    to->arena = (struct arena){0};
    to->name = arena_text(&to->arena, from->name, strlen(from->name));
    to->args = copy_array(from->args, from->n_args, sizeof(*from->args));
    to->links = copy_array(from->links, from->n_links, sizeof(*from->links));
    to->phases = copy_array(from->phases, from->n_phases, sizeof(*from->phases));
    for (uint32_t i = 0; i < from->n_phases; i++) {
        const struct kir_phase *phase = &from->phases[i];

        to->phases[i].inst = copy_array(phase->inst, phase->n, sizeof(*phase->inst));
        to->phases[i].tiles = copy_array(phase->tiles, phase->n_tiles, sizeof(*phase->tiles));
    }
    return to;
}

static frit_status compile(void *self, struct kir_module *module, const uint8_t *digest,
                           const frit_cancel *cancel, void **code, frit_err *err)
{
    struct rig *rig = self;

    (void)digest;
    (void)cancel;
    (void)err;
    atomic_fetch_add(&rig->n_compiles, 1);
    atomic_fetch_add(&rig->n_compiling, 1);
    while (atomic_load(&rig->held))
        sched_yield();
    atomic_fetch_sub(&rig->n_compiling, 1);
    if (atomic_load(&rig->fails)) {
        atomic_fetch_sub(&rig->fails, 1);
        return FRIT_NO_DEVICE_MEMORY;
    }
    *code = copy_module(module);
    return FRIT_OK;
}

static void release(void *self, void *code)
{
    struct rig *rig = self;

    atomic_fetch_add(&rig->n_releases, 1);
    kir_fini(code);
    free(code);
}

static uint32_t generation(void *self, void *code)
{
    struct rig *rig = self;

    assert_non_null(code);
    return atomic_load(&rig->generation);
}

void rig_init(struct rig *rig)
{
    *rig = (struct rig){.device = {.target = {.lanes = 32,
                                              .lanes_per_row = 32,
                                              .max_lanes = 256,
                                              .units = 4,
                                              .group_bytes = 32768,
                                              .fma = true,
                                              .f64 = true,
                                              .i64 = true,
                                              .exact_div = true,
                                              .denormals = true,
                                              .store_bytes = 1},
                                   .compile = compile,
                                   .release = release,
                                   .generation = generation,
                                   .serial = &rig->serial}};
    rig->device.self = rig;
    assert_int_equal(kernels_open(&rig->device, NULL), FRIT_OK);
}

void rig_fini(struct rig *rig)
{
    kernels_close(&rig->device);
    assert_null(rig->device.codes);
}

void rig_await_compiling(struct rig *rig, uint32_t n)
{
    while (atomic_load(&rig->n_compiling) < n)
        sched_yield();
}

/* ---- programs ---- */

frit_program rig_program(struct rig *rig, const char *fuser, const struct rig_ops *ops)
{
    frit_program program = {.struct_size = sizeof(program)};
    enum { ROOM = 16 };
    frit_fuser list[ROOM] = {{0}};
    uint32_t count;

    assert_int_equal(kernels_prototypes(&rig->device, list, sizeof(*list), ROOM, &count, NULL),
                     FRIT_OK);
    assert_in_range(count, 1, ROOM);
    for (uint32_t i = 0; i < count; i++) {
        void *clone = NULL;

        if (list[i].name.len == strlen(fuser) &&
            memcmp(list[i].name.ptr, fuser, strlen(fuser)) == 0) {
            assert_int_equal(kernels_clone(list[i].prototype, &clone, NULL), FRIT_OK);
            kernels_push(clone, ops->op, ops->n, sizeof(*ops->op));
            assert_int_equal(kernels_finish(clone, &program, NULL), FRIT_OK);
            kernels_destroy(clone);
        }
        kernels_destroy(list[i].prototype);
    }
    assert_non_null(program.table);
    return program;
}

bool rig_has_op(const struct kernels_device *device, const frit_op_desc *op)
{
    uint64_t bits = 0;

    assert_int_equal(kernels_supports(device, op, 1, sizeof(*op), &bits, NULL), FRIT_OK);
    return bits == 1;
}

void rig_destroy(frit_program *program)
{
    program->table->destroy(program->self);
    *program = (frit_program){0};
}

static void dense(uint32_t rank, const int64_t *dims, int64_t *strides)
{
    int64_t stride = 1;

    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = stride;
        stride *= dims[d];
    }
}

void rig_signature(struct rig_sig *out, uint32_t n_in, uint32_t n_out, uint32_t n_scalars,
                   uint32_t rank, const int64_t *dims)
{
    *out = (struct rig_sig){0};
    for (uint32_t i = 0; i < n_in + n_out; i++) {
        frit_arg_sig *arg = &out->args[i];

        arg->dtype = FRIT_F32;
        arg->rank = rank;
        arg->align_log2 = 6;
        arg->flags = i < n_in ? FRIT_ARG_READ : FRIT_ARG_WRITE;
        if (rank)
            memcpy(arg->dims, dims, rank * sizeof(*dims));
        dense(rank, dims, arg->strides);
    }
    out->sig = (frit_signature){.struct_size = sizeof(out->sig),
                                .n_in = n_in,
                                .n_out = n_out,
                                .arg_stride = sizeof(frit_arg_sig),
                                .n_scalars = n_scalars,
                                .index_width = 32,
                                .args = out->args,
                                .scalar_classes = out->classes};
}

void rig_prepare(const frit_program *program, const struct rig_sig *sig, frit_launch_spec *spec,
                 frit_variant *variant)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_status st;

    *spec = (frit_launch_spec){.struct_size = sizeof(*spec)};
    *variant = (frit_variant){.struct_size = sizeof(*variant)};
    st = program->table->prepare(program->self, 0, &sig->sig, spec, variant, &err);
    if (st < 0)
        fail_msg("prepare: %s", err.text);
    if (st == FRIT_PREPARE_NEEDS_COMPILE)
        assert_int_equal(program->table->compile(program->self, 0, variant, NULL, NULL), FRIT_OK);
}

uint64_t rig_aliases(const frit_launch_spec *spec, uint32_t output)
{
    const void *at = (const char *)spec->outputs + (size_t)output * spec->output_stride;
    const frit_output_spec *described = at;
    uint64_t inputs = 0;

    for (uint32_t i = 0; output < spec->n_outputs && i < described->n_alias; i++) {
        assert_true(described->alias[i] < 64);
        inputs |= 1ull << described->alias[i];
    }
    return inputs;
}

void rig_bind(struct rig_launch *out, const frit_program *program, const frit_launch_spec *spec,
              float *const *args, uint32_t n_args, uint64_t n, const double *scalars,
              uint32_t n_scalars)
{
    *out = (struct rig_launch){0};
    for (uint32_t i = 0; i < n_args; i++) {
        out->args[i].memory = (frit_memory *)(void *)args[i];
        out->args[i].extent = args[i] ? n * sizeof(float) : 0;
        out->args[i].dtype = args[i] ? FRIT_F32 : FRIT_NO_DTYPE;
    }
    for (uint32_t i = 0; i < n_scalars; i++) {
        out->scalars[i].kind = FRIT_SCALAR_F64;
        memcpy(&out->scalars[i].bits, &scalars[i], sizeof(scalars[i]));
    }
    out->launch = (frit_launch){.struct_size = sizeof(out->launch),
                                .n_args = n_args,
                                .arg_stride = sizeof(frit_arg),
                                .n_scalars = n_scalars,
                                .program = program,
                                .spec = spec,
                                .args = out->args,
                                .scalars = out->scalars,
                                .workspace = (frit_memory *)(void *)out->workspace};
}

/* Where a kernel's argument lies that is number `place` of the launch. */
static struct eval_arg eval_arg_of(const struct rig_launch *l, uint32_t place)
{
    bool workspace = place == KERNELS_WORKSPACE;

    if (place == KERNELS_DERIVED) {
        assert_true(l->launch.spec->derived->bytes <= sizeof(l->derived));
        return (struct eval_arg){.base = (char *)(uintptr_t)l->derived,
                                 .after = l->launch.spec->derived->bytes};
    }
    if (workspace)
        assert_true(l->launch.spec->workspace_bytes <= sizeof(l->workspace));
    else
        assert_true(place < l->launch.n_args && l->args[place].memory);
    return (struct eval_arg){.base = workspace ? l->launch.workspace : l->args[place].memory,
                             .after = workspace ? l->launch.spec->workspace_bytes
                                                : l->args[place].extent};
}

static void run_space(const struct rig_launch *l, const struct kernels_launch *kernel,
                      uint32_t space)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct eval_arg args[RIG_ARGS + 1];
    const uint32_t(*grid)[3] = kernel->grid;
    uint32_t groups[1][3] = {{0, 1, 1}};

    for (uint32_t i = 0; i < kernel->n_args; i++)
        args[i] = eval_arg_of(l, kernel->args[space * kernel->n_args + i]);
    if (kernel->first) {
        groups[0][0] = kernel->first[space + 1] - kernel->first[space];
        grid = (const uint32_t(*)[3])groups;
    }
    if (eval_run(kernel->code, kernel->words + (size_t)space * kernel->n_words, args, grid, &err))
        fail_msg("eval: %s", err.text);
}

void rig_run(const struct rig_launch *l)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct kernels_launch kernel;
    uint64_t words[RIG_WORDS];

    assert_true(kernels_owns(l->launch.program));
    if (kernels_launch(&l->launch, words, RIG_WORDS, &kernel, &err))
        fail_msg("launch: %s", err.text);
    do {
        const struct kir_module *module = kernel.code;

        assert_int_equal(kernel.n_args, module->n_args);
        assert_int_equal(module->spaces, kernel.first != NULL);
        for (uint32_t space = 0; space < kernel.n_spaces; space++)
            run_space(l, &kernel, space);
    } while (kernels_next(&kernel));
}
