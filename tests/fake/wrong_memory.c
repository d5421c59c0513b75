/* SPDX-License-Identifier: Apache-2.0 */
#include "wrong_memory.h"

#include <string.h>

/* ---- the second heap ---- */

frit_status wrong_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                            uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                            frit_err *err)
{
    static const frit_heap heaps[] = {
        {.struct_size = sizeof(heaps[0]), .kind = FRIT_HEAP_DEVICE, .bytes = 1u << 30},
        {.struct_size = sizeof(heaps[0]), .kind = FRIT_HEAP_PINNED, .bytes = 1u << 28},
    };
    frit_status status = fake_enumerate(instance, out, stride, capacity, count, driver, err);

    for (uint32_t i = 0; i < *count && i < capacity && !status; i++) {
        frit_device_info *info = (frit_device_info *)(void *)((char *)out + i * stride);

        info->n_heaps = 2;
        info->heap_stride = sizeof(heaps[0]);
        info->heaps = heaps;
    }
    return status;
}

frit_status wrong_alloc_pinned(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                               frit_err *err)
{
    frit_alloc_desc twice = *desc;
    frit_status status;

    twice.bytes = 2 * ((desc->bytes + desc->align - 1) / desc->align * desc->align);
    status = fake_of(self)->plain.alloc(self, &twice, out, err);
    if (!status && wrong_row == WRONG_NOT_MAPPED)
        out->host_pointer = NULL;
    if (!status && wrong_row == WRONG_SHADOW) /* beside the memory */
        out->host_pointer = (char *)out->host_pointer + twice.bytes / 2;
    return status;
}

/* ---- objects of the application ---- */

frit_status wrong_open(void *instance, uint32_t index, const frit_open_params *params, void **out,
                       frit_err *err)
{
    const struct fake *fake = instance;
    frit_open_params own = *params;

    if (wrong_row == WRONG_NATIVES)
        own.n_natives = 0;
    return fake->plain.device_open(instance, index, &own, out, err);
}

/* ---- memory of the application ---- */

enum { IMPORTED = 8 };

static frit_import_desc imported[IMPORTED]; /* bytes 0: free */

frit_status wrong_import(void *self, const frit_import_desc *desc, frit_allocation *out,
                         frit_err *err)
{
    for (uint32_t i = 0; i < IMPORTED; i++) {
        if (imported[i].bytes)
            continue;
        imported[i] = *desc;
        out->memory = (frit_memory *)(uintptr_t)desc->data;
        out->address = (uint64_t)(uintptr_t)desc->data;
        out->host_pointer = out->memory;
        return FRIT_OK;
    }
    return fake_fail(fake_of(self), err, FRIT_UNSUPPORTED, "eight are enough");
}

void wrong_free(void *self, frit_memory *memory)
{
    for (uint32_t i = 0; i < IMPORTED && memory; i++) {
        if (!imported[i].bytes || (const void *)memory != imported[i].data)
            continue;
        if (wrong_row == WRONG_SCRUBS)
            memset(memory, 0, imported[i].bytes);
        imported[i].bytes = 0;
        return;
    }
    fake_of(self)->plain.free(self, memory);
}

/* ---- memory of another device ---- */

/* Both are host memory. */
frit_status wrong_copy_from(void *self, const frit_transfer *to, const frit_peer_source *from,
                            uint64_t *value, frit_err *err)
{
    const uint64_t offset = wrong_row == WRONG_PEERS ? 0 : from->offset;

    return fake_of(self)->plain.write(self, to, (const char *)from->memory + offset, value, err);
}
