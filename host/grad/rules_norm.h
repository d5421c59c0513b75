/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of normalisation: the gradient of operand `i`. */
#ifndef GRAD_RULES_NORM_H
#define GRAD_RULES_NORM_H

#include "grad/rule.h"

term rule_norm(const struct grad_rule *r, uint32_t i);

#endif
