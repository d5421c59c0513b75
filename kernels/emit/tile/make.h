/* SPDX-License-Identifier: Apache-2.0 */
/* Translation under way: forms of values, places in scratch, steps. */
#ifndef EMIT_TILE_MAKE_H
#define EMIT_TILE_MAKE_H

#include "emit/tile/code.h"
#include "emit/tile/live.h"

#include "ir/facts.h"

/* How a value is held: a single element; the element of lane 0, the step being known; the range of
 * lanes in which a B is true; a register. */
enum form { FORM_ONE, FORM_LINE, FORM_RANGE, FORM_LANES };

struct value {
    uint8_t form;   /* enum form */
    bool needed;    /* by anything that has an effect */
    bool lanes;     /* LINE, RANGE: something needs it lane by lane as well */
    bool made;      /* before its place */
    uint32_t one;   /* ONE, LINE: where */
    uint32_t reg;   /* RANGE, LANES, and with `lanes`: the register; for, if: their step */
    uint32_t dead;  /* another value that is needed as long, KIR_NONE: no more */
    uint32_t spare; /* phi: where its next value waits for the others */
};

struct register_pool {
    uint32_t n, capacity;
    uint32_t *regs;
};

struct make {
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct tile_loops *loops;
    struct tile_code *code;
    struct facts facts;
    struct live live;
    struct value *values;
    uint32_t *dying;               /* by instruction: the first value that is needed until there */
    struct register_pool pools[2]; /* registers that are free, of 4-byte and 8-byte lanes */
    uint32_t *tiles;               /* where they are */
    uint64_t end;                  /* of scratch so far */
    bool failed;                   /* there was no memory */
};

/* ---- steps.c ---- */

static inline bool make_is_wide(uint32_t type)
{
    return type == KIR_I64 || type == KIR_F64;
}

static inline uint32_t make_type(const struct make *m, uint32_t value)
{
    return m->phase->inst[value].type;
}

/* Whether the value is made in the register of a phi. */
static inline bool make_in_phi(const struct make *m, uint32_t value)
{
    uint32_t phi = m->live.place[value];

    return phi != KIR_NONE && m->values[value].form == FORM_LANES &&
           m->values[phi].form == FORM_LANES;
}

#endif
