/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that ends the process when it is opened. */
#include <stdlib.h>

#include "driver.h"

static frit_status plugin_open(const frit_host_root *host, void **instance, frit_err *err)
{
    (void)host;
    (void)instance;
    (void)err;
    abort();
}

static const frit_plugin plugin = {
    .struct_size = sizeof(plugin),
    .id = {"fake-crashes", 12},
    .version = {"1.0", 3},
    .license = {"Apache-2.0", 10},
    .open = plugin_open,
    .close = fake_close,
    .get_interface = fake_get_interface,
};

FRIT_DEFINE_PLUGIN("fake-crashes", "1.0", "", &plugin)
