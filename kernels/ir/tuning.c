/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/tuning.h"

static uint32_t or_default(uint32_t value, uint32_t streamed, uint32_t cached,
                           bool rereads_are_cached)
{
    return value ? value : rereads_are_cached ? cached : streamed;
}

struct kir_tuning kir_tuning_filled(const struct kir_tuning *tuning, bool rereads_are_cached)
{
    return (struct kir_tuning){
#define KIR_TUNING(name, streamed, cached, unit, measured, meaning) \
    .name = or_default(tuning->name, streamed, cached, rereads_are_cached),
#include "ir/tuning.def"
    };
}
