/* SPDX-License-Identifier: Apache-2.0 */
/* Programs. */
#ifndef REFERENCE_PROGRAM_H
#define REFERENCE_PROGRAM_H

#include <stdint.h>

#include <frit/op.h>
#include <frit/program.h>
#include <frit/status.h>
#include <frit/types.h>

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err);
frit_status program_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);
/* Slots of struct hosted_driver.  What passed the check cannot fail. */
frit_status program_check(void *device, const frit_launch *launch, frit_err *err);
frit_status program_run(void *device, const frit_launch *launch, frit_err *err);
frit_str program_name(const frit_launch *launch);

#endif
