/* SPDX-License-Identifier: Apache-2.0 */
/* By how much an index grows from step to step. */
#ifndef LLVM_RATE_H
#define LLVM_RATE_H

#include <stdint.h>

#include "emit/llvm/api.h"
#include "ir/kir.h"

struct ll;

/* Quotients of what is counted: most steps leave them as they are; or there are to be none; or a
 * step is one in which they grow by 1. */
enum ll_quotients { LL_QUOTIENTS_STAY, LL_NO_QUOTIENTS, LL_QUOTIENTS_GROW };

/* Steps from group to group, or from round to round of a loop. */
struct ll_steps {
    struct ll *l;
    uint32_t loop; /* KIR_NONE: groups */
    enum ll_quotients quotients;
};

/* How far after the element that a load reads now lies the one that it reads a step later: an I64.
 * NULL: unknown, or none. */
ll_value ll_distance(const struct ll_steps *s, const struct kir_inst *load);

#endif
