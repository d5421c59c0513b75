/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that fold many elements into one: a monoid over a tuple of values each.  A fold begins with
 * the identity, takes elements one by one and combines what was gathered before with what was
 * gathered behind it; the result may not depend on how elements were shared out but for the
 * rounding of floats.
 *
 * Lanes have no order: theirs are merged value by value, then the second parts, as seconds of what
 * came out: of indexed rows the numbers of those that have it.  A number of an element is below the
 * identity's. */
#ifndef LOWER_FOLD_H
#define LOWER_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/kir.h"
#include "ir/target.h"

enum { FOLD_PARTS = 2 };

/* What was gathered: a value, and where the row is indexed the number of its element, or the sum
 * beside a maximum. */
struct fold_state {
    uint32_t part[FOLD_PARTS];
};

/* One fold of elements of a type, in a module. */
struct fold {
    const struct fold_row *row;
    struct kir_module *m;
    uint32_t dtype;       /* of the elements */
    enum kir_type number; /* of an indexed row: I32 where all numbers are below its largest */
    const struct kir_target *target;
};

struct fold_row {
    uint32_t id;
    uint32_t n_parts;
    bool indexed;  /* wants the element's number among those that are folded */
    bool least;    /* indexed: the least, else the largest */
    bool rescaled; /* part 1 is relative to part 0 */
    struct fold_state (*identity)(const struct fold *fold);
    /* What `a` has stands before what `b` has. */
    struct fold_state (*combine)(const struct fold *fold, const struct fold_state *a,
                                 const struct fold_state *b);
    /* Of values, in any order. */
    uint32_t (*merge)(const struct fold *fold, uint32_t a, uint32_t b);
};

/* NULL: the op is no fold. */
const struct fold_row *fold_row_of(uint32_t op);
/* The maximum x_max of some x and, beside it, the sum of exp(x - x_max), of F32 or F64: the sum is
 * rescaled where a larger x comes (Milakov and Gimelshein, 2018). */
extern const struct fold_row fold_max_exp_sum;
/* Of one element. */
struct fold_state fold_element(const struct fold *fold, uint32_t value, uint32_t number);
/* Part 1 of the state where `value` is what the values of all lanes merged to. */
uint32_t fold_second_of(const struct fold *fold, const struct fold_state *state, uint32_t value);
/* Of such parts, in any order. */
uint32_t fold_merge_seconds(const struct fold *fold, uint32_t a, uint32_t b);
/* The value, of the type of the op's result. */
uint32_t fold_result(const struct fold *fold, const struct fold_state *state);
/* The sum of fold_max_exp_sum; NaN where the maximum is not finite. */
uint32_t fold_result_sum(const struct fold *fold, const struct fold_state *state);
enum kir_type fold_part_type(const struct fold *fold, uint32_t part);

#endif
