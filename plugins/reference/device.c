/* SPDX-License-Identifier: Apache-2.0 */
/* The one device: the process itself, which is always there. */
#include "device.h"

#include "packed.h"
#include "program.h"
#include "reference.h"

frit_status device_enumerate(void *self, frit_device_info *out, uint64_t stride, uint32_t capacity,
                             uint32_t *count, frit_driver_info *driver, frit_err *err)
{
    struct instance *instance = self;

    *count = 1;
    driver->reason = 0;
    if (capacity == 0)
        return FRIT_OK;
    if (!plug_info_at(&instance->plug, out, stride, 0, err))
        return FRIT_INCOMPATIBLE;
    instance->heap = hosted_heap(instance->memory_bytes);
    *out = (frit_device_info){
        .struct_size = sizeof *out,
        .type = FRIT_DEVICE_SOFTWARE,
        .stable_id = FRIT_STR("reference-0"),
        .name = FRIT_STR("reference loops on one thread"),
        .driver_version = FRIT_STR(REF_VERSION),
        .fingerprint = FRIT_STR("reference"),
        .caps = FRIT_CAP_F64 | FRIT_CAP_I64,
    };
    hosted_describe(out, &instance->heap);
    for (uint32_t dtype = 0; dtype < FRIT_DTYPE_LIMIT; dtype++)
        out->dtype_use[dtype] = value_has(dtype)    ? FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC
                                : packed_has(dtype) ? FRIT_DTYPE_STORAGE
                                                    : 0;
    return FRIT_OK;
}

frit_status device_open(void *self, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err)
{
    static const struct hosted_driver launches = {program_check, program_run, program_name};
    const struct instance *instance = self;
    struct device *device;
    frit_status status = plug_check_open(&instance->plug, index, 1, params, err);

    *out = NULL;
    if (status)
        return status;
    device = plug_new(&instance->plug, sizeof *device, "reference:0", err);
    if (!device)
        return FRIT_NO_HOST_MEMORY;
    device->instance = instance;
    hosted_init(&device->hosted, &instance->plug, &launches, device, instance->memory_bytes);
    *out = device;
    return FRIT_OK;
}

frit_status device_compute_info(void *self, uint32_t index, frit_compute_info *out, frit_err *err)
{
    (void)self;
    (void)index;
    (void)err;
    out->is_slow = 1;
    out->text = FRIT_STR("plain loops, op by op");
    return FRIT_OK;
}

void device_close(void *self)
{
    struct device *device = self;

    hosted_fini(&device->hosted);
    plug_free(&device->instance->plug, device);
}
