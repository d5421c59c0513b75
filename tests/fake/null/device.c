/* SPDX-License-Identifier: Apache-2.0 */
/* The one device, its memory (blocks of host memory, or only their names), and the kernels that
 * other plugins load. */
#include <string.h>

#include "null.h"

frit_status device_enumerate(void *self, frit_device_info *out, uint64_t stride, uint32_t capacity,
                             uint32_t *count, frit_driver_info *driver, frit_err *err)
{
    static const frit_str formats[] = {{FRIT_FORMAT_HOST_FN, sizeof FRIT_FORMAT_HOST_FN - 1}};
    const struct instance *instance = self;
    const struct options *options = &instance->options;

    (void)stride;
    *count = 1;
    driver->reason = 0;
    if (capacity == 0)
        return FRIT_OK;
    if (!FRIT_HAS(out, frit_device_info, dtype_use))
        return null_fail(instance, err, FRIT_INCOMPATIBLE, "device info of %u bytes, %zu needed",
                         out->struct_size, sizeof *out);
    *out = (frit_device_info){
        .struct_size = sizeof *out,
        .type = FRIT_DEVICE_SOFTWARE,
        .stable_id = FRIT_STR("null-0"),
        .name = FRIT_STR("accepts everything and computes nothing"),
        .driver_version = FRIT_STR(NULL_VERSION),
        .fingerprint = FRIT_STR("null"),
        .caps = FRIT_CAP_F64 | FRIT_CAP_I64 | (options->no_suballoc ? FRIT_CAP_NO_SUBALLOC : 0) |
                (options->inline_queue ? FRIT_CAP_INLINE_QUEUE : 0) |
                (options->is_mapped ? FRIT_CAP_HOST_VISIBLE : 0),
        .align_bytes = NULL_ALIGN,
        .n_formats = options->opaque || !options->has_memory ? 0 : 1,
        .formats = formats,
        .n_heaps = options->pinned ? 2 : 1,
        .heap_stride = sizeof instance->heaps[0],
        .heaps = instance->heaps,
    };
    for (uint32_t dtype = 1; dtype < FRIT_DTYPE_LIMIT; dtype++)
        out->dtype_use[dtype] =
            frit_dtype_bits(dtype) ? FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC : 0;
    return FRIT_OK;
}

/* The one object of an application that is known: "null.submits", a uint64_t. */
static frit_status find_natives(const struct instance *instance, const frit_open_params *params,
                                uint64_t **submits, frit_err *err)
{
    const frit_str known = FRIT_STR("null.submits");

    for (uint32_t i = 0; i < params->n_natives; i++) {
        const frit_native_object *native = &params->natives[i];

        if (native->name.len != known.len || memcmp(native->name.ptr, known.ptr, known.len) != 0)
            return null_fail(instance, err, FRIT_UNSUPPORTED,
                             "null: an object '%.*s' of the application", (int)native->name.len,
                             native->name.ptr);
        *submits = native->object;
    }
    return FRIT_OK;
}

frit_status device_open(void *self, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err)
{
    struct instance *instance = self;
    struct device *device;
    uint64_t *submits = NULL;
    frit_status status = null_count_call(instance, NULL_CALL_device_open, err);

    *out = NULL;
    if (status)
        return status;
    if (index != 0)
        return null_fail(instance, err, FRIT_INVALID, "there is no null:%u, only null:0", index);
    status = find_natives(instance, params, &submits, err);
    if (status)
        return status;
    device = null_alloc(instance, sizeof *device);
    if (!device)
        return null_fail(instance, err, FRIT_NO_HOST_MEMORY, "no memory to open null:0");
    *device = (struct device){.instance = instance, .submits = submits};
    derived_open(&device->derivations);
    status = queue_open(&device->queue, device, err);
    if (status) {
        derived_close(&device->derivations);
        null_free(instance, device);
        return status;
    }
    *out = device;
    return FRIT_OK;
}

void device_close(void *self)
{
    struct device *device = self;

    queue_close(&device->queue, device);
    derived_close(&device->derivations);
    null_free(device->instance, device);
}

/* Counts the bytes if the heap has room for them. */
static bool heap_take(struct instance *instance, uint64_t bytes)
{
    atomic_uint_least64_t *used = &instance->counters[NULL_COUNT_bytes_now];
    uint64_t now = atomic_load(used);

    do {
        if (bytes > instance->options.heap - now)
            return false;
    } while (!atomic_compare_exchange_weak(used, &now, now + bytes));
    return true;
}

frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err)
{
    struct instance *instance = ((struct device *)self)->instance;
    bool has_memory = instance->options.has_memory;
    uint64_t align = desc->align > NULL_ALIGN ? desc->align : NULL_ALIGN; /* room for the header */
    uint64_t bytes = has_memory ? desc->bytes : 0;
    frit_status status = null_count_call(instance, NULL_CALL_alloc, err);
    struct frit_memory *buffer;

    if (status)
        return status;
    if (!heap_take(instance, desc->bytes))
        return null_fail(instance, err, FRIT_NO_DEVICE_MEMORY,
                         "null: no memory for %llu bytes in a heap of %llu",
                         (unsigned long long)desc->bytes,
                         (unsigned long long)instance->options.heap);
    buffer = instance->core->mem_alloc(instance->host->self, align + bytes, align);
    if (!buffer) {
        null_uncount(instance, NULL_COUNT_bytes_now, desc->bytes);
        return null_fail(instance, err, FRIT_NO_DEVICE_MEMORY, "null: no memory for %llu bytes",
                         (unsigned long long)desc->bytes);
    }
    buffer->data = has_memory ? (char *)buffer + align : NULL;
    buffer->bytes = desc->bytes;
    buffer->is_imported = false;
    out->memory = buffer;
    out->host_pointer = instance->options.is_mapped || desc->heap == 1 ? buffer->data : NULL;
    out->address = instance->options.opaque ? 0 : (uint64_t)(uintptr_t)buffer->data;
    null_count(instance, NULL_COUNT_memory_now, 1);
    return FRIT_OK;
}

void buffer_free(void *self, frit_memory *memory)
{
    struct instance *instance = ((struct device *)self)->instance;

    if (!memory)
        return;
    derived_written(self, memory, 0, memory->bytes);
    null_uncount(instance, NULL_COUNT_memory_now, 1);
    null_uncount(instance, NULL_COUNT_bytes_now, memory->is_imported ? 0 : memory->bytes);
    null_free(instance, memory);
}

/* ---- memory of other libraries: as if it were that of the CUDA device number 7 ---- */

void extmem_where(void *self, frit_extmem_where *out)
{
    (void)self;
    *out = (frit_extmem_where){.kind = 2, .number = 7};
}

uint64_t extmem_address(void *self, frit_memory *memory)
{
    const struct instance *instance = ((const struct device *)self)->instance;

    return memory && !instance->options.opaque ? (uint64_t)(uintptr_t)memory->data : 0;
}

frit_status extmem_import(void *self, const frit_extmem_desc *desc, frit_allocation *out,
                          frit_err *err)
{
    struct instance *instance = ((struct device *)self)->instance;
    frit_memory *buffer = instance->core->mem_alloc(instance->host->self, sizeof(*buffer), 64);

    if (!buffer)
        return null_fail(instance, err, FRIT_NO_HOST_MEMORY, "null: no memory to import memory");
    *buffer = (frit_memory){
        .data = (char *)(uintptr_t)desc->address, .bytes = desc->bytes, .is_imported = true};
    out->memory = buffer;
    out->address = desc->address;
    null_count(instance, NULL_COUNT_memory_now, 1);
    return FRIT_OK;
}

bool buffer_holds(const frit_memory *buffer, uint64_t offset, uint64_t bytes)
{
    return buffer && offset <= buffer->bytes && bytes <= buffer->bytes - offset;
}

void *native_get(void *self, frit_memory *memory, frit_str name)
{
    const struct instance *instance = ((const struct device *)self)->instance;
    const frit_str known = FRIT_STR("host.ptr");

    if (!memory || instance->options.opaque || name.len != known.len ||
        memcmp(name.ptr, known.ptr, known.len) != 0)
        return NULL;
    return memory->data;
}

frit_status kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                        frit_kernel **kernel, frit_err *err)
{
    struct instance *instance = ((struct device *)self)->instance;
    const frit_str known = FRIT_STR(FRIT_FORMAT_HOST_FN);
    frit_status status = null_count_call(instance, NULL_CALL_kernel_load, err);

    *kernel = NULL;
    if (status)
        return status;
    if (format.len != known.len || memcmp(format.ptr, known.ptr, known.len) != 0 ||
        n_bytes < sizeof(frit_host_fn))
        return null_fail(instance, err, FRIT_UNSUPPORTED, "null: no kernels of format %.*s",
                         (int)format.len, format.ptr);
    *kernel = null_alloc(instance, n_bytes);
    if (!*kernel)
        return null_fail(instance, err, FRIT_NO_HOST_MEMORY, "null: no memory for a kernel");
    memcpy(*kernel, bytes, n_bytes);
    null_count(instance, NULL_COUNT_kernels_now, 1);
    return FRIT_OK;
}

void kernel_unload(void *self, frit_kernel *kernel)
{
    struct instance *instance = ((struct device *)self)->instance;

    if (!kernel)
        return;
    null_uncount(instance, NULL_COUNT_kernels_now, 1);
    null_free(instance, kernel);
}
