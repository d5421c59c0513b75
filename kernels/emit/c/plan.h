/* SPDX-License-Identifier: Apache-2.0 */
/* How a phase is cut into regions. */
#ifndef EMIT_C_PLAN_H
#define EMIT_C_PLAN_H

#include <stdbool.h>

#include <frit/status.h>

#include "ir/kir.h"

/* Where a value lives. */
enum plan_home {
    PLAN_UNUSED, /* nowhere: nothing that has an effect depends on it, so it is not written */
    PLAN_LOCAL,  /* in its region, or in a loop of it */
    PLAN_HELD,   /* in a variable of each thread, of the whole phase */
    PLAN_GROUP   /* once for the group */
};

struct plan {
    uint8_t *home;    /* enum plan_home */
    bool *of_group;   /* for, if: has ops of the group inside and stands between regions */
    bool *inside;     /* is in a loop or branch that is all in one region */
    uint32_t *region; /* the number of the region that it is in, or before */
};

/* Of a phase of a verified module; crosses[i]: instruction i ends a region.  FRIT_NO_HOST_MEMORY:
 * *out is empty. */
frit_status plan_init(struct plan *out, const struct kir_module *module, uint32_t phase,
                      const bool *crosses, frit_err *err);
void plan_fini(struct plan *plan);

#endif
