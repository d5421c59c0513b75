/* SPDX-License-Identifier: Apache-2.0 */
#include "late.h"

#include <sched.h>
#include <string.h>

#include "template/rows.h"

/* ---- code ---- */

static bool is_dense(const int64_t *dims, const int64_t *strides, uint32_t rank, int64_t step)
{
    for (uint32_t d = rank; d-- > 0; step *= dims[d])
        if (dims[d] != 1 && strides[d] != step)
            return false;
    return true;
}

/* Code is for operands that all lie densely, or for any. */
static frit_status prepare(const struct kit_program *program, const frit_signature *sig,
                           frit_launch_spec *spec, frit_variant *variant, frit_err *err)
{
    bool dense = true;

    (void)err;
    (void)spec;
    for (uint32_t i = 0; i < program->block->n_args; i++) {
        const frit_arg_sig *arg = frit_arg_sig_at(sig, i);

        dense &= is_dense(arg->dims, arg->strides, arg->rank, 1);
    }
    variant->n_bytes = 1;
    variant->bytes[0] = dense;
    return FRIT_OK;
}

/* Code for dense operands must not meet others. */
static frit_status run_code(const struct kit_call *call, frit_err *err)
{
    const struct late_code *code = call->code;

    for (uint32_t i = 0; i < call->block->n_args && code->dense; i++) {
        const struct kit_tensor *arg = &call->args[i];

        if (!is_dense(arg->dims, arg->strides, arg->rank,
                      (int64_t)frit_storage_bytes(arg->dtype, 1)))
            return plug_fail(call->plug, err, FRIT_INTERNAL, "code of another variant");
    }
    return run_maps(call, err);
}

static frit_status compile(const struct kit_program *program, const frit_variant *variant,
                           const frit_cancel *cancel, void **out, frit_err *err)
{
    const struct plug *plug = &program->device->instance->plug;
    struct late *late = program->device->own;
    struct late_code *code;

    if (cancel && __atomic_load_n(&cancel->requested, __ATOMIC_RELAXED))
        return plug_fail(plug, err, FRIT_CANCELLED, "it is not compiled: cancelled");
    if (atomic_load(&late->refuse_compile))
        return plug_fail(plug, err, FRIT_IO, "the compiler is ill");
    code = plug_alloc(plug, sizeof *code, _Alignof(struct late_code));
    if (!code)
        return plug_fail(plug, err, FRIT_NO_HOST_MEMORY, "no memory for code");
    code->run = run_code;
    code->dense = variant->bytes[0];
    atomic_init(&code->better, 0);
    atomic_fetch_add(&late->n_compiled, 1);
    while (atomic_load(&late->n_compiled) < atomic_load(&late->meet))
        sched_yield();
    atomic_fetch_add(&late->n_codes, 1);
    *out = code;
    return FRIT_OK;
}

static void release(const struct kit_program *program, void *code)
{
    struct late *late = program->device->own;

    atomic_fetch_sub(&late->n_codes, 1);
    plug_free(&program->device->instance->plug, code);
}

static uint32_t generation(const struct kit_program *program, void *code)
{
    (void)program;
    return atomic_load(&((struct late_code *)code)->better);
}

static const struct kit_compiler compiler = {prepare, compile, release, generation};

/* ---- tables ---- */

#define F32 KIT_TYPE(FRIT_F32)
static const struct kit_row rows[] = {
    {FRIT_OP_copy, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_add, F32, KIT_INPLACE | KIT_COMPILED, NULL, NULL},
    {FRIT_OP_sub, F32, KIT_INPLACE | KIT_COMPILED, NULL, NULL},
    {FRIT_OP_mul, F32, KIT_INPLACE | KIT_COMPILED, NULL, NULL},
    {FRIT_OP_div, F32, KIT_INPLACE | KIT_COMPILED, NULL, NULL},
    {FRIT_OP_maximum, F32, KIT_INPLACE | KIT_COMPILED, NULL, NULL},
    {FRIT_OP_exp, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_sum, F32, 0, run_sum, NULL},
    {FRIT_OP_matmul, F32, KIT_DENSE, run_matmul, NULL},
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

static const struct kit_fuser fusers[] = {
    {FRIT_STR_INIT("maps"), 1, 500, KIT_INPLACE | KIT_COMPILED, maps_accept, NULL, NULL},
};

static const frit_device_info devices[] = {{.type = FRIT_DEVICE_ACCELERATOR,
                                            .stable_id = FRIT_STR_INIT("late-0"),
                                            .name = FRIT_STR_INIT("later, on a thread")}};

static frit_status configure(struct kit_instance *instance, const frit_host_options *options,
                             frit_err *err)
{
    void *host = instance->plug.host->self;
    struct late_options *own = instance->own;
    frit_str fault;
    frit_status status = options->get_str(host, FRIT_STR("fault"), &fault, err);

    if (!status)
        status = options->get_str(host, FRIT_STR("gone"), &own->gone, err);
    if (status)
        return status;
    own->fail = plug_is(fault, FRIT_STR("fail"));
    own->lose = plug_is(fault, FRIT_STR("lose"));
    return FRIT_OK;
}

static frit_status init(struct kit_instance *instance, frit_err *err)
{
    struct late_options *own =
        plug_alloc(&instance->plug, sizeof *own, _Alignof(struct late_options));

    if (!own)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory for options");
    *own = (struct late_options){0};
    instance->own = own;
    instance->backend.write = late_write;
    instance->backend.read = late_read;
    instance->backend.submit = late_submit;
    instance->backend.wait = late_wait;
    instance->backend.kernel_load = NULL;
    instance->backend.kernel_unload = NULL;
    return FRIT_OK;
}

static void fini(struct kit_instance *instance)
{
    plug_free(&instance->plug, instance->own);
}

static const struct kit_driver driver = {
    .name = FRIT_STR_INIT("late"),
    .version = FRIT_STR_INIT("1"),
    .devices = devices,
    .n_devices = 1,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .fusers = fusers,
    .n_fusers = 1,
    .compiler = &compiler,
    .init = init,
    .fini = fini,
    .configure = configure,
    .open = late_open,
    .close = late_close,
};

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    return kit_open(&driver, host, out, err);
}

static const frit_option options[] = {
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("fault"),
        .default_value = FRIT_STR_INIT("none"),
        .meaning = FRIT_STR_INIT("what becomes of launches"),
        .choices = FRIT_STR_INIT("none fail lose"),
    },
    {
        .struct_size = sizeof(frit_option),
        .type = FRIT_OPTION_STR,
        .name = FRIT_STR_INIT("gone"),
        .meaning =
            FRIT_STR_INIT("a folder: a file there, named like the process, loses the device"),
    },
};

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = sizeof options / sizeof *options,
    .option_stride = sizeof *options,
    .id = FRIT_STR_INIT("org.example.late"),
    .version = FRIT_STR_INIT("1"),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .options = options,
    .open = plugin_open,
    .close = kit_close,
    .get_interface = kit_interface,
};

FRIT_DEFINE_PLUGIN("org.example.late", "1", "", &plugin)
