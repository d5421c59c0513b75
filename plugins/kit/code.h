/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled code by variant. */
#ifndef KIT_CODE_H
#define KIT_CODE_H

#include <stdint.h>

#include <frit/host.h>
#include <frit/program.h>
#include <frit/status.h>

struct codes;
struct kit_program;

void codes_init(struct codes *codes);
void codes_fini(const struct kit_program *program, struct codes *codes);
/* The code of the variant, NULL if it is not compiled. */
void *codes_find(struct codes *codes, const frit_variant *variant);
/* Compiles what is not there. */
frit_status codes_compile(const struct kit_program *program, struct codes *codes,
                          const frit_variant *variant, const frit_cancel *cancel, frit_err *err);
/* Of the code of the variant; 0 where there is none yet. */
uint32_t codes_generation(const struct kit_program *program, struct codes *codes,
                          const frit_variant *variant);

#endif
