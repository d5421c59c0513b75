/* SPDX-License-Identifier: Apache-2.0 */
/* `frit devices`: lists devices in order of preference, then plugins, with the reasons why some are
 * not usable. */
#include <inttypes.h>
#include <string.h>

#include <frit/tune.h>

#include "invocation.h"
#include "json.h"
#include "session.h"
#include "term.h"

/* The library checks struct_size in each call. */
static bool device_at(frit_host *host, uint64_t index, frit_device_desc *out)
{
    *out = (frit_device_desc){.struct_size = sizeof(*out)};
    return frit_device_info_at(host, index, out) == FRIT_OK;
}

/* What runs its kernels, "" where the driver does not say. */
static frit_compute_desc compute_at(frit_host *host, uint64_t index, const frit_device_desc *device)
{
    frit_compute_desc compute = {.struct_size = sizeof(compute), .text = ""};

    if (!device->reason && frit_device_compute(host, index, &compute, NULL))
        compute.text = "";
    return compute;
}

/* 0 where nothing is known. */
static uint64_t decisions_at(frit_host *host, uint64_t index, const frit_device_desc *device)
{
    uint64_t n = 0;

    return device->reason || frit_decisions_count(host, index, &n, NULL) ? 0 : n;
}

static bool plugin_at(frit_host *host, uint64_t index, frit_plugin_desc *out)
{
    *out = (frit_plugin_desc){.struct_size = sizeof(*out)};
    return frit_plugin_at(host, index, out) == FRIT_OK;
}

static void line(const char *name, const char *value)
{
    if (value && *value)
        printf("    %-16s %s\n", name, value);
}

static void show_memory(const frit_device_desc *device)
{
    char bytes[16];

    if (device->cache_bytes) {
        term_bytes(device->cache_bytes, bytes);
        line("cache", bytes);
    }
    if (device->link_bytes_per_s)
        printf("    %-16s %.1f GB/s, %.1f us a transfer\n", "link",
               (double)device->link_bytes_per_s / 1e9, (double)device->link_latency_ns / 1e3);
}

static void show_details(const frit_device_desc *device)
{
    line("plugin", device->plugin);
    line("id", device->stable_id);
    line("driver", device->driver_version);
    line("runtime", device->runtime_path);
    line("pci", device->pci);
    show_memory(device);
    printf("    %-16s 0x%" PRIx64 "\n", "capabilities", device->caps);
}

static void show_device(const frit_device_desc *device, const char *compute, uint64_t n_decisions,
                        bool verbose)
{
    char memory[16] = "-";

    printf("%c ", device->is_default ? '*' : ' ');
    term_paint(stdout, device->reason ? PAINT_BAD : PAINT_GOOD, 16, device->name);
    if (device->memory_bytes)
        term_bytes(device->memory_bytes, memory);
    printf(" %-12s %10s  %s", device->type, memory, device->label);
    if (*compute)
        printf(" [%s]", compute);
    if (n_decisions)
        printf(", %" PRIu64 " tuned", n_decisions);
    if (device->reason)
        printf(" (%s)", session_reason(device->reason));
    fputc('\n', stdout);
    if (verbose)
        show_details(device);
}

static void show_plugin(const frit_plugin_desc *plugin, bool verbose)
{
    const char *name = *plugin->id ? plugin->id : strrchr(plugin->path, '/');

    name = name ? name : plugin->path;
    fputs("  ", stdout);
    term_paint(stdout, plugin->reason ? PAINT_BAD : PAINT_GOOD, 16, name + (*name == '/'));
    if (plugin->reason)
        printf(" %s", plugin->reason_name);
    else
        printf(" %s, %" PRIu32 " %s", plugin->version, plugin->n_devices,
               plugin->n_devices == 1 ? "device" : "devices");
    printf("%s%s\n", *plugin->detail ? ": " : "", plugin->detail);
    if (verbose || plugin->reason) {
        line("file", plugin->path);
        line("origin", plugin->origin);
    }
}

/* A program that names no device runs on the default one. */
static void warn_if_slow(const frit_device_desc *device, const frit_compute_desc *compute)
{
    if (device->is_default && compute->is_slow)
        fprintf(stderr, "frit: warning: the default device, %s, computes slowly: %s\n",
                device->name, compute->text);
}

