/* SPDX-License-Identifier: Apache-2.0 */
/* Program slot `prepare`. */
#ifndef FUSE_PREPARE_H
#define FUSE_PREPARE_H

#include <stdint.h>

#include <frit/program.h>
#include <frit/status.h>

/* Slots of frit_program_table. */
void program_spec_release(void *self, const frit_launch_spec *spec);
frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                            frit_launch_spec *out, frit_variant *variant, frit_err *err);

#endif
