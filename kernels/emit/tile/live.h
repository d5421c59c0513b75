/* SPDX-License-Identifier: Apache-2.0 */
/* How long values of a phase are needed, and which carried values are made in place. */
#ifndef EMIT_TILE_LIVE_H
#define EMIT_TILE_LIVE_H

#include <frit/status.h>

#include "ir/kir.h"

struct live {
    uint32_t *loop;  /* the innermost loop around an instruction, KIR_NONE: none */
    uint32_t *last;  /* the last instruction that needs the value, loops counted whole */
    uint32_t *place; /* a phi in whose register the value is made, KIR_NONE: its own */
};

/* Of a verified phase.  FRIT_NO_HOST_MEMORY: *out is empty. */
frit_status live_init(struct live *out, const struct kir_module *module, uint32_t phase,
                      frit_err *err);
void live_fini(struct live *live);

#endif