static void show_all(frit_host *host, bool verbose)
{
    frit_device_desc device;
    frit_plugin_desc plugin;
    bool any = false, preferred = false;

    for (uint64_t i = 0; device_at(host, i, &device); i++) {
        const frit_compute_desc compute = compute_at(host, i, &device);

        if (!any)
            term_paint(stdout, PAINT_HEAD, 0, "Devices in order of preference");
        fputs(any ? "" : "\n", stdout);
        show_device(&device, compute.text, decisions_at(host, i, &device), verbose);
        warn_if_slow(&device, &compute);
        any = true;
        preferred |= device.is_default != 0;
    }
    if (!any)
        puts("No devices.");
    else if (!preferred)
        puts("None of them is configured as default; see `frit doctor config`.");
    else
        puts("* the default device");
    fputc('\n', stdout);
    term_paint(stdout, PAINT_HEAD, 0, "Plugins");
    fputc('\n', stdout);
    for (uint64_t i = 0; plugin_at(host, i, &plugin); i++)
        show_plugin(&plugin, verbose);
}

static void print_json(frit_host *host)
{
    frit_device_desc device;
    frit_plugin_desc plugin;
    struct json json;

    json_begin(&json, stdout);
    json_text(&json, "version", frit_version());
    json_list(&json, "devices");
    for (uint64_t i = 0; device_at(host, i, &device); i++) {
        const frit_compute_desc compute = compute_at(host, i, &device);

        json_object(&json, NULL);
        json_text(&json, "name", device.name);
        json_text(&json, "label", device.label);
        json_text(&json, "plugin", device.plugin);
        json_text(&json, "type", device.type);
        json_text(&json, "id", device.stable_id);
        json_text(&json, "driver_version", device.driver_version);
        json_text(&json, "runtime_path", device.runtime_path);
        json_text(&json, "pci", device.pci);
        json_uint(&json, "memory_bytes", device.memory_bytes);
        json_uint(&json, "cache_bytes", device.cache_bytes);
        json_uint(&json, "link_bytes_per_s", device.link_bytes_per_s);
        json_uint(&json, "link_latency_ns", device.link_latency_ns);
        json_uint(&json, "capabilities", device.caps);
        json_text(&json, "compute", compute.text);
        json_bool(&json, "slow", compute.is_slow != 0);
        json_uint(&json, "decisions", decisions_at(host, i, &device));
        json_text(&json, "reason", session_reason(device.reason));
        json_bool(&json, "default", device.is_default != 0);
        json_close(&json);
    }
    json_close(&json);
    json_list(&json, "plugins");
    for (uint64_t i = 0; plugin_at(host, i, &plugin); i++) {
        json_object(&json, NULL);
        json_text(&json, "id", plugin.id);
        json_text(&json, "path", plugin.path);
        json_text(&json, "version", plugin.version);
        json_text(&json, "origin", plugin.origin);
        json_uint(&json, "devices", plugin.n_devices);
        json_text(&json, "reason", plugin.reason_name);
        json_text(&json, "detail", plugin.detail);
        json_close(&json);
    }
    json_close(&json);
    json_end(&json);
}

static int run(const struct invocation *in)
{
    struct session session;
    int status = session_open(&session, in);

    if (status == CLI_FINE && invocation_has(in, "--json"))
        print_json(session.host);
    else if (status == CLI_FINE)
        show_all(session.host, invocation_has(in, "--verbose"));
    session_close(&session);
    return status;
}

const struct command devices_command = {
    .name = "devices",
    .summary = "list devices and plugins",
    .args = "",
    .details =
        "With --json: version; devices {name, label, plugin, type, id, driver_version,\n"
        "runtime_path, pci, memory_bytes, cache_bytes, link_bytes_per_s, link_latency_ns,\n"
        "capabilities, compute, slow, decisions, reason, default}; plugins {id, path,\n"
        "version, origin, devices, reason, detail}.  In brackets, and in compute, is what\n"
        "runs a device's kernels; slow is true if something that it names would make it\n"
        "several times as fast.  Tuned, and decisions, is how many kinds of launches have a\n"
        "decision of the tuner (`frit tune show`).  The reason is \"none\" if it is usable.",
    .options = (const struct option[]){{"--verbose", NULL, "all details", 'v', false},
                                       {"--json", NULL, "print JSON", 0, false},
                                       {0}},
    .examples = (const char *const[]){"devices", "devices -v", "devices --json", NULL},
    .run = run,
};
