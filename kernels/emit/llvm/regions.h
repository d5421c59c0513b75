/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of a phase that has more lanes than a chunk.  A region runs chunk by chunk; instructions
 * that exchange values between chunks, such as barriers, stand between the regions. */
#ifndef EMIT_LLVM_REGIONS_H
#define EMIT_LLVM_REGIONS_H

#include <stdbool.h>

#include <frit/status.h>

#include "ir/facts.h"
#include "ir/kir.h"

enum region_home {
    REGION_LOCAL, /* in its region */
    REGION_HELD,  /* in scratch memory between regions */
    REGION_GROUP, /* a scalar, made between regions */
    REGION_ENTRY  /* a scalar, made before everything */
};

struct regions {
    uint8_t *home;       /* enum region_home */
    bool *bounds_region; /* stands between regions */
    bool *inside;        /* is in a loop or branch that is all in one region */
    bool *spread;        /* uniform or linear, and wanted as vectors */
    uint32_t *region;    /* the number of the region that it is in, or ends */
};

/* Of a phase of a verified module.  FRIT_NO_HOST_MEMORY: *out is empty. */
frit_status regions_init(struct regions *out, const struct kir_module *module, uint32_t phase,
                         const struct facts *facts, uint32_t chunk, frit_err *err);
void regions_fini(struct regions *regions);

#endif
