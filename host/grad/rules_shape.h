/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of views, conversions and joins that take more than a line: the gradient of operand `i`. */
#ifndef GRAD_RULES_SHAPE_H
#define GRAD_RULES_SHAPE_H

#include "grad/rule.h"

term rule_reshape(const struct grad_rule *r, uint32_t i);
term rule_permute(const struct grad_rule *r, uint32_t i);
term rule_transpose(const struct grad_rule *r, uint32_t i);
term rule_flip(const struct grad_rule *r, uint32_t i);
term rule_slice(const struct grad_rule *r, uint32_t i);
term rule_slice_assign(const struct grad_rule *r, uint32_t i);
term rule_unfold(const struct grad_rule *r, uint32_t i);
term rule_cast(const struct grad_rule *r, uint32_t i);
term rule_cat(const struct grad_rule *r, uint32_t i);
term rule_stack(const struct grad_rule *r, uint32_t i);
term rule_repeat(const struct grad_rule *r, uint32_t i);
term rule_pad(const struct grad_rule *r, uint32_t i);
term rule_all_reduce(const struct grad_rule *r, uint32_t i);
term rule_all_reduce_coalesced(const struct grad_rule *r, uint32_t i);
term rule_all_gather(const struct grad_rule *r, uint32_t i);
term rule_reduce_scatter(const struct grad_rule *r, uint32_t i);

#endif
