/* SPDX-License-Identifier: Apache-2.0 */
/* The table of variations, and what a row does. */
#include "fuse/variation.h"

#include "lower/sched.h"

#define VARIATION(schedule, knob, value, class, least, low, high, change)  \
    static void change_##schedule##_##knob##_##value(struct kir_target *t) \
    {                                                                      \
        change;                                                            \
    }
#include "fuse/variations.def"

const struct variation variations[] = {
#define VARIATION(schedule, knob, value, class, least, low, high, change)              \
    {#schedule, #schedule ":" #knob "=" #value,      FRIT_NUMERIC_##class, least, low, \
     high,      change_##schedule##_##knob##_##value},
#include "fuse/variations.def"
};

const uint32_t n_variations = sizeof(variations) / sizeof(variations[0]);

static uint32_t legal_lanes(uint32_t lanes)
{
    return lanes < SCHED_MIN_LANES ? SCHED_MIN_LANES : lanes;
}

struct kir_target variation_target(const struct variation *variation,
                                   const struct kir_target *target)
{
    struct kir_target varied = *target;

    varied.tuning = kir_tuning_filled(&target->tuning, target->rereads_are_cached);
    variation->change(&varied);
    varied.lanes = legal_lanes(varied.lanes);
    varied.lanes_per_row = legal_lanes(varied.lanes_per_row);
    return varied;
}

bool variation_applies(const struct variation *variation, const frit_signature *sig)
{
    bool is_large = false, has_dim = false;

    for (uint32_t i = 0; i < sig->n_in + sig->n_out; i++) {
        const frit_arg_sig *arg = frit_arg_sig_at(sig, i);
        int64_t count = 1;

        for (uint32_t d = 0; d < arg->rank; d++) {
            count *= arg->dims[d];
            has_dim |= arg->dims[d] >= variation->low && arg->dims[d] <= variation->high;
        }
        is_large |= count >= variation->least;
    }
    return is_large && has_dim;
}
