/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and fusers: the slots that pass on to the kernel compiler.  A driver's device is a
 * struct that begins with a struct kernels_device. */
#ifndef GPU_PROGRAM_H
#define GPU_PROGRAM_H

#include <stdint.h>

#include <frit/fuser.h>
#include <frit/op.h>
#include <frit/program.h>
#include <frit/status.h>

/* Slots `supports` and `op_program` of frit.backend/1. */
frit_status program_supports(void *device, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err);
frit_status program_for_op(void *device, const frit_op_desc *op, frit_program *out, frit_err *err);

/* The fusers of the kernel compiler for a driver's own devices. */
extern const frit_fuser_table program_fuser_table;

#endif
