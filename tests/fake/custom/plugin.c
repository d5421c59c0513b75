/* SPDX-License-Identifier: Apache-2.0 */
/* CUSTOM_DRIVER 1: a driver with fusers that claim some of the ops; 0: the ops alone. */
#include <string.h>

#include "custom.h"

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    struct fake *fake = NULL;
    frit_status st = fake_open(host, "custom", &fake, err);

    if (st)
        return st;
    fake->backend.submit = custom_submit;
    fake->backend.supports = custom_supports;
    fake->backend.op_program = custom_op_program;
    *instance = fake;
    return FRIT_OK;
}

static bool is(frit_str id, const char *name)
{
    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

static const void *plugin_interface(void *instance, frit_str id)
{
    if (is(id, FRIT_OPS_TABLE))
        return &custom_ops;
    if (!CUSTOM_DRIVER)
        return NULL;
    return is(id, FRIT_FUSER_TABLE) ? &custom_fusers : fake_get_interface(instance, id);
}

static const frit_plugin plugin = {
    .struct_size = sizeof(plugin),
    .id = {CUSTOM_ID, sizeof(CUSTOM_ID) - 1},
    .version = {"1.0", 3},
    .license = {"Apache-2.0", 10},
    .open = plugin_open,
    .close = fake_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN(CUSTOM_ID, "1.0", "", &plugin)
