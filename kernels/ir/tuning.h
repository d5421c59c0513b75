/* SPDX-License-Identifier: Apache-2.0 */
/* The thresholds of a target, one per row of tuning.def.  A driver sets those that it knows better;
 * 0 is the default. */
#ifndef KIR_TUNING_H
#define KIR_TUNING_H

#include <stdbool.h>
#include <stdint.h>

struct kir_tuning {
#define KIR_TUNING(name, streamed, cached, unit, measured, meaning) uint32_t name;
#include "ir/tuning.def"
};

/* With the defaults in place of 0. */
struct kir_tuning kir_tuning_filled(const struct kir_tuning *tuning, bool rereads_are_cached);

#endif
