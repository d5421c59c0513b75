/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin's backend: its table, then the devices it lists.  What a driver says about its devices
 * is copied, so that later code meets checked numbers and terminated texts only. */
#include "load/driver.h"
#include "load/guard.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "load/load.h"
#include "load/table.h"

enum {
    FIRST_DEVICES = 8,
    MAX_DEVICES = 1024,
    MAX_TEXT = 4096,
    MAX_FORMATS = 64,
    MAX_HEAPS = 64,
    DEFAULT_ALIGN = 64
};

/* ---- the table ---- */

static bool driver_name_is_valid(frit_str name, size_t capacity)
{
    if (!name.ptr || name.len == 0 || name.len >= capacity)
        return false;
    for (uint64_t i = 0; i < name.len; i++) {
        bool letter = name.ptr[i] >= 'a' && name.ptr[i] <= 'z';
        bool other = (name.ptr[i] >= '0' && name.ptr[i] <= '9') || name.ptr[i] == '-';

        if (!letter && !(other && i > 0))
            return false;
    }
    return !str_is(name, "auto");
}

frit_status driver_take(struct plugin *plugin, const void *table)
{
    TRY(table_take_backend(plugin, table));
    plugin_text(plugin->backend.driver_name, plugin->driver, sizeof(plugin->driver));
    if (!driver_name_is_valid(plugin->backend.driver_name, sizeof(plugin->driver)))
        return plugin_refuse(plugin, FRIT_REASON_BAD_TABLE,
                             "driver name '%s' does not match [a-z][a-z0-9-]*, is longer than %zu "
                             "bytes, or is 'auto'",
                             plugin->driver, sizeof(plugin->driver) - 1);
    return FRIT_OK;
}

/* ---- devices ---- */

/* The driver has no usable device, with the reason ENUMERATE_FAILED and this detail. */
static FRIT_PRINTF(2, 3) void reject_devices(struct plugin *plugin, const char *format, ...)
{
    va_list args;

    plugin->n_devices = 0;
    plugin->driver_reason = FRIT_REASON_ENUMERATE_FAILED;
    va_start(args, format);
    vsnprintf(plugin->driver_detail, sizeof(plugin->driver_detail), format, args);
    va_end(args);
}

static frit_status copy_text(struct arena *arena, frit_str *text)
{
    size_t length = !text->ptr ? 0 : text->len < MAX_TEXT ? (size_t)text->len : MAX_TEXT;
    char *copy = arena_alloc(arena, length + 1);

    if (!copy)
        return FRIT_NO_HOST_MEMORY;
    plugin_text((frit_str){text->ptr, length}, copy, length + 1);
    *text = str_of(copy);
    return FRIT_OK;
}

static frit_status copy_texts(struct arena *arena, frit_device_info *info)
{
    TRY(copy_text(arena, &info->stable_id));
    TRY(copy_text(arena, &info->name));
    TRY(copy_text(arena, &info->pci));
    TRY(copy_text(arena, &info->driver_version));
    TRY(copy_text(arena, &info->runtime_version));
    TRY(copy_text(arena, &info->runtime_path));
    return copy_text(arena, &info->fingerprint);
}

static frit_status copy_formats(struct arena *arena, frit_device_info *info)
{
    frit_str *copies = arena_array(arena, (size_t)info->n_formats + 1, sizeof(*copies));

    if (!copies)
        return FRIT_NO_HOST_MEMORY;
    for (uint32_t i = 0; i < info->n_formats; i++) {
        copies[i] = info->formats[i];
        TRY(copy_text(arena, &copies[i]));
    }
    info->formats = copies;
    return FRIT_OK;
}

static const frit_heap *heap_at(const frit_device_info *info, uint32_t index)
{
    return (const frit_heap *)(const void *)((const char *)info->heaps +
                                             (size_t)index * info->heap_stride);
}

/* Copies the heaps, and replaces zeros by the defaults that they stand for. */
static frit_status copy_heaps(struct arena *arena, frit_device_info *info)
{
    frit_heap *copies = arena_array(arena, info->n_heaps, sizeof(*copies));

    if (!copies)
        return FRIT_NO_HOST_MEMORY;
    for (uint32_t i = 0; i < info->n_heaps; i++) {
        const frit_heap *heap = heap_at(info, i);

        memcpy(&copies[i], heap,
               heap->struct_size < sizeof(*heap) ? heap->struct_size : sizeof(*heap));
        copies[i].struct_size = sizeof(*heap);
        if (copies[i].budget == 0)
            copies[i].budget = copies[i].bytes;
        if (copies[i].granularity == 0)
            copies[i].granularity = 1;
    }
    info->heaps = copies;
    info->heap_stride = sizeof(*copies);
    return FRIT_OK;
}

static const char *heaps_trouble(const frit_device_info *info)
{
    if (!info->n_heaps || !info->heaps)
        return "no heaps";
    if (info->n_heaps > MAX_HEAPS)
        return "more than 64 heaps";
    for (uint32_t i = 0; i < info->n_heaps; i++) {
        if (info->heap_stride < FRIT_END_OF(frit_heap, granularity) ||
            !FRIT_HAS(heap_at(info, i), frit_heap, granularity))
            return "heaps that lack fields";
    }
    return info->heaps->kind == FRIT_HEAP_DEVICE
               ? NULL
               : "a first heap that is not of kind FRIT_HEAP_DEVICE";
}

