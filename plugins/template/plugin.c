/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The driver as tables: its device, its ten ops, its fuser, its option. */
#include <string.h>

#include "rows.h"

#define VERSION "0.1.0"

/* ---- ops: whatever is missing here the host makes of these, or runs on another device ---- */

#define F32 KIT_TYPE(FRIT_F32)
static const struct kit_row rows[] = {
    {FRIT_OP_copy, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_add, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_sub, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_mul, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_div, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_maximum, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_exp, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_erf, F32, KIT_INPLACE, run_maps, NULL},
    {FRIT_OP_sum, F32, 0, run_sum, NULL},
    {FRIT_OP_matmul, F32, KIT_DENSE, run_matmul, NULL},
};

/* ---- fuser: chains of elementwise ops whose results all have the same dims ---- */

static bool maps_accept(const struct kit_block *block, const frit_op_desc *op)
{
    const frit_operand *first = &block->ops[0].out[0];

    if (frit_op_info_at(op->id)->cls != FRIT_CLASS_MAP)
        return false;
    return block->n_ops == 0 ||
           (first->rank == op->out->rank &&
            memcmp(first->extent, op->out->extent, first->rank * sizeof *first->extent) == 0);
}

static const struct kit_fuser fusers[] = {{
    .name = FRIT_STR_INIT("maps"),
    .version = 1,
    .quality = 500,
    .flags = KIT_INPLACE,
    .accepts = maps_accept,
    .run = run_maps,
}};

/* ---- the device, and the plugin ---- */

static const frit_device_info devices[] = {{
    .type = FRIT_DEVICE_PROCESSOR,
    .stable_id = FRIT_STR_INIT("template-0"),
    .name = FRIT_STR_INIT("template on one thread"),
}};

static frit_status configure(struct kit_instance *instance, const frit_host_options *options,
                             frit_err *err)
{
    return options->get_i64(instance->plug.host->self, FRIT_STR("memory_bytes"),
                            &instance->memory_bytes, err);
}

static const struct kit_driver driver = {
    .name = FRIT_STR_INIT("template"),
    .version = FRIT_STR_INIT(VERSION),
    .devices = devices,
    .n_devices = sizeof devices / sizeof *devices,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .fusers = fusers,
    .n_fusers = sizeof fusers / sizeof *fusers,
    .configure = configure,
};

static const frit_option options[] = {{
    .struct_size = sizeof(frit_option),
    .type = FRIT_OPTION_I64,
    .name = FRIT_STR_INIT("memory_bytes"),
    .default_value = FRIT_STR_INIT("0"),
    .meaning = FRIT_STR_INIT("bytes that its device may hold; 0: no cap"),
    .max = INT64_MAX,
}};

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    return kit_open(&driver, host, instance, err);
}

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = sizeof options / sizeof *options,
    .option_stride = sizeof *options,
    .id = FRIT_STR_INIT("org.example.template"),
    .version = FRIT_STR_INIT(VERSION),
    .license = FRIT_STR_INIT("Apache-2.0 OR MIT"),
    .options = options,
    .open = plugin_open,
    .close = kit_close,
    .get_interface = kit_interface,
};

FRIT_DEFINE_PLUGIN("org.example.template", VERSION, "", &plugin)
