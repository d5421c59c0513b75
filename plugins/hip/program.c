/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and fusers are those of the kernel compiler (kernels/kernels.h). */
#include "program.h"

#include "kernels.h"

#include "device.h"

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err)
{
    const struct device *device = self;

    return kernels_supports(&device->kernels, ops, count, stride, bits, err);
}

frit_status program_for_op(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    const struct device *device = self;

    return kernels_op(&device->kernels, op, out, err);
}

static const struct kernels_device *kernels_of(const frit_fuser_device *device)
{
    return device->same_plugin ? &((const struct device *)device->device)->kernels : NULL;
}

frit_status program_prototypes(void *instance, const frit_fuser_device *device, frit_fuser *out,
                               uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err)
{
    (void)instance;
    return kernels_prototypes(kernels_of(device), out, stride, capacity, count, err);
}

frit_status program_from_state(void *instance, const frit_fuser_device *device, frit_str name,
                               const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                               const void *bytes, uint64_t n_bytes, frit_program *out,
                               frit_err *err)
{
    (void)instance;
    (void)name;
    return kernels_from_state(kernels_of(device), ops, n_ops, op_stride, bytes, n_bytes, out, err);
}
