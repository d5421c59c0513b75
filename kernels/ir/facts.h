/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of the values of a phase across the lanes of a group: what an emitter needs to
 * choose between one access and many.  Sound: what is said holds for every launch; VARYING says
 * nothing.
 *
 * A value is UNIFORM: the same in all lanes; LINEAR: in lane i it is that of lane 0 plus
 * i * stride, wrapping in its type (integers only); or VARYING.  A fact holds for every round of
 * the loops around the value.
 *
 * In aligned runs of `same` lanes it is one value: that is what exchanges and sums, say, of what
 * they give lead to.  Of floats that holds but for what an instruction leaves open: bits of a NaN,
 * and the sign of a zero that fmin or fmax gives.
 *
 * In aligned runs of `run` lanes it is that of the run's first lane plus i * run_stride: so are
 * the low bits of the lane, with which a group is a grid of lanes. */
#ifndef KIR_FACTS_H
#define KIR_FACTS_H

#include <frit/status.h>

#include "ir/kir.h"

enum fact_kind { FACT_UNIFORM, FACT_LINEAR, FACT_VARYING };

struct fact {
    uint32_t kind;  /* enum fact_kind */
    int64_t stride; /* LINEAR; never 0 */
    uint32_t same;  /* a power of 2, up to the phase's lanes */
    uint32_t run;   /* likewise; all lanes unless VARYING */
    int64_t run_stride;
};

struct facts {
    uint32_t n;
    struct fact *of; /* per instruction; those without a value are UNIFORM */
};

/* Of one phase of a module whose structure is right (verify.h).  FRIT_NO_HOST_MEMORY: *out is
 * empty. */
frit_status facts_init(struct facts *out, const struct kir_module *module, uint32_t phase,
                       frit_err *err);
void facts_fini(struct facts *facts);

/* Integer divisions in the innermost code: those that stand as deep in loops as anything in their
 * phase; a multiplication by a magic number (mulhi) is one too. */
uint32_t facts_divisions(const struct kir_module *module);

#endif
