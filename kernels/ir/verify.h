/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that every module keeps; whoever reads one relies on them.
 *
 *  - The name is a word of letters, digits and _ . - + of at most KIR_MAX_NAME characters.  There
 *    is a phase at least and not more than a program may have; with `spaces` there is one, whose
 *    groups have the coordinate 0 alone.
 *  - An argument has a dtype that is loaded as a type, and is read or written or both.  A phase has
 *    1 .. KIR_MAX_LANES lanes, a power of two; a tile has elements of a type but B.
 *  - Operands and results have the types that kir.def says, offsets into arguments that of `wide`.
 *    Conversions change the type.  Immediates are in their ranges: parameters, arguments and tiles
 *    that there are, access that the argument allows, lanes, dims, bits of the type.
 *  - Every `for` has its `next`, every `if` its `end`, nested at most KIR_MAX_DEPTH deep, with
 *    `pair` and `level` set so.  Phis stand right after their loop, numbered from 0, with as many
 *    values in `next`, of their types.
 *  - A value is used after it is made, within the loop or if that it is made in; a phi also after
 *    its loop, the first value of a phi comes from before the loop.
 *  - Bounds of loops and conditions of ifs are uniform, see facts.h. */
#ifndef KIR_VERIFY_H
#define KIR_VERIFY_H

#include <frit/status.h>

#include "ir/kir.h"

enum { KIR_MAX_NAME = 200, KIR_MAX_LANES = 65536, KIR_MAX_DEPTH = 64, KIR_MAX_BATCHES = 8 };

/* Where a rule is broken; KIR_NONE: in no phase, at no instruction. */
struct kir_place {
    uint32_t phase, at;
};

/* FRIT_INVALID with a text that names the place, which is also given in `place` (NULL: not wanted).
 * FRIT_NO_HOST_MEMORY also for a module that failed to be built. */
frit_status kir_verify(const struct kir_module *module, struct kir_place *place, frit_err *err);

#endif
