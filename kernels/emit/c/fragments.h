/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments. */
#ifndef EMIT_C_FRAGMENTS_H
#define EMIT_C_FRAGMENTS_H

#include "emit/c/writer.h"

/* FRIT_UNSUPPORTED: the dialect's devices do not multiply the phase's fragments. */
frit_status fragments_check(const struct kir_module *module, uint32_t phase,
                            const struct ctext_target *target, frit_err *err);
/* Threads of a team. */
uint32_t fragments_team(const struct kir_phase *phase, const struct ctext_target *target);
/* Writes products that are pending if they come before instruction `at`; before each. */
void fragments_flush(struct writer *w, uint32_t at);
/* At the begin or end of a loop or branch: products may go on. */
void fragments_control(struct writer *w);
/* Declares those of the phase. */
void fragments_declare(struct writer *w);

/* Each writes the instruction of its name: KIR_mfill and so on. */
void fragments_fill(struct writer *w, uint32_t at);
void fragments_load(struct writer *w, uint32_t at);
void fragments_store(struct writer *w, uint32_t at);
void fragments_multiply(struct writer *w, uint32_t at);
void fragments_batch(struct writer *w, uint32_t at);
void fragments_wait(struct writer *w, uint32_t at);
void fragments_fold(struct writer *w, uint32_t at);
void fragments_narrow(struct writer *w, uint32_t at);
void fragments_scale(struct writer *w, uint32_t at);
void fragments_peer(struct writer *w, uint32_t at);
void fragments_each(struct writer *w, uint32_t at);
void fragments_coordinate(struct writer *w, uint32_t at);
void fragments_done(struct writer *w, uint32_t at);

#endif
