/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of reads and writes at numbers that take more than a line: the gradient of operand `i`. */
#ifndef GRAD_RULES_INDEX_H
#define GRAD_RULES_INDEX_H

#include "grad/rule.h"

term rule_select(const struct grad_rule *r, uint32_t i);
term rule_gather(const struct grad_rule *r, uint32_t i);
term rule_gather_nd(const struct grad_rule *r, uint32_t i);
term rule_scatter(const struct grad_rule *r, uint32_t i);
term rule_select_assign(const struct grad_rule *r, uint32_t i);
term rule_scatter_nd(const struct grad_rule *r, uint32_t i);
term rule_embedding(const struct grad_rule *r, uint32_t i);

#endif
