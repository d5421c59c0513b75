/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for single ops and for blocks of ops. */
#ifndef CPU_PROGRAM_H
#define CPU_PROGRAM_H

#include <stdint.h>

#include <frit/op.h>
#include <frit/program.h>
#include <frit/status.h>

frit_status op_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                        uint64_t *bits, frit_err *err);
frit_status op_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);

#endif
