/* SPDX-License-Identifier: Apache-2.0 */
/* The page of health, as text and as JSON. */
#include <inttypes.h>
#include <string.h>

#include "command.h"
#include "doctor/health.h"
#include "json.h"
#include "session.h"
#include "term.h"

/* ---- text ---- */

static void head(FILE *out, const char *text)
{
    fputc('\n', out);
    term_paint(out, PAINT_HEAD, 0, text);
    fputc('\n', out);
}

static void print_build(const struct health *health, FILE *out)
{
    const frit_build_desc *build = &health->build;

    fprintf(out, "frit %s, ABI %" PRIu32 ".%" PRIu32 " to %" PRIu32 ".%" PRIu32 ", %s, %s\n",
            build->version, build->abi_min >> 16, build->abi_min & 0xffff, build->abi_max >> 16,
            build->abi_max & 0xffff, build->compiler, build->sanitizer);
    fprintf(out, "  %-16s %s\n", "library", build->path);
    fprintf(out, "  %-16s %s\n", "system", health->limits.system);
}

/* "tried earlier" */
static const char *probe_words(const frit_plugin_desc *plugin)
{
    static const char *const words[][2] = {{"trusted", "built with this library"},
                                           {"now", "tried in a process of its own just now"},
                                           {"earlier", "tried earlier, the result is kept"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(words[i][0], plugin->probe) == 0)
            return words[i][1];
    return "not tried before it was loaded";
}

static void print_plugins(const struct health *health, FILE *out)
{
    frit_plugin_desc plugin = {.struct_size = sizeof(plugin)};

    head(out, "Plugins");
    for (uint64_t i = 0; frit_plugin_at(health->host, i, &plugin) == FRIT_OK; i++) {
        const char *slash = strrchr(plugin.path, '/');
        const char *name = *plugin.id ? plugin.id : slash ? slash + 1 : plugin.path;

        fputs("  ", out);
        term_paint(out, plugin.reason ? PAINT_BAD : PAINT_GOOD, 16, name);
        if (plugin.reason)
            fprintf(out, " %s%s%s\n", plugin.reason_name, *plugin.detail ? ": " : "",
                    plugin.detail);
        else
            fprintf(out, " %s, %" PRIu32 " %s; %s\n", plugin.version, plugin.n_devices,
                    plugin.n_devices == 1 ? "device" : "devices", probe_words(&plugin));
    }
}

static void print_devices(const struct health *health, FILE *out)
{
    frit_device_desc device = {.struct_size = sizeof(device)};

    head(out, "Devices");
    for (uint64_t i = 0; frit_device_info_at(health->host, i, &device) == FRIT_OK; i++) {
        char memory[16] = "-";

        if (device.memory_bytes)
            term_bytes(device.memory_bytes, memory);
        fprintf(out, "%c ", device.is_default ? '*' : ' ');
        term_paint(out, device.reason ? PAINT_BAD : PAINT_GOOD, 16, device.name);
        fprintf(out, " %-12s %10s  %s", device.type, memory, device.label);
        if (device.reason)
            fprintf(out, " (%s)", session_reason(device.reason));
        fputc('\n', out);
    }
}

static void print_place(const struct location *place, FILE *out)
{
    char bytes[16], limit[16];

    fprintf(out, "  %-16s %s", location_name(place->desc.kind), place->desc.path);
    if (!place->exists)
        fputs(place->desc.kind == FRIT_PLACE_PLUGINS ? " (not there)" : " (not made yet)", out);
    else if (place->desc.kind == FRIT_PLACE_ARTEFACTS)
        fprintf(out, " (%" PRIu64 " files, %s of %s)", place->n_files,
                term_bytes(place->bytes, bytes), term_bytes(place->desc.max_bytes, limit));
    else if (place->desc.kind == FRIT_PLACE_PLANS || place->desc.kind == FRIT_PLACE_DECISIONS)
        fprintf(out, " (%s)", term_bytes(place->bytes, bytes));
    if (*place->desc.origin && strcmp(place->desc.origin, "built in") != 0)
        fprintf(out, ", by %s", place->desc.origin);
    fputc('\n', out);
}

static void print_places(const struct health *health, FILE *out)
{
    head(out, "Files and folders");
    if (health->n_places == 0 || health->places[0].desc.kind != FRIT_PLACE_CONFIG)
        fprintf(out, "  %-16s none was found\n", location_name(FRIT_PLACE_CONFIG));
    for (size_t i = 0; i < health->n_places; i++)
        print_place(&health->places[i], out);
}

static void print_limits(const struct limits *limits, FILE *out)
{
    char memory[16], group[16] = "no limit";

    head(out, "Limits");
    if (limits->group_memory != UINT64_MAX)
        term_bytes(limits->group_memory, group);
    fprintf(out, "  %-16s %" PRIu32 " of %" PRIu32 "\n", "processors", limits->n_usable,
            limits->n_processors);
    fprintf(out, "  %-16s %s, of the control group %s\n", "memory",
            term_bytes(limits->memory, memory), group);
    if (*limits->huge_pages)
        fprintf(out, "  %-16s %s\n", "huge pages", limits->huge_pages);
    for (size_t i = 0; i < LIMITS; i++)
        fprintf(out, "  %-16s %s\n", limits->at[i].name, limits->at[i].text);
}

void health_print(const struct health *health, FILE *out)
{
    print_build(health, out);
    if (health->host) {
        print_plugins(health, out);
        print_devices(health, out);
        print_places(health, out);
    }
    print_limits(&health->limits, out);
    fputc('\n', out);
    problems_print(&health->problems, "problem", out);
}

/* ---- JSON ---- */

static void json_abi(struct json *json, const char *key, uint32_t version)
{
    char text[16];

    snprintf(text, sizeof(text), "%" PRIu32 ".%" PRIu32, version >> 16, version & 0xffff);
    json_text(json, key, text);
}

static void json_plugins(const struct health *health, struct json *json)
{
    frit_plugin_desc plugin = {.struct_size = sizeof(plugin)};

    json_list(json, "plugins");
    for (uint64_t i = 0; frit_plugin_at(health->host, i, &plugin) == FRIT_OK; i++) {
        json_object(json, NULL);
        json_text(json, "id", plugin.id);
        json_text(json, "path", plugin.path);
        json_text(json, "version", plugin.version);
        json_text(json, "origin", plugin.origin);
        json_uint(json, "devices", plugin.n_devices);
        json_text(json, "reason", plugin.reason_name);
        json_text(json, "detail", plugin.detail);
        json_text(json, "probe", plugin.probe);
        json_close(json);
    }
    json_close(json);
}

static void json_devices(const struct health *health, struct json *json)
{
    frit_device_desc device = {.struct_size = sizeof(device)};

    json_list(json, "devices");
    for (uint64_t i = 0; frit_device_info_at(health->host, i, &device) == FRIT_OK; i++) {
        json_object(json, NULL);
        json_text(json, "name", device.name);
        json_text(json, "plugin", device.plugin);
        json_text(json, "type", device.type);
        json_text(json, "reason", session_reason(device.reason));
        json_bool(json, "default", device.is_default != 0);
        json_close(json);
    }
    json_close(json);
}

static void json_places(const struct health *health, struct json *json)
{
    json_list(json, "places");
    for (size_t i = 0; i < health->n_places; i++) {
        const struct location *place = &health->places[i];

        json_object(json, NULL);
        json_text(json, "kind", location_name(place->desc.kind));
        json_text(json, "path", place->desc.path);
        json_text(json, "origin", place->desc.origin);
        json_bool(json, "exists", place->exists);
        json_uint(json, "files", place->n_files);
        json_uint(json, "bytes", place->bytes);
        json_uint(json, "max_bytes", place->desc.max_bytes);
        json_close(json);
    }
    json_close(json);
}

static void json_limits(const struct limits *limits, struct json *json)
{
    json_list(json, "limits");
    for (size_t i = 0; i < LIMITS; i++) {
        json_object(json, NULL);
        json_text(json, "name", limits->at[i].name);
        if (limits->at[i].value == UINT64_MAX)
            json_text(json, "value", NULL);
        else
            json_uint(json, "value", limits->at[i].value);
        json_close(json);
    }
    json_close(json);
    json_uint(json, "processors", limits->n_processors);
    json_uint(json, "usable_processors", limits->n_usable);
    json_uint(json, "memory_bytes", limits->memory);
    json_text(json, "huge_pages", limits->huge_pages);
}

void health_json(const struct health *health, FILE *out)
{
    struct json json;

    json_begin(&json, out);
    json_text(&json, "version", health->build.version);
    json_abi(&json, "abi_min", health->build.abi_min);
    json_abi(&json, "abi_max", health->build.abi_max);
    json_text(&json, "compiler", health->build.compiler);
    json_text(&json, "sanitizer", health->build.sanitizer);
    json_text(&json, "library", health->build.path);
    json_text(&json, "system", health->limits.system);
    if (health->host) {
        json_plugins(health, &json);
        json_devices(health, &json);
        json_places(health, &json);
    }
    json_limits(&health->limits, &json);
    problems_json(&health->problems, "problems", &json);
    json_end(&json);
}
