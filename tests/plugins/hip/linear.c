/* SPDX-License-Identifier: Apache-2.0 */
#include "linear.h"

#include <string.h>

#include <frit/op_table.h>

#include "fake.h"

static uint32_t n_args(const struct linear *l)
{
    return l->has_bias ? TENSORS : TENSORS - 1;
}

/* The tensor that is argument `arg`. */
static int tensor_of(const struct linear *l, uint32_t arg)
{
    return arg + 1 == n_args(l) ? Y : (int)arg;
}

uint32_t linear_arg_of_y(const struct linear *l)
{
    return n_args(l) - 1;
}

static void dims_of(const struct linear *l, int tensor, uint32_t *rank, int64_t dims[2])
{
    const int64_t all[TENSORS][2] = {{l->m, l->k}, {l->k, l->n}, {l->n, 1}, {l->m, l->n}};

    *rank = tensor == BIAS ? 1 : 2;
    memcpy(dims, all[tensor], sizeof all[tensor]);
}

static frit_status make_program(struct rig *rig, struct linear *l)
{
    static const uint32_t extents[TENSORS][2] = {{2, 4}, {4, 3}, {3, 0}, {2, 3}};
    const uint32_t id = l->has_bias ? FRIT_OP_linear : FRIT_OP_matmul;
    frit_operand operands[TENSORS];
    const frit_op_desc op = {.struct_size = FRIT_END_OF(frit_op_desc, dead),
                             .id = id,
                             .rev = frit_op_info_at(id)->rev,
                             .n_in = n_args(l) - 1,
                             .n_out = 1,
                             .operand_stride = sizeof *operands,
                             .in = operands,
                             .out = operands + n_args(l) - 1};

    for (uint32_t i = 0; i < n_args(l); i++) {
        const int tensor = tensor_of(l, i);

        operands[i] = (frit_operand){.kind = FRIT_OPERAND_TENSOR,
                                     .dtype = FRIT_F32,
                                     .value = i,
                                     .rank = tensor == BIAS ? 1 : 2};
        memcpy(operands[i].extent, extents[tensor], sizeof extents[tensor]);
    }
    l->program.struct_size = sizeof l->program;
    return rig->backend->op_program(rig->device, &op, &l->program, &rig->err);
}

static uint32_t find_candidate(const struct linear *l)
{
    frit_program_info info = {.struct_size = sizeof info};
    const struct frit_program_table *table = l->program.table;
    char identity[64];

    fake_write_identity(identity, l->is_reduced);
    assert_int_equal(table->describe(l->program.self, &info, NULL), FRIT_OK);
    for (uint32_t i = 0; i < info.n_candidates; i++)
        if (info.candidates[i].identity.len == strlen(identity) &&
            memcmp(info.candidates[i].identity.ptr, identity, strlen(identity)) == 0) {
            assert_int_equal(info.candidates[i].numeric_class,
                             l->is_reduced ? FRIT_NUMERIC_REDUCED : FRIT_NUMERIC_REORDERED);
            return i;
        }
    return 0;
}

static void fill_strides(int tensor, const int64_t dims[2], int64_t strides[2])
{
    strides[0] = tensor == BIAS ? 1 : dims[1];
    strides[1] = tensor == BIAS ? 0 : 1;
}

static frit_status prepare(struct rig *rig, struct linear *l)
{
    const frit_program_table *table = l->program.table;
    frit_arg_sig args[TENSORS] = {{0}};
    const frit_signature sig = {.struct_size = sizeof sig,
                                .n_in = n_args(l) - 1,
                                .n_out = 1,
                                .arg_stride = sizeof *args,
                                .index_width = 32,
                                .args = args};
    frit_status status;

    for (uint32_t i = 0; i < n_args(l); i++) {
        args[i].dtype = FRIT_F32;
        args[i].align_log2 = 4;
        dims_of(l, tensor_of(l, i), &args[i].rank, args[i].dims);
        fill_strides(tensor_of(l, i), args[i].dims, args[i].strides);
    }
    l->spec = (frit_launch_spec){.struct_size = sizeof l->spec};
    l->variant = (frit_variant){.struct_size = sizeof l->variant};
    l->candidate = find_candidate(l);
    status = table->prepare(l->program.self, l->candidate, &sig, &l->spec, &l->variant, &rig->err);
    if (status != FRIT_PREPARE_NEEDS_COMPILE)
        return status;
    return table->compile(l->program.self, l->candidate, &l->variant, NULL, &rig->err);
}

