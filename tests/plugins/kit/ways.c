/* SPDX-License-Identifier: Apache-2.0 */
/* A driver whose rows and fuser have several candidates: with a predicate, with a priority, in
 * another numeric class, and one that needs code. */
#include "ways.h"

#include <string.h>

#include "template/rows.h"

struct ways ways;

/* ---- add: tensors alone, element by element ---- */

static bool are_tensors(const struct kit_program *program, const frit_signature *sig)
{
    (void)program;
    return frit_arg_sig_at(sig, 0)->dtype && frit_arg_sig_at(sig, 1)->dtype;
}

static frit_status run_add(const struct kit_call *call, frit_err *err)
{
    struct walk walk;

    (void)err;
    ways.plain_adds++;
    kit_walk(call, &walk);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        for (int64_t i = 0; i < walk.count; i++) {
            float value[2];

            for (uint32_t k = 0; k < 2; k++)
                memcpy(&value[k], call->args[k].data + walk.at[k] + i * walk.step[k],
                       sizeof(float));
            value[0] += value[1];
            memcpy(call->args[2].data + walk.at[2] + i * walk.step[2], value, sizeof(float));
        }
    return FRIT_OK;
}

static const struct kit_candidate adds[] = {{.identity = FRIT_STR_INIT("elements"),
                                             .version = 2,
                                             .flags = KIT_INPLACE,
                                             .run = run_add,
                                             .accepts = are_tensors},
                                            {0}};

/* ---- matmul: row by row of the second operand, sums in f32 ---- */

static void multiply(float *y, const float *a, const float *b, const int64_t dims[3])
{
    memset(y, 0, (size_t)(dims[0] * dims[1]) * sizeof *y);
    for (int64_t i = 0; i < dims[0]; i++)
        for (int64_t k = 0; k < dims[2]; k++)
            for (int64_t j = 0; j < dims[1]; j++)
                y[i * dims[1] + j] += a[i * dims[2] + k] * b[k * dims[1] + j];
}

static bool are_matrices(const struct kit_program *program, const frit_signature *sig)
{
    (void)program;
    return frit_arg_sig_at(sig, 0)->rank == 2 && frit_arg_sig_at(sig, 1)->rank == 2;
}

static int32_t larger_first(const struct kit_program *program, const frit_signature *sig)
{
    (void)program;
    return frit_arg_sig_at(sig, 1)->dims[1] >= 16 ? 1 : 0;
}

static frit_status run_rows(const struct kit_call *call, frit_err *err)
{
    const struct kit_tensor *a = &call->args[0], *b = &call->args[1];

    (void)err;
    ways.rows++;
    multiply((float *)(void *)call->args[2].data, (const float *)(const void *)a->data,
             (const float *)(const void *)b->data, (int64_t[]){a->dims[0], b->dims[1], a->dims[1]});
    return FRIT_OK;
}

static const struct kit_candidate products[] = {{.identity = FRIT_STR_INIT("rows"),
                                                 .version = 1,
                                                 .numeric_class = FRIT_NUMERIC_REORDERED,
                                                 .flags = KIT_DENSE,
                                                 .run = run_rows,
                                                 .accepts = are_matrices,
                                                 .priority = larger_first},
                                                {0}};

/* ---- maps: with code, and, of a block, without a change ---- */

static frit_status compile(const struct kit_program *program, const frit_variant *variant,
                           const frit_cancel *cancel, void **code, frit_err *err)
{
    (void)variant;
    (void)cancel;
    (void)err;
    ways.codes++;
    *code = (void *)(uintptr_t)program;
    return FRIT_OK;
}

static void release(const struct kit_program *program, void *code)
{
    (void)program;
    (void)code;
    ways.codes--;
}

static frit_status run_code(const struct kit_call *call, frit_err *err)
{
    if (call->code != call->program || !call->program->candidate)
        return plug_fail(call->plug, err, FRIT_INTERNAL, "code of another candidate");
    return run_maps(call, err);
}

static const struct kit_compiler compiler = {.compile = compile, .release = release};

static const struct kit_candidate compiled[] = {
    {.identity = FRIT_STR_INIT("code"),
     .version = 1,
     .flags = KIT_INPLACE | KIT_COMPILED,
     .run = run_code},
    {.identity = FRIT_STR_INIT("code-apart"), .version = 1, .flags = KIT_COMPILED, .run = run_code},
    {0}};

/* ---- tables ---- */

#define F32 KIT_TYPE(FRIT_F32)
static const struct kit_row rows[] = {
    {FRIT_OP_copy, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_add, F32, KIT_INPLACE, run_maps, adds},
    {FRIT_OP_mul, F32, KIT_INPLACE, run_maps, compiled},
    {FRIT_OP_exp, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_sum, F32, 0, run_sum, NULL},
    {FRIT_OP_matmul, F32, KIT_DENSE, run_matmul, products},
};

static bool maps_accept(const struct kit_block *block, const frit_op_desc *op)
{
    const frit_operand *first = &block->ops[0].out[0];

    if (frit_op_info_at(op->id)->cls != FRIT_CLASS_MAP)
        return false;
    return block->n_ops == 0 ||
           (first->rank == op->out->rank &&
            memcmp(first->extent, op->out->extent, first->rank * sizeof *first->extent) == 0);
}

static const struct kit_fuser fusers[] = {{.name = FRIT_STR_INIT("maps"),
                                           .version = 1,
                                           .quality = 500,
                                           .flags = KIT_INPLACE,
                                           .accepts = maps_accept,
                                           .run = run_maps,
                                           .candidates = compiled}};

static const frit_device_info devices[] = {{.type = FRIT_DEVICE_PROCESSOR,
                                            .stable_id = FRIT_STR_INIT("ways-0"),
                                            .name = FRIT_STR_INIT("several ways")}};

static const struct kit_driver driver = {
    .name = FRIT_STR_INIT("ways"),
    .version = FRIT_STR_INIT("1"),
    .devices = devices,
    .n_devices = 1,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .fusers = fusers,
    .n_fusers = 1,
    .compiler = &compiler,
};

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    return kit_open(&driver, host, out, err);
}

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .id = FRIT_STR_INIT("org.example.ways"),
    .version = FRIT_STR_INIT("1"),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .open = plugin_open,
    .close = kit_close,
    .get_interface = kit_interface,
};

FRIT_DEFINE_PLUGIN("org.example.ways", "1", "", &plugin)
