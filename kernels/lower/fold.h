/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that fold many elements into one: a monoid over a tuple of values each.  A fold begins with
 * the identity, takes elements one by one and combines what several lanes gathered; the result may
 * not depend on how elements were shared out but for the rounding of floats. */
#ifndef LOWER_FOLD_H
#define LOWER_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/kir.h"

enum { FOLD_PARTS = 2 };

/* What was gathered. */
struct fold_state {
    uint32_t part[FOLD_PARTS];
};

/* One fold of elements of a type, in a module. */
struct fold {
    const struct fold_row *row;
    struct kir_module *m;
    uint32_t dtype; /* of the elements */
};

struct fold_row {
    uint32_t id;
    uint32_t n_parts;
    bool indexed; /* wants the element's number among those that are folded, I64 */
    struct fold_state (*identity)(const struct fold *fold);
    /* `number` KIR_NONE where it is not wanted. */
    struct fold_state (*take)(const struct fold *fold, uint32_t element, uint32_t number);
    struct fold_state (*combine)(const struct fold *fold, const struct fold_state *a,
                                 const struct fold_state *b);
};

/* NULL: the op is no fold. */
const struct fold_row *fold_row_of(uint32_t op);
/* Its value, of the type of the row's result. */
uint32_t fold_result(const struct fold *fold, const struct fold_state *state);
enum kir_type fold_part_type(const struct fold *fold, uint32_t part);

#endif
