/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for single ops and for blocks of ops: those of the kernel library, made for this device.
 */
#include "program.h"

#include "cpu.h"

frit_status op_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                        uint64_t *bits, frit_err *err)
{
    const struct device *device = self;

    return kernels_supports(&device->kernels, ops, count, stride, bits, err);
}

frit_status op_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    return kernels_op(&((struct device *)self)->kernels, op, out, err);
}

/* ---- slots of frit.fuser/1 ---- */

static const struct kernels_device *kernels_of(const frit_fuser_device *device)
{
    return device->same_plugin ? &((const struct device *)device->device)->kernels : NULL;
}

static frit_status fuser_prototypes(void *instance, const frit_fuser_device *device,
                                    frit_fuser *out, uint64_t stride, uint32_t capacity,
                                    uint32_t *count, frit_err *err)
{
    (void)instance;
    return kernels_prototypes(kernels_of(device), out, stride, capacity, count, err);
}

static frit_status fuser_from_state(void *instance, const frit_fuser_device *device, frit_str name,
                                    const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                                    const void *bytes, uint64_t n_bytes, frit_program *out,
                                    frit_err *err)
{
    (void)instance;
    (void)name;
    return kernels_from_state(kernels_of(device), ops, n_ops, op_stride, bytes, n_bytes, out, err);
}

const frit_fuser_table fuser_table = {
    KERNELS_FUSER_SLOTS,
    .prototypes = fuser_prototypes,
    .from_state = fuser_from_state,
};
