/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for single ops. */
#ifndef FUSE_OP_H
#define FUSE_OP_H

#include <stdbool.h>

#include <frit/op.h>
#include <frit/program.h>

struct kir_target;

/* Whether the device computes with all types of an op. */
bool op_types_fit(const struct kir_target *target, const frit_op_desc *op);

#endif
