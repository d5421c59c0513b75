/* SPDX-License-Identifier: Apache-2.0 */
/* How a phase of more lanes than a chunk is cut into stretches: each runs chunk after chunk of
 * lanes; ops of the group that reach beyond a chunk stand between them. */
#ifndef EMIT_LLVM_CUT_H
#define EMIT_LLVM_CUT_H

#include <stdbool.h>

#include <frit/status.h>

#include "ir/facts.h"
#include "ir/kir.h"

enum cut_home {
    CUT_LOCAL, /* in its stretch */
    CUT_HELD,  /* in scratch memory between stretches */
    CUT_GROUP, /* a scalar, made between stretches */
    CUT_ENTRY  /* a scalar, made before everything */
};

struct cut {
    uint8_t *home;     /* enum cut_home */
    bool *cuts;        /* stands between stretches */
    bool *inside;      /* stands in a loop or branch that is all in one stretch */
    bool *spread;      /* uniform or linear, and wanted as vectors */
    uint32_t *stretch; /* the number of the stretch that it is in, or ends */
};

/* Of a phase of a verified module.  FRIT_NO_HOST_MEMORY: *out is empty. */
frit_status cut_init(struct cut *out, const struct kir_module *module, uint32_t phase,
                     const struct facts *facts, uint32_t chunk, frit_err *err);
void cut_fini(struct cut *cut);

#endif
