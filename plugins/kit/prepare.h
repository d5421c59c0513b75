/* SPDX-License-Identifier: Apache-2.0 */
/* What a program answers to a signature. */
#ifndef KIT_PREPARE_H
#define KIT_PREPARE_H

#include <stdint.h>

#include <frit/program.h>
#include <frit/status.h>

struct kit_program;

/* Zeroed memory for arrays of a spec in `prepare` of a compiler, until the host has forgotten the
 * spec.  NULL: there is none. */
void *kit_spec_alloc(const struct kit_program *program, frit_launch_spec *spec, uint64_t bytes);

/* A slot of frit.program/1. */
frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                            frit_launch_spec *out, frit_variant *variant, frit_err *err);

#endif