void linear_fill_launch(struct linear *l)
{
    for (uint32_t i = 0; i < n_args(l); i++) {
        const int tensor = tensor_of(l, i);
        frit_arg *arg = &l->args[i];

        *arg = (frit_arg){.memory = l->memory[tensor].memory,
                          .dtype = FRIT_F32,
                          .align_log2 = 4,
                          .flags = tensor == Y ? FRIT_ARG_WRITE : FRIT_ARG_READ};
        dims_of(l, tensor, &arg->rank, arg->dims);
        fill_strides(tensor, arg->dims, arg->strides);
        arg->extent = (uint64_t)(arg->dims[0] * arg->dims[1]) * sizeof(float);
    }
    l->launch = (frit_launch){.struct_size = sizeof l->launch,
                              .n_args = n_args(l),
                              .arg_stride = sizeof *l->args,
                              .program = &l->program,
                              .spec = &l->spec,
                              .variant = &l->variant,
                              .args = l->args,
                              .workspace = l->spec.workspace_bytes ? l->workspace.memory : NULL,
                              .candidate = l->candidate};
    l->cmd =
        (frit_cmd){.struct_size = sizeof l->cmd, .kind = FRIT_CMD_LAUNCH, .launch = &l->launch};
}

frit_status linear_open(struct rig *rig, struct linear *l, int64_t m, int64_t n, int64_t k)
{
    frit_status status;

    *l = (struct linear){
        .m = m, .n = n, .k = k, .is_reduced = l->is_reduced, .has_bias = fake_products()->has_bias};
    status = make_program(rig, l);
    if (!status)
        status = prepare(rig, l);
    for (int i = 0; i <= TENSORS && !status; i++) {
        const frit_alloc_desc desc = {sizeof desc, 0, MAX_BYTES, 256};
        frit_allocation *memory = i < TENSORS ? &l->memory[i] : &l->workspace;

        memory->struct_size = sizeof *memory;
        status = rig->backend->alloc(rig->device, &desc, memory, &rig->err);
    }
    linear_fill_launch(l);
    return status;
}

void linear_close(struct rig *rig, struct linear *l)
{
    for (int i = 0; i <= TENSORS; i++)
        rig->backend->free(rig->device, i < TENSORS ? l->memory[i].memory : l->workspace.memory);
    if (l->program.self)
        l->program.table->destroy(l->program.self);
}

/* ---- numbers ---- */

/* Whole numbers, so that sums are exact; other ones for each seed. */
static float number(int tensor, uint32_t seed, int64_t i)
{
    return (float)((i * 7 + tensor * 5 + seed * 3) % 17) - 8;
}

frit_status linear_wait(struct rig *rig, uint64_t value)
{
    frit_failure failure = {.struct_size = sizeof failure, .value = value - 1};
    frit_status status =
        rig->backend->wait(rig->device, NULL, value, UINT64_MAX, &failure, &rig->err);

    return status ? status : failure.status;
}

void linear_write(struct rig *rig, void *memory, int tensor, uint32_t seed)
{
    static float numbers[MAX_BYTES / sizeof(float)];
    const frit_transfer to = {.struct_size = sizeof to, .memory = memory, .bytes = MAX_BYTES};
    uint64_t value;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = number(tensor, seed, (int64_t)i);
    assert_int_equal(rig->backend->write(rig->device, &to, numbers, &value, &rig->err), FRIT_OK);
    assert_int_equal(linear_wait(rig, value), FRIT_OK);
}

void linear_write_all(struct rig *rig, const struct linear *l, uint32_t seed)
{
    for (int i = 0; i < Y; i++)
        linear_write(rig, l->memory[i].memory, i, seed);
}

void linear_expect(struct rig *rig, const struct linear *l, void *memory, uint32_t x_seed,
                   uint32_t seed)
{
    static float got[MAX_BYTES / sizeof(float)];

    rig_read(rig, memory, 0, got, (uint64_t)(l->m * l->n) * sizeof *got);
    for (int64_t i = 0; i < l->m; i++)
        for (int64_t j = 0; j < l->n; j++) {
            float sum = l->has_bias ? number(BIAS, seed, j) : 0;

            for (int64_t k = 0; k < l->k; k++)
                sum += number(X, x_seed, i * l->k + k) * number(W, seed, k * l->n + j);
            if (got[i * l->n + j] != sum)
                fail_msg("y[%d][%d] is %g, not %g", (int)i, (int)j, (double)got[i * l->n + j],
                         (double)sum);
        }
}
