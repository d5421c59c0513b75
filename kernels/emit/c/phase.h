/* SPDX-License-Identifier: Apache-2.0 */
/* The text of one phase. */
#ifndef EMIT_C_PHASE_H
#define EMIT_C_PHASE_H

#include "emit/c/ctext.h"

/* What holds for all phases of a text. */
struct phase_text {
    const struct kir_module *module;
    const struct ctext_target *target;
    bool aligned, by_value;
    bool has_chunks; /* set by a phase whose text depends on `aligned` */
};

/* Appends it. */
frit_status phase_write(struct phase_text *text, uint32_t phase, struct str *out,
                        struct ctext_phase *info, frit_err *err);

#endif
