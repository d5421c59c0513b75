/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of products, pooling, resampling, spectra and losses that take more than a line: the
 * gradient of operand `i`. */
#ifndef GRAD_RULES_CONTRACT_H
#define GRAD_RULES_CONTRACT_H

#include "grad/rule.h"

term rule_matmul(const struct grad_rule *r, uint32_t i);
term rule_linear(const struct grad_rule *r, uint32_t i);
term rule_attention(const struct grad_rule *r, uint32_t i);
term rule_conv(const struct grad_rule *r, uint32_t i);
term rule_conv_transpose(const struct grad_rule *r, uint32_t i);
term rule_avg_pool(const struct grad_rule *r, uint32_t i);
term rule_max_pool(const struct grad_rule *r, uint32_t i);
term rule_adaptive_avg_pool(const struct grad_rule *r, uint32_t i);
term rule_interpolate(const struct grad_rule *r, uint32_t i);
term rule_ctc_loss(const struct grad_rule *r, uint32_t i);
term rule_rfft(const struct grad_rule *r, uint32_t i);
term rule_irfft(const struct grad_rule *r, uint32_t i);

#endif
