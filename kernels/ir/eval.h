/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a module by the letter: the oracle of every emitter.
 *
 * Group after group, all lanes of a group in lockstep, one instruction at a time.  Beyond the
 * results it finds what another order would bring to light: accesses outside of arguments and
 * tiles, lanes that touch the same element of a group's tile with no barrier between or the same
 * memory of arguments in one phase, one of them writing something else than the other sees.  What
 * kir.def leaves open is filled with ones: bits of shifts by too much, tiles not yet written. */
#ifndef KIR_EVAL_H
#define KIR_EVAL_H

#include <frit/status.h>

#include "ir/kir.h"

/* An argument of the launch: the address of element 0, of any alignment, and how many bytes before
 * it and from it on may be touched. */
struct eval_arg {
    void *base;
    uint64_t before, after;
};

/* All phases; `words` has one per parameter, `args` one per argument, `grid` the groups per phase
 * and dim.  FRIT_INVALID: the module breaks a rule of verify.h, or an access does; the text says
 * where.  What was stored before stays. */
frit_status eval_run(const struct kir_module *module, const uint64_t *words,
                     const struct eval_arg *args, const uint32_t (*grid)[3], frit_err *err);

#endif
