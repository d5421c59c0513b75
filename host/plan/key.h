/* SPDX-License-Identifier: Apache-2.0 */
/* The exact key of a recorded op in relative form.
 *
 * Equal keys after equal keys mean equal ops: row, operands by their number in the segment, element
 * types, ranks, the pattern of equal extents with 0 and 1 as classes of their own, KEY attributes,
 * wanted outputs, and the set of values that died with the op.  Nothing else enters.  Common ops
 * are packed into the 256 bits; what does not fit is written out and interned.  Pure, but for
 * interning. */
#ifndef PLAN_KEY_H
#define PLAN_KEY_H

#include "plan/automaton.h"

/* Element type, rank, and extents by their number in the segment (0 and 1 are themselves). */
struct key_type {
    uint32_t packed; /* all of it; 0: it does not fit */
    uint32_t dtype;
    uint32_t rank;
    uint32_t extent[FRIT_MAX_RANK];
};

/* Fills `packed` from the rest. */
void key_type_pack(struct key_type *type);

/* The interned KEY attributes of a checked record: 0 if the row has none, UINT32_MAX without
 * memory. */
uint32_t key_attrs(struct walker *walker, uint32_t op, const void *attrs);

/* The relative form of the core ops that a composite op is expanded into.  At equal keys of the
 * calls the expansions may still differ: their inner values have dims of their own. */
struct key_form {
    const void *bytes;
    size_t n_bytes;
};

struct key_operand {
    uint32_t kind;  /* FRIT_OPERAND_* */
    uint32_t value; /* TENSOR: number in the segment; SCALAR: element type */
};

/* What a key is made of. */
struct key_parts {
    uint32_t op;
    uint32_t attrs_id;
    const void *attrs;
    const struct key_form *form; /* NULL: the op is not expanded */
    uint32_t n_in, n_types, n_dead;
    uint32_t wanted; /* bit k: output k */
    const struct key_operand *in;
    const struct key_type *types; /* of the values that appear for the first time, in order of their
                                     numbers: new operands, then outputs */
    uint32_t first_packed;        /* packed type of the first tensor operand, 0: none */
    uint32_t *dead;               /* numbers, in any order; sorted in place */
};

/* False without memory to intern. */
bool key_make(struct walker *walker, const struct key_parts *parts, struct op_key *key);

/* The interned number that a key refers to, 0: none, and the same key with another: what a store
 * needs. */
uint32_t key_interned(const struct op_key *key);
void key_with_interned(struct op_key *key, uint32_t id);

#endif
