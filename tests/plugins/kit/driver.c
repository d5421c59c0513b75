/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <string.h>

#include "unit.h"

struct seen seen;

static frit_status note(const struct kit_call *call, frit_err *err)
{
    const struct kit_block *block = call->block;
    struct walk walk;

    if (block->ops[0].id == FRIT_OP_neg)
        return plug_fail(call->plug, err, FRIT_IO, "the row that fails");
    seen = (struct seen){.n_launches = seen.n_launches + 1,
                         .n_ops = block->n_ops,
                         .n_in = block->n_in,
                         .n_args = block->n_args,
                         .code = call->code,
                         .inside = !kit_out(call, 0, 0)};
    for (uint32_t op = 0; op < block->n_ops && op < 4; op++) {
        const struct kit_op *own = &block->ops[op];

        if (own->n_in > 1 && own->in[1].kind == FRIT_OPERAND_SCALAR)
            seen.scalars[op] = kit_scalar(call, op, 1);
        if (own->n_in > 2 && own->in[2].kind == FRIT_OPERAND_SCALAR)
            seen.last = kit_scalar(call, op, 2);
        seen.first_bound[op] = own->first_bound;
    }
    kit_walk(call, &walk);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        seen.elements += (uint32_t)walk.count;
    return FRIT_OK;
}

/* Four ops, none of them exp. */
static bool accept(const struct kit_block *block, const frit_op_desc *op)
{
    return block->n_ops < 4 && op->id != FRIT_OP_exp;
}

/* One code per program: its block. */
static frit_status compile(const struct kit_program *program, const frit_variant *variant,
                           const frit_cancel *cancel, void **code, frit_err *err)
{
    (void)cancel;
    (void)err;
    assert_int_equal(variant->n_bytes, 0);
    *code = (void *)(uintptr_t)program->block;
    return FRIT_OK;
}

static void release(const struct kit_program *program, void *code)
{
    assert_ptr_equal(code, program->block);
}

static const struct kit_compiler compiler = {.compile = compile, .release = release};

static const struct kit_row rows[] = {
    {FRIT_OP_add, KIT_TYPE(FRIT_F32), KIT_INPLACE, note, NULL},
    {FRIT_OP_mul, KIT_TYPE(FRIT_F32), KIT_INPLACE, note, NULL},
    {FRIT_OP_exp, KIT_TYPE(FRIT_F32), 0, note, NULL},
    {FRIT_OP_maximum, KIT_TYPE(FRIT_F32), KIT_INPLACE | KIT_COMPILED, note, NULL},
    {FRIT_OP_neg, KIT_TYPE(FRIT_F32), 0, note, NULL},
    {FRIT_OP_clamp, KIT_TYPE(FRIT_F32), 0, note, NULL},
    {FRIT_OP_slice_assign, KIT_TYPE(FRIT_F32), 0, note, NULL},
    {FRIT_OP_layer_norm, KIT_TYPE(FRIT_F32), 0, note, NULL},
    {FRIT_OP_matmul, KIT_TYPE(FRIT_F32), KIT_DENSE, note, NULL},
    {FRIT_OP_cat, KIT_TYPE(FRIT_F32), 0, note, NULL},
};

static const struct kit_fuser fusers[] = {
    {FRIT_STR_INIT("four"), 3, 700, KIT_INPLACE, accept, note, NULL},
    {FRIT_STR_INIT("any"), 1, 100, 0, NULL, note, NULL},
};

static const frit_device_info devices[] = {
    {.type = FRIT_DEVICE_ACCELERATOR,
     .stable_id = FRIT_STR_INIT("a"),
     .name = FRIT_STR_INIT("first")},
    {.type = FRIT_DEVICE_INTEGRATED,
     .stable_id = FRIT_STR_INIT("b"),
     .name = FRIT_STR_INIT("second"),
     .fingerprint = FRIT_STR_INIT("its own")},
};

static frit_status configure(struct kit_instance *instance, const frit_host_options *options,
                             frit_err *err)
{
    frit_status status = options->get_i64(instance->plug.host->self, FRIT_STR("memory_bytes"),
                                          &instance->memory_bytes, err);

    if (instance->memory_bytes < 0)
        return plug_fail(&instance->plug, err, FRIT_INVALID, "memory_bytes is below 0");
    return status;
}

static const struct kit_driver driver = {
    .name = FRIT_STR_INIT("noting"),
    .version = FRIT_STR_INIT("7"),
    .devices = devices,
    .n_devices = 2,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .fusers = fusers,
    .n_fusers = 2,
    .compiler = &compiler,
    .configure = configure,
};

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    return kit_open(&driver, host, instance, err);
}

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .id = FRIT_STR_INIT("org.example.noting"),
    .open = plugin_open,
    .close = kit_close,
    .get_interface = kit_interface,
};

FRIT_DEFINE_PLUGIN("org.example.noting", "7", "", &plugin)
