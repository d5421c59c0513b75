/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that brings no device: its fusers make programs of whole blocks of ops, which run on the
 * device of another driver, as host functions over its memory. */
#include <string.h>

#include <frit/plugin.h>

#include "blocks.h"

frit_status blocks_fail(const struct instance *instance, frit_err *err, frit_status status,
                        const char *text)
{
    return instance->core->err_set(instance->host->self, err, status, 0,
                                   (frit_str){text, strlen(text)});
}

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    const frit_host_core *core = host->get_interface(host->self, FRIT_STR(FRIT_HOST_CORE));
    struct instance *instance;

    *out = NULL;
    if (!core || !FRIT_HAS(core, frit_host_core, mem_free))
        return FRIT_INCOMPATIBLE;
    instance = core->mem_alloc(host->self, sizeof(*instance), _Alignof(struct instance));
    if (!instance)
        return core->err_set(host->self, err, FRIT_NO_HOST_MEMORY, 0,
                             FRIT_STR("blocks: no memory for the instance"));
    *instance = (struct instance){host, core};
    *out = instance;
    return FRIT_OK;
}

static void plugin_close(void *self)
{
    struct instance *instance = self;

    instance->core->mem_free(instance->host->self, instance);
}

static const void *plugin_interface(void *instance, frit_str id)
{
    const frit_str name = FRIT_STR(FRIT_FUSER_TABLE);

    (void)instance;
    return id.len == name.len && memcmp(id.ptr, name.ptr, name.len) == 0 ? &fuser_table : NULL;
}

static const frit_plugin plugin = {
    .struct_size = sizeof(plugin),
    .option_stride = sizeof(frit_option),
    .id = {"org.frit.blocks", 15},
    .version = {BLOCKS_VERSION, sizeof(BLOCKS_VERSION) - 1},
    .license = {"Apache-2.0", 10},
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("org.frit.blocks", BLOCKS_VERSION, "", &plugin)
