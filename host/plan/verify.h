/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates lifetimes. */
#ifndef PLAN_VERIFY_H
#define PLAN_VERIFY_H

#include <stdint.h>

#include <frit/op.h>
#include <frit/program.h>
#include <frit/status.h>

struct plan;

/* Simulates lifetimes for an execution order: each of `n_ops` ops once, no value used before it is
 * made or after its death, ORDERED ops in order.  FRIT_INTERNAL names the op that violates this. */
frit_status plan_simulate(const frit_op_desc *ops, uint32_t n_ops, uint32_t n_values,
                          const uint32_t *order, frit_err *err);
/* plan_simulate over the steps; also checks that values used by other steps are stored, and that
 * memory shared by a view and its base is kept until the last use of either.  Called by
 * plan_create, which fails with FRIT_INTERNAL. */
frit_status plan_verify(const struct plan *plan, frit_err *err);

#endif
