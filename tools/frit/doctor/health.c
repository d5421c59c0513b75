/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering: what the page shows is in health_print.c. */
#include "doctor/health.h"

#include <inttypes.h>
#include <string.h>

#include <frit/host.h>

#include "invocation.h"
#include "session.h"

/* Of the configuration; what is logged of plugins is found again as their reasons. */
static void on_log(void *ctx, uint32_t level, const char *topic, const char *text)
{
    struct problems *problems = ctx;

    if (level <= FRIT_LOG_WARN && strcmp(topic, "conf") == 0)
        problems_add(problems, "correct or unset it", "%s", text);
}

static void open_host(struct health *health)
{
    const frit_host_params params = {
        .struct_size = sizeof(params), .log = on_log, .log_ctx = &health->problems};
    frit_err err = {.struct_size = sizeof(err)};

    if (!frit_host_open(&params, &health->host, &err))
        return;
    health->host = NULL;
    problems_add(&health->problems, "correct it; plugins and devices can be checked only then",
                 "no host opens: %s", err.text);
}

/* What is simply not there is no fault: a vendor's runtime or device, a plugin switched off. */
static bool is_fault(uint32_t reason)
{
    return reason && reason != FRIT_REASON_NO_RUNTIME && reason != FRIT_REASON_NO_DEVICE &&
           reason != FRIT_REASON_DISABLED && reason != FRIT_REASON_SHADOWED;
}

static void check_plugins(struct health *health)
{
    frit_plugin_desc plugin = {.struct_size = sizeof(plugin)};

    for (uint64_t i = 0; frit_plugin_at(health->host, i, &plugin) == FRIT_OK; i++)
        if (is_fault(plugin.reason))
            problems_add(&health->problems, frit_reason_advice(plugin.reason),
                         "plugin %s (%s) is not used: %s%s%s",
                         *plugin.path ? plugin.path : plugin.id, plugin.origin, plugin.reason_name,
                         *plugin.detail ? ": " : "", plugin.detail);
}

static void check_default(struct health *health, const frit_device_desc *device, uint64_t index)
{
    frit_compute_desc compute = {.struct_size = sizeof(compute), .text = ""};

    if (!frit_device_compute(health->host, index, &compute, NULL) && compute.is_slow)
        problems_add(&health->problems, "choose another device, or install what it names",
                     "the default device, %s, computes slowly: %s", device->name, compute.text);
}

static void check_devices(struct health *health)
{
    frit_device_desc device = {.struct_size = sizeof(device)};
    bool any = false, preferred = false;

    for (uint64_t i = 0; frit_device_info_at(health->host, i, &device) == FRIT_OK; i++) {
        any |= !device.reason;
        preferred |= device.is_default != 0;
        if (is_fault(device.reason))
            problems_add(&health->problems, frit_reason_advice(device.reason),
                         "device %s is not usable: %s", device.name, session_reason(device.reason));
        if (device.is_default)
            check_default(health, &device, i);
    }
    if (!any)
        problems_add(&health->problems, "install a driver, or add its folder to [search] dirs",
                     "there is no usable device");
    else if (!preferred)
        problems_add(&health->problems, "`frit doctor NAME` explains it, for a name of that list",
                     "no device of the configured list is usable ([frit] device)");
}

static void look_at_places(struct health *health)
{
    frit_place_desc desc = {.struct_size = sizeof(desc)};

    for (uint64_t i = 0;
         frit_place_at(health->host, i, &desc) == FRIT_OK && health->n_places < HEALTH_PLACES;
         i++) {
        struct location *place = &health->places[health->n_places++];

        location_look(&desc, place);
        location_check(place, &health->problems);
    }
}

void health_gather(struct health *health)
{
    *health = (struct health){.build.struct_size = sizeof(health->build)};
    frit_build(&health->build);
    if (strcmp(health->build.version, FRIT_VERSION) != 0)
        problems_add(&health->problems, "use library and command of the same release",
                     "the library is %s, the command %s", health->build.version, FRIT_VERSION);
    limits_read(&health->limits);
    open_host(health);
    if (health->host) {
        check_plugins(health);
        check_devices(health);
        look_at_places(health);
    }
    limits_check(&health->limits, &health->problems);
}

void health_fini(struct health *health)
{
    frit_host_close(health->host);
    problems_fini(&health->problems);
}

int health_command(const struct invocation *in)
{
    struct health health;
    int status;

    health_gather(&health);
    if (invocation_has(in, "--json"))
        health_json(&health, stdout);
    else
        health_print(&health, stdout);
    status = health.problems.n || health.problems.no_memory ? CLI_FAILED : CLI_FINE;
    health_fini(&health);
    return status;
}
