/* SPDX-License-Identifier: Apache-2.0 */
/* A phase as a function. */
#ifndef EMIT_LLVM_PHASE_H
#define EMIT_LLVM_PHASE_H

#include <stdint.h>

#include <frit/status.h>

struct ll;

/* The whole phase as function `name`. */
frit_status ll_phase(struct ll *l, uint32_t phase, const char *name, frit_err *err);

#endif
