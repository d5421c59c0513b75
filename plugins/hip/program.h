/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and fusers: the slots that pass on to the kernel compiler. */
#ifndef HIP_PROGRAM_H
#define HIP_PROGRAM_H

#include <stdint.h>

#include <frit/fuser.h>
#include <frit/op.h>
#include <frit/program.h>
#include <frit/status.h>
#include <frit/types.h>

/* Slots `supports` and `op_program` of frit.backend/1; `self` is a struct device. */
frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err);
frit_status program_for_op(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);

/* Slots `prototypes` and `from_state` of frit_fuser_table. */
frit_status program_prototypes(void *instance, const frit_fuser_device *device, frit_fuser *out,
                               uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err);
frit_status program_from_state(void *instance, const frit_fuser_device *device, frit_str name,
                               const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                               const void *bytes, uint64_t n_bytes, frit_program *out,
                               frit_err *err);

#endif
