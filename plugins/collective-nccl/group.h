/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of frit.collective/1. */
#ifndef NCCL_GROUP_H
#define NCCL_GROUP_H

#include <frit/collective.h>

frit_status group_id(void *opened, frit_group_id *out, frit_err *err);
frit_status group_create(void *opened, const frit_group_params *params, frit_group **out,
                         frit_err *err);
void group_destroy(frit_group *group);
void group_abort(frit_group *group, const frit_err *why);
frit_status group_begin(frit_group *group, const frit_collective_op *op, uint64_t *value,
                        frit_err *err);
frit_status group_wait(frit_group *group, uint64_t value, uint64_t timeout_ns, frit_err *err);

#endif
