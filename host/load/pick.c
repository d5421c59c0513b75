/* SPDX-License-Identifier: Apache-2.0 */
/* Device lists.  An entry is auto, DRIVER, DRIVER:INDEX or DRIVER:uuid=ID. */
#include "load/pick.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/str.h"
#include "load/device.h"
#include "load/load.h"
#include "load/reason.h"
#include "load/registry.h"

static const char uuid_word[] = "uuid=";

/* ---- entries ---- */

static bool parse_driver(const char *text, size_t length, char *out, size_t size)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

    if (length == 0 || length >= size || text[0] < 'a' || text[0] > 'z')
        return false;
    memcpy(out, text, length);
    out[length] = '\0';
    return strspn(out, allowed) == length;
}

/* The text after the colon. */
static bool parse_which(const char *text, size_t length, struct device_request *out)
{
    size_t skip = sizeof(uuid_word) - 1;
    uint64_t index = 0;

    if (length > skip && memcmp(text, uuid_word, skip) == 0) {
        if (length - skip >= sizeof(out->stable_id))
            return false;
        memcpy(out->stable_id, text + skip, length - skip);
        return true;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        index = index * 10 + (uint64_t)(text[i] - '0');
        if (index > UINT32_MAX)
            return false;
    }
    out->has_index = true;
    out->index = (uint32_t)index;
    return length > 0;
}

frit_status request_parse(const char *text, size_t length, struct device_request *out,
                          frit_err *err)
{
    const char *colon = memchr(text, ':', length);
    size_t driver = colon ? (size_t)(colon - text) : length;

    *out = (struct device_request){0};
    if (!parse_driver(text, driver, out->driver, sizeof(out->driver)) ||
        (colon &&
         (strcmp(out->driver, "auto") == 0 || !parse_which(colon + 1, length - driver - 1, out))))
        return fail(err, FRIT_INVALID,
                    "device '%.*s': allowed are DRIVER, DRIVER:INDEX, DRIVER:uuid=ID and auto, "
                    "separated by commas",
                    (int)(length < 64 ? length : 64), text);
    return FRIT_OK;
}

/* ---- looking ---- */

static void print_drivers(const struct registry *registry, const char *wanted, struct str *out)
{
    const char *names[64];
    const char *nearest;
    size_t count = 0;

    for (uint32_t i = 0; i < registry->n_plugins && count < sizeof(names) / sizeof(names[0]); i++) {
        if (!registry->plugins[i].reason && registry->plugins[i].driver[0])
            names[count++] = registry->plugins[i].driver;
    }
    str_addf(out, "; drivers here: %s", count ? names[0] : "none");
    for (size_t i = 1; i < count; i++)
        str_addf(out, ", %s", names[i]);
    nearest = str_nearest(wanted, names, count);
    if (nearest)
        str_addf(out, "; did you mean '%s'?", nearest);
}

/* Why no loaded plugin has this driver name. */
static uint32_t explain_driver(const struct registry *registry, const char *driver, struct str *why)
{
    uint32_t index = 0;
    const struct plugin *plugin = plugin_next(registry, driver, &index);

    while (plugin && !plugin->reason)
        plugin = plugin_next(registry, driver, &index);
    if (plugin) {
        reason_print(plugin->reason, plugin->detail, why);
        return plugin->reason;
    }
    reason_print(FRIT_REASON_NO_DRIVER, "", why);
    print_drivers(registry, driver, why);
    return FRIT_REASON_NO_DRIVER;
}

/* Whether the request means this device; `*exact` is set on a whole stable id. */
static bool request_matches(const struct device_request *request, const struct device_entry *device,
                            bool *exact)
{
    const char *stable_id = device->info->stable_id.ptr;

    if (strcmp(request->driver, "auto") == 0)
        return true;
    if (strcmp(request->driver, device->plugin->driver) != 0)
        return false;
    if (request->has_index)
        return request->index == device->info->index;
    if (!request->stable_id[0])
        return true;
    *exact = strcasecmp(stable_id, request->stable_id) == 0;
    return strncasecmp(stable_id, request->stable_id, strlen(request->stable_id)) == 0;
}

/* Why no device at all is meant by the request. */
static uint32_t explain_absent(const struct registry *registry,
                               const struct device_request *request, struct str *why)
{
    const struct plugin *plugin;

    if (strcmp(request->driver, "auto") == 0) {
        reason_print(FRIT_REASON_NO_DEVICE, "no driver has one", why);
        return FRIT_REASON_NO_DEVICE;
    }
    plugin = driver_find(registry, request->driver);
    if (!plugin)
        return explain_driver(registry, request->driver, why);
    if (plugin->driver_reason) {
        reason_print(plugin->driver_reason, plugin->driver_detail, why);
        return plugin->driver_reason;
    }
    reason_print(FRIT_REASON_NO_DEVICE, "", why);
    if (plugin->n_devices == 1)
        str_addf(why, "; %s has one device, %s:0", plugin->driver, plugin->driver);
    else
        str_addf(why, "; %s has %" PRIu32 " devices, %s:0 to %s:%" PRIu32, plugin->driver,
                 plugin->n_devices, plugin->driver, plugin->driver, plugin->n_devices - 1);
    return FRIT_REASON_NO_DEVICE;
}

