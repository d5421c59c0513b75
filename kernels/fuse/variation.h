/* SPDX-License-Identifier: Apache-2.0 */
/* Variations of schedules, one per row of variations.def. */
#ifndef FUSE_VARIATION_H
#define FUSE_VARIATION_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/program.h>

#include "ir/target.h"

struct variation {
    const char *schedule; /* name */
    const char *identity;
    uint32_t numeric_class; /* relative to the schedule itself */
    int64_t least, low, high;
    void (*change)(struct kir_target *t);
};

extern const struct variation variations[];
extern const uint32_t n_variations;

/* A target with the change. */
struct kir_target variation_target(const struct variation *variation,
                                   const struct kir_target *target);
/* False if the kernels are those of the schedule itself, or take too little time, as far as
 * arithmetic over the arguments' dims shows. */
bool variation_applies(const struct variation *variation, const frit_signature *sig);

#endif
