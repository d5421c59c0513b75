/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to "why is it not there": plugins of the name, then the driver, then its devices, then
 * where was looked. */
#include "load/why.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "load/device.h"
#include "load/load.h"
#include "load/pick.h"
#include "load/reason.h"
#include "load/registry.h"

static void print_advice(uint32_t reason, struct str *out)
{
    if (*reason_advice(reason))
        str_addf(out, "  %s\n", reason_advice(reason));
}

static void print_verdict(uint32_t reason, const char *detail, struct str *out)
{
    if (!reason) {
        str_addf(out, "usable\n");
        return;
    }
    reason_print(reason, detail, out);
    str_addf(out, "\n");
    print_advice(reason, out);
}

static void print_ops(const struct plugin *plugin, struct str *out)
{
    for (uint32_t i = 0; i < plugin->n_ops; i++) {
        const struct plugin_op *op = &plugin->ops[i];

        str_addf(out, "  op %s: %s%s\n", op->name, op->id ? "usable" : "refused: ", op->why);
    }
}

static void print_plugin(const struct plugin *plugin, struct str *out)
{
    str_addf(out, "plugin %s%s%s", plugin->id[0] ? plugin->id : "(unknown id)",
             plugin->version[0] ? " " : "", plugin->version);
    if (plugin->path[0])
        str_addf(out, ", %s", plugin->path);
    str_addf(out, " (%s): ", plugin->origin);
    if (!plugin->reason && !plugin->driver[0])
        str_addf(out, "usable, %s\n", plugin->driver_detail);
    else
        print_verdict(plugin->reason, plugin->detail, out);
    print_ops(plugin, out);
}

static void print_device(const struct device_entry *device, struct str *out)
{
    str_addf(out, "device %s, %s: ", device->name, device->info->name.ptr);
    print_verdict(device->info->reason, "", out);
}

static void print_search(const struct registry *registry, struct str *out)
{
    for (uint32_t i = 0; i < registry->n_dirs; i++) {
        const struct search_dir *dir = &registry->dirs[i];

        str_addf(out, "searched %s (%s): ", dir->path, dir->origin);
        if (dir->trouble)
            str_addf(out, "%s\n", dir->trouble);
        else
            str_addf(out, "%" PRIu32 " libfrit-*.so\n", dir->n_files);
    }
}

/* The driver without devices, all devices of a driver, or the one that is meant. */
static void print_driver(struct registry *registry, const struct device_request *request,
                         const char *name, struct str *out)
{
    struct plugin *plugin = driver_find(registry, request->driver);
    const struct device_entry *device;
    struct str why = {0};
    uint32_t reason;

    out->failed |= plugin && enumerate_plugin(registry, plugin);
    if (plugin && plugin->n_devices && !request->has_index && !request->stable_id[0]) {
        for (uint32_t i = 0; i < registry->n_devices; i++) {
            if (registry->devices[i]->plugin == plugin)
                print_device(registry->devices[i], out);
        }
        return;
    }
    reason = request_find(registry, request, &device, &why);
    if (device) {
        print_device(device, out);
    } else {
        str_addf(out, "%s: %s\n", name, why.failed ? "" : why.text);
        print_advice(reason, out);
        out->failed |= why.failed;
    }
    str_fini(&why);
}

void registry_why(struct registry *registry, const char *name, struct str *out)
{
    struct device_request request;
    size_t before = out->length;
    uint32_t index = 0;
    const struct plugin *plugin;
    bool is_request = request_parse(name, strlen(name), &request, NULL) == FRIT_OK;

    while ((plugin = plugin_next(registry, is_request ? request.driver : name, &index)) != NULL)
        print_plugin(plugin, out);
    plugin = is_request ? driver_find(registry, request.driver) : NULL;
    if (plugin && out->length == before)
        print_plugin(plugin, out);
    if (is_request && (plugin || out->length == before || strcmp(request.driver, "auto") == 0)) {
        pthread_mutex_lock(&registry->lock);
        print_driver(registry, &request, name, out);
        pthread_mutex_unlock(&registry->lock);
    }
    if (!plugin)
        print_search(registry, out);
}
