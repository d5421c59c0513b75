/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of powers, reductions, scans, softmax and sorting that take more than a line: the gradient
 * of operand `i`. */
#ifndef GRAD_RULES_REDUCE_H
#define GRAD_RULES_REDUCE_H

#include "grad/rule.h"

term rule_clamp(const struct grad_rule *r, uint32_t i);
term rule_pow(const struct grad_rule *r, uint32_t i);
term rule_sum(const struct grad_rule *r, uint32_t i);
term rule_mean(const struct grad_rule *r, uint32_t i);
term rule_var(const struct grad_rule *r, uint32_t i);
term rule_extreme(const struct grad_rule *r, uint32_t i);
term rule_prod(const struct grad_rule *r, uint32_t i);
term rule_cumsum(const struct grad_rule *r, uint32_t i);
term rule_cumprod(const struct grad_rule *r, uint32_t i);
term rule_cumextreme(const struct grad_rule *r, uint32_t i);
term rule_softmax(const struct grad_rule *r, uint32_t i);
term rule_sort(const struct grad_rule *r, uint32_t i);

#endif