static const char *formats_trouble(const struct plugin *plugin, const frit_device_info *info)
{
    if (info->n_formats == 0)
        return NULL;
    if (info->n_formats > MAX_FORMATS)
        return "more than 64";
    if (!info->formats)
        return "but no array of them";
    return plugin->backend.kernel_load ? NULL : "but slot 'kernel_load' is NULL";
}

/* Whether device `i` obeys the contract; if not, rejects all devices of the driver. */
static bool check_device(struct plugin *plugin, uint32_t i)
{
    frit_device_info *info = &plugin->devices[i];
    const char *formats, *heaps;

    if (!FRIT_HAS(info, frit_device_info, dtype_use)) {
        reject_devices(plugin,
                       "device %" PRIu32 " has a struct_size of %" PRIu32 ", at least %u is needed",
                       i, info->struct_size, FRIT_END_OF(frit_device_info, dtype_use));
        return false;
    }
    if (info->index != i) {
        reject_devices(plugin, "device %" PRIu32 " has index %" PRIu32, i, info->index);
        return false;
    }
    if (info->align_bytes & (info->align_bytes - 1)) {
        reject_devices(plugin, "device %" PRIu32 ": align_bytes %" PRIu64 " is not a power of two",
                       i, info->align_bytes);
        return false;
    }
    heaps = heaps_trouble(info);
    if (heaps) {
        reject_devices(plugin, "device %" PRIu32 " has %s", i, heaps);
        return false;
    }
    formats = formats_trouble(plugin, info);
    if (formats) {
        reject_devices(plugin, "device %" PRIu32 " lists %" PRIu32 " kernel formats, %s", i,
                       info->n_formats, formats);
        return false;
    }
    return true;
}

/* The device before `i` that has its stable id; `i` itself: none has. */
static uint32_t first_with_id(const struct plugin *plugin, uint32_t i)
{
    const frit_str id = plugin->devices[i].stable_id;

    for (uint32_t k = 0; k < i; k++)
        if (str_is(id, plugin->devices[k].stable_id.ptr))
            return k;
    return i;
}

/* The same of its copied texts. */
static bool check_id(struct plugin *plugin, uint32_t i)
{
    const uint32_t first = first_with_id(plugin, i);

    if (!plugin->devices[i].stable_id.ptr[strspn(plugin->devices[i].stable_id.ptr, " ")])
        reject_devices(plugin, "device %" PRIu32 " has an empty stable_id", i);
    else if (first < i)
        reject_devices(plugin, "devices %" PRIu32 " and %" PRIu32 " have one stable_id, '%.100s'",
                       first, i, plugin->devices[i].stable_id.ptr);
    return !plugin->driver_reason;
}

/* Replaces a zero alignment by the default it stands for, and an unknown type; the struct has
 * exactly the fields that the host knows. */
static void normalize_device(frit_device_info *info)
{
    if (info->type > FRIT_DEVICE_SOFTWARE)
        info->type = FRIT_DEVICE_UNKNOWN;
    if (info->align_bytes == 0)
        info->align_bytes = DEFAULT_ALIGN;
    info->struct_size = FRIT_END_OF(frit_device_info, dtype_use);
}

/* Repeats the call until the array is large enough: the number of devices may change in between. */
static frit_status enumerate(struct arena *arena, struct plugin *plugin, frit_driver_info *driver)
{
    uint32_t capacity = FIRST_DEVICES;

    for (int round = 0; round < 4; round++) {
        struct guard guard;
        uint32_t count = 0;
        frit_err err = ERR_INIT;
        frit_status status;

        plugin->devices = arena_array(arena, capacity, sizeof(*plugin->devices));
        if (!plugin->devices)
            return FRIT_NO_HOST_MEMORY;
        for (uint32_t i = 0; i < capacity; i++)
            plugin->devices[i].struct_size = sizeof(*plugin->devices);
        *driver = (frit_driver_info){.struct_size = sizeof(*driver)};
        guard_enter(&guard, plugin, "enumerate");
        status = fail_from(&err,
                           plugin->backend.enumerate(plugin->instance, plugin->devices,
                                                     sizeof(*plugin->devices), capacity, &count,
                                                     driver, &err),
                           "enumerate");
        guard_leave(&guard);
        if (status) {
            err.text[sizeof(err.text) - 1] = '\0';
            reject_devices(plugin, "%s%s%s", status_name(status), err.text[0] ? ": " : "",
                           err.text);
            return FRIT_OK;
        }
        if (count <= capacity) {
            plugin->n_devices = count;
            return FRIT_OK;
        }
        if (count > MAX_DEVICES)
            break;
        capacity = count;
    }
    reject_devices(plugin, "the driver never settled on a number of devices up to %d", MAX_DEVICES);
    return FRIT_OK;
}

frit_status driver_list(struct arena *arena, struct plugin *plugin)
{
    frit_driver_info driver;

    TRY(enumerate(arena, plugin, &driver));
    if (plugin->driver_reason)
        return FRIT_OK;
    if (plugin->n_devices == 0) {
        plugin->driver_reason = driver.reason ? driver.reason : FRIT_REASON_NO_DEVICE;
        plugin_text(driver.detail, plugin->driver_detail, sizeof(plugin->driver_detail));
        return FRIT_OK;
    }
    for (uint32_t i = 0; i < plugin->n_devices; i++) {
        if (!check_device(plugin, i))
            return FRIT_OK;
        TRY(copy_texts(arena, &plugin->devices[i]));
        if (!check_id(plugin, i))
            return FRIT_OK;
        TRY(copy_formats(arena, &plugin->devices[i]));
        TRY(copy_heaps(arena, &plugin->devices[i]));
        normalize_device(&plugin->devices[i]);
    }
    return FRIT_OK;
}
