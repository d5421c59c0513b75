/* SPDX-License-Identifier: Apache-2.0 */
/* What enumerate says of the devices: it is complete, makes sense, and stays. */
#include <inttypes.h>
#include <string.h>

#include "conform/bare.h"

enum { DEVICES = 16, EXTRA = 64 };

/* An element of the host's array, which may be larger than this contract's. */
struct wide_info {
    frit_device_info info;
    char more[EXTRA];
};

struct device_list {
    uint32_t count;
    struct wide_info at[DEVICES];
};

static frit_status list_devices(struct bare *bare, void *instance, uint32_t capacity,
                                struct device_list *out)
{
    frit_driver_info driver = {.struct_size = sizeof(driver)};
    frit_status status;

    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < DEVICES; i++) {
        out->at[i].info.struct_size = sizeof(frit_device_info);
        memset(out->at[i].more, GUARD_BYTE, EXTRA);
    }
    status = bare->backend->enumerate(instance, &out->at[0].info, sizeof(out->at[0]), capacity,
                                      &out->count, &driver, &bare->err);
    return status ? bare_fail(bare, "enumerate", status) : FRIT_OK;
}

/* ---- texts ---- */

static bool same(frit_str a, frit_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static bool is_text(frit_str text)
{
    for (uint64_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return false;
    return true;
}

static frit_status check_ids(struct bare *bare, const struct device_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const frit_device_info *info = &list->at[i].info;

        if (!info->stable_id.len)
            return bare_fail_text(bare, "the stable id of device %u is empty", i);
        if (!is_text(info->stable_id) || !is_text(info->name))
            return bare_fail_text(bare, "the stable id or name of device %u is no text", i);
        for (uint32_t k = 0; k < i; k++)
            if (same(list->at[k].info.stable_id, info->stable_id))
                return bare_fail_text(bare, "devices %u and %u have the same stable id", k, i);
    }
    return FRIT_OK;
}

/* ---- numbers ---- */

static frit_status check_heaps(struct bare *bare, const frit_device_info *info)
{
    for (uint32_t i = 0; i < info->n_heaps; i++) {
        const frit_heap *heap = (const frit_heap *)(const void *)((const char *)info->heaps +
                                                                  (size_t)i * info->heap_stride);

        if (heap->kind > FRIT_HEAP_PINNED || (i == 0 && heap->kind != FRIT_HEAP_DEVICE))
            return bare_fail_text(bare, "heap %u is of kind %u", i, heap->kind);
    }
    return info->n_heaps ? FRIT_OK : bare_fail_text(bare, "there is no heap");
}

static frit_status check_info(struct bare *bare, const frit_device_info *info, uint32_t index)
{
    bool loads = FRIT_HAS(bare->backend, frit_backend, kernel_load) && bare->backend->kernel_load;

    if (info->index != index)
        return bare_fail_text(bare, "device %u has the index %u", index, info->index);
    if (info->type > FRIT_DEVICE_SOFTWARE)
        return bare_fail_text(bare, "device %u is of type %u", index, info->type);
    if (info->reason)
        return FRIT_OK;
    if (info->align_bytes & (info->align_bytes - 1))
        return bare_fail_text(bare, "align_bytes %" PRIu64 " is not a power of two",
                              info->align_bytes);
    if (info->n_formats && !loads)
        return bare_fail_text(bare, "it lists kernel formats and has no kernel_load");
    return check_heaps(bare, info);
}

/* ---- the checks ---- */

static frit_status described(struct bare *bare)
{
    static struct device_list list, few;
    frit_status status = list_devices(bare, bare->instance, DEVICES, &list);

    if (!status && list.count > DEVICES)
        list.count = DEVICES;
    if (!status)
        status = check_ids(bare, &list);
    for (uint32_t i = 0; i < list.count && !status; i++) {
        status = check_info(bare, &list.at[i].info, i);
        for (uint32_t k = 0; k < EXTRA && !status; k++)
            if (list.at[i].more[k] != GUARD_BYTE)
                status = bare_fail_text(bare, "enumerate writes beyond an element of its array");
    }
    for (uint32_t capacity = 0; capacity < list.count && !status; capacity++) {
        status = list_devices(bare, bare->instance, capacity, &few);
        if (!status && few.count != list.count)
            status = bare_fail_text(bare, "with room for %u enumerate counts %u devices, not %u",
                                    capacity, few.count, list.count);
        if (!status && few.at[capacity].info.stable_id.len)
            status = bare_fail_text(bare, "enumerate writes beyond its room for %u", capacity);
    }
    return status;
}

/* Another instance finds the same devices under the same ids, as another process would. */
static frit_status stable(struct bare *bare)
{
    static struct device_list first, second;
    void *instance = NULL;
    frit_status status = list_devices(bare, bare->instance, DEVICES, &first);

    if (!status && (status = bare->plugin->open(&bare->root, &instance, &bare->err)))
        return bare_fail(bare, "open", status);
    if (!status)
        status = list_devices(bare, instance, DEVICES, &second);
    for (uint32_t i = 0; i < first.count && i < DEVICES && !status; i++) {
        const frit_device_info *a = &first.at[i].info, *b = &second.at[i].info;

        if (i >= second.count || !same(a->stable_id, b->stable_id) ||
            !same(a->fingerprint, b->fingerprint))
            status = bare_fail_text(bare,
                                    "the stable id or fingerprint of device %u is '%.*s', then "
                                    "'%.*s'",
                                    i, (int)a->stable_id.len, a->stable_id.ptr,
                                    (int)b->stable_id.len, b->stable_id.ptr);
    }
    if (instance)
        bare->plugin->close(instance);
    return status;
}

BARE_CHECK(described, NULL)
BARE_CHECK(stable, NULL)

const struct conform_check describe_checks[] = {
    {"device", "described", "enumerate says all of each device, with values that can be",
     check_described},
    {"device", "stable-ids", "another instance finds the same devices under the same ids",
     check_stable},
    {0},
};
