/* SPDX-License-Identifier: Apache-2.0 */
/* The one device: the process itself, which is always there. */
#include "device.h"

#include "packed.h"
#include "program.h"
#include "reference.h"
#include "util/kernel.h"

frit_status device_enumerate(void *self, frit_device_info *out, uint64_t stride, uint32_t capacity,
                             uint32_t *count, frit_driver_info *driver, frit_err *err)
{
    struct instance *instance = self;
    uint64_t bytes = instance->memory_bytes ? instance->memory_bytes : hosted_machine_bytes();

    (void)stride;
    *count = 1;
    driver->reason = 0;
    if (capacity == 0)
        return FRIT_OK;
    if (!FRIT_HAS(out, frit_device_info, dtype_use))
        return plug_fail(&instance->plug, err, FRIT_INCOMPATIBLE,
                         "device info of %u bytes, %zu needed", out->struct_size, sizeof *out);
    instance->heap = (frit_heap){.struct_size = sizeof instance->heap,
                                 .kind = FRIT_HEAP_DEVICE,
                                 .bytes = bytes,
                                 .budget = bytes};
    *out = (frit_device_info){
        .struct_size = sizeof *out,
        .type = FRIT_DEVICE_SOFTWARE,
        .stable_id = FRIT_STR("reference-0"),
        .name = FRIT_STR("reference loops on one thread"),
        .driver_version = FRIT_STR(REF_VERSION),
        .fingerprint = FRIT_STR("reference"),
        .caps = FRIT_CAP_INLINE_QUEUE | FRIT_CAP_HOST_VISIBLE | FRIT_CAP_F64 | FRIT_CAP_I64,
        .n_formats = sizeof kernel_formats / sizeof kernel_formats[0],
        .formats = kernel_formats,
        .cache_bytes = hosted_cache_bytes(),
        .n_heaps = 1,
        .heap_stride = sizeof instance->heap,
        .heaps = &instance->heap,
    };
    for (uint32_t dtype = 0; dtype < FRIT_DTYPE_LIMIT; dtype++)
        out->dtype_use[dtype] = value_has(dtype)    ? FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC
                                : packed_has(dtype) ? FRIT_DTYPE_STORAGE
                                                    : 0;
    return FRIT_OK;
}

frit_status device_open(void *self, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err)
{
    static const struct serial_driver launches = {program_check, program_run, program_name};
    const struct instance *instance = self;
    struct device *device;
    frit_status status = plug_refuse_natives(&instance->plug, params, err);

    *out = NULL;
    if (status)
        return status;
    if (index != 0)
        return plug_fail(&instance->plug, err, FRIT_INVALID,
                         "there is no reference:%u, only reference:0", index);
    device = plug_alloc(&instance->plug, sizeof *device, _Alignof(struct device));
    if (!device)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory to open reference:0");
    device->instance = instance;
    hosted_init(&device->hosted, &instance->plug, &launches, device, instance->memory_bytes);
    *out = device;
    return FRIT_OK;
}

void device_close(void *self)
{
    struct device *device = self;

    hosted_fini(&device->hosted);
    plug_free(&device->instance->plug, device);
}