/* What the request's word fits: the first such device and the first usable one, how many. */
struct fit {
    const struct device_entry *first, *usable;
    uint32_t count;
};

static struct fit fit_request(const struct registry *registry, const struct device_request *request)
{
    struct fit fit = {0};

    for (uint32_t i = 0; i < registry->n_devices; i++) {
        const struct device_entry *device = registry->devices[i];
        const struct device_entry *usable = device->info->reason ? NULL : device;
        bool exact = false;

        if (!request_matches(request, device, &exact))
            continue;
        if (exact)
            return (struct fit){device, usable, 1};
        fit.first = fit.first ? fit.first : device;
        fit.usable = fit.usable ? fit.usable : usable;
        fit.count++;
    }
    return fit;
}

/* Enumerates the drivers whose devices the request may mean. */
static frit_status enumerate_for(struct registry *registry, const struct device_request *request)
{
    struct plugin *plugin;

    if (strcmp(request->driver, "auto") == 0)
        return enumerate_all(registry);
    plugin = driver_find(registry, request->driver);
    return plugin ? enumerate_plugin(registry, plugin) : FRIT_OK;
}

uint32_t request_find(struct registry *registry, const struct device_request *request,
                      const struct device_entry **out, struct str *why)
{
    struct fit fit;

    *out = NULL;
    if (enumerate_for(registry, request)) {
        why->failed = true;
        return FRIT_REASON_NO_DEVICE;
    }
    fit = fit_request(registry, request);
    if (!fit.first)
        return explain_absent(registry, request, why);
    if (request->stable_id[0] && fit.count > 1) {
        reason_print(FRIT_REASON_NO_DEVICE, "", why);
        str_addf(why, "; '%s' begins the ids of %" PRIu32 " devices, give more of it",
                 request->stable_id, fit.count);
        return FRIT_REASON_NO_DEVICE;
    }
    if (!fit.usable) {
        reason_print(fit.first->info->reason, fit.first->name, why);
        return fit.first->info->reason;
    }
    *out = fit.usable;
    return FRIT_REASON_NONE;
}

/* ---- lists ---- */

/* Cuts the first entry, without blanks around it, from the list; the rest is NULL after the last.
 */
static const char *next_entry(const char **list, size_t *length)
{
    const char *begin = *list + strspn(*list, " \t");
    size_t n = strcspn(begin, ",");

    *list = begin[n] == ',' ? begin + n + 1 : NULL;
    while (n > 0 && (begin[n - 1] == ' ' || begin[n - 1] == '\t'))
        n--;
    *length = n;
    return begin;
}

frit_status registry_check_list(const char *list, frit_err *err)
{
    while (list) {
        struct device_request request;
        size_t length;
        const char *entry = next_entry(&list, &length);

        TRY(request_parse(entry, length, &request, err));
    }
    return FRIT_OK;
}

/* Adds "; ENTRY: why" to the text for each entry that is skipped, and logs it unless `quiet`. */
static const struct device_entry *pick(struct registry *registry, const char *list, bool quiet,
                                       struct str *text)
{
    const struct device_entry *device = NULL;

    while (list && !device) {
        struct device_request request;
        struct str why = {0};
        size_t length;
        const char *entry = next_entry(&list, &length);

        (void)request_parse(entry, length, &request, NULL);
        if (request_find(registry, &request, &device, &why)) {
            if (!quiet)
                log_write(FRIT_LOG_WARN, "load", "device '%.*s' is skipped: %s", (int)length, entry,
                          why.failed ? "no memory to say why" : why.text);
            str_addf(text, "; %.*s: %s", (int)length, entry, why.failed ? "" : why.text);
            text->failed |= why.failed;
        }
        str_fini(&why);
    }
    return device;
}

frit_status registry_pick(struct registry *registry, const char *list,
                          const struct device_entry **out, frit_err *err)
{
    struct str text = {0};
    frit_status status = FRIT_OK;

    *out = NULL;
    TRY(registry_check_list(list, err));
    pthread_mutex_lock(&registry->lock);
    *out = pick(registry, list, !err, &text);
    pthread_mutex_unlock(&registry->lock);
    if (!*out && text.failed)
        status = fail_memory(err, text.length);
    else if (!*out)
        status = fail(err, FRIT_UNSUPPORTED,
                      "no usable device in '%.64s' (`frit doctor why NAME` says more)%s", list,
                      text.text);
    str_fini(&text);
    return status;
}
