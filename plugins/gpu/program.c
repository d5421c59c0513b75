/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and fusers are those of the kernel compiler (kernels/kernels.h). */
#include "gpu/program.h"

#include "kernels.h"

frit_status program_supports(void *device, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err)
{
    return kernels_supports(device, ops, count, stride, bits, err);
}

frit_status program_for_op(void *device, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    return kernels_op(device, op, out, err);
}

static const struct kernels_device *kernels_of(const frit_fuser_device *device)
{
    return device->same_plugin ? device->device : NULL;
}

static frit_status prototypes(void *instance, const frit_fuser_device *device, frit_fuser *out,
                              uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err)
{
    (void)instance;
    return kernels_prototypes(kernels_of(device), out, stride, capacity, count, err);
}

static frit_status from_state(void *instance, const frit_fuser_device *device, frit_str name,
                              const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                              const void *bytes, uint64_t n_bytes, frit_program *out, frit_err *err)
{
    (void)instance;
    (void)name;
    return kernels_from_state(kernels_of(device), ops, n_ops, op_stride, bytes, n_bytes, out, err);
}

const frit_fuser_table program_fuser_table = {
    KERNELS_FUSER_SLOTS,
    .prototypes = prototypes,
    .from_state = from_state,
};
