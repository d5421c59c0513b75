/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of a phase: instructions between two ops of the whole group, which run lane by lane. */
#ifndef EMIT_C_PLAN_H
#define EMIT_C_PLAN_H

#include <stdbool.h>

#include <frit/status.h>

#include "ir/kir.h"

/* Where a value lives. */
enum plan_home {
    PLAN_LOCAL, /* in its region, or in a loop of it */
    PLAN_HELD,  /* in an element per lane, of the whole phase */
    PLAN_GROUP  /* once for the group */
};

struct plan {
    uint8_t *home;    /* enum plan_home */
    bool *of_group;   /* for, if: has ops of the group inside and stands between regions */
    bool *inside;     /* stands in a loop or branch that is all in one region */
    uint32_t *region; /* the number of the region that it is in, or before */
};

/* Of a phase of a verified module.  FRIT_NO_HOST_MEMORY: *out is empty. */
frit_status plan_init(struct plan *out, const struct kir_module *module, uint32_t phase,
                      frit_err *err);
void plan_fini(struct plan *plan);

#endif
