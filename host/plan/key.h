/* SPDX-License-Identifier: Apache-2.0 */
/* The exact key of a recorded op in relative form.
 *
 * If all preceding keys are equal too, equal keys mean equal ops: op kind, operands by their
 * numbers in the segment, dtypes, ranks, the pattern of equal extents (0 and 1 are classes of their
 * own), KEY attributes, requested outputs, and the set of values that die with the op; nothing
 * else.  Common ops are packed into 256 bits; others are serialised and interned.  Pure except for
 * interning. */
#ifndef PLAN_KEY_H
#define PLAN_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/types.h>

struct op_key;
struct walker;

/* Dtype, rank, and extents by their number in the segment (0 and 1 are sizes). */
struct key_type {
    uint32_t packed; /* the type in 32 bits; 0: it does not fit */
    uint32_t dtype;
    uint32_t rank;
    uint32_t extent[FRIT_MAX_RANK];
};

/* Sets `packed` from the other fields. */
void key_type_pack(struct key_type *type);

/* Interns the KEY attributes of a valid record; returns 0 if the op kind has none, UINT32_MAX
 * if out of memory. */
uint32_t key_attrs(struct walker *walker, uint32_t op, const void *attrs);

/* The relative form of the core ops into which a composite op is expanded.  Needed because
 * expansions can differ although the keys of the calls are equal: their inner values have extents
 * of their own. */
struct key_form {
    const void *bytes;
    size_t n_bytes;
};

struct key_operand {
    uint32_t kind;  /* FRIT_OPERAND_* */
    uint32_t value; /* TENSOR: number in the segment; SCALAR: dtype */
};

/* The parts of a key. */
struct key_parts {
    uint32_t op;
    uint32_t attrs_id;
    const void *attrs;
    const struct key_form *form; /* NULL: the op is not expanded */
    uint32_t n_in, n_types, n_dead;
    uint32_t wanted; /* bit k: output k is requested */
    const struct key_operand *in;
    const struct key_type
        *types; /* of new values in order of their numbers: new operands, then outputs */
    uint32_t first_tensor_type; /* key_type.packed of the first tensor operand; 0: none */
    uint32_t *dead;             /* numbers, in any order; sorted in place by key_make */
};

/* Returns false if out of memory. */
bool key_make(struct walker *walker, const struct key_parts *parts, struct op_key *key);

/* The interned number in a key, 0: none; and replacing it: for saving and loading. */
uint32_t key_interned(const struct op_key *key);
void key_with_interned(struct op_key *key, uint32_t id);

#endif
