/* SPDX-License-Identifier: Apache-2.0 */
/* What plugins of the tests report of themselves; for programs that see the host's inside. */
#ifndef TESTS_API_PLUGIN_INTERFACE_H
#define TESTS_API_PLUGIN_INTERFACE_H

#include "unit.h"

#include <string.h>

#include "api/host.h"
#include "load/registry.h"

/* An interface of a plugin that is loaded, and the plugin's instance, which its functions take. */
static inline const void *rig_interface(const frit_host *host, const char *plugin_id,
                                        const char *name, void **instance)
{
    const struct registry *registry = host->registry;
    const void *found;

    for (uint32_t i = 0; i < registry_n_plugins(registry); i++) {
        const struct plugin *plugin = registry_plugin_at(registry, i);

        if (strcmp(plugin->id, plugin_id) != 0)
            continue;
        *instance = plugin->instance;
        found = plugin->root->get_interface(plugin->instance, (frit_str){name, strlen(name)});
        assert_non_null(found);
        return found;
    }
    fail_msg("no plugin %s", plugin_id);
    return NULL;
}

#endif
