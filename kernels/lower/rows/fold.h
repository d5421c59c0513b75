/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that fold many elements into one: each is a monoid over a tuple of values.  A fold begins
 * with the identity, takes elements one by one, and combines the state of earlier elements with
 * that of later ones.  The result does not depend on how elements are divided among lanes, except
 * for the rounding of floats.
 *
 * States of lanes, which have no order, are merged part by part: first the values (part 0), then
 * the second parts of the lanes whose value is the merged one (of an indexed fold: their elements'
 * numbers).  Each number is below the identity's. */
#ifndef LOWER_FOLD_H
#define LOWER_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/kir.h"
#include "ir/target.h"

enum { FOLD_PARTS = 2 };

/* Part 0: a value.  Part 1: the number of its element (an indexed fold), or the sum of exponentials
 * relative to a maximum (fold_max_exp_sum). */
struct fold_state {
    uint32_t part[FOLD_PARTS];
};

/* One fold of elements of a type, in a module. */
struct fold {
    const struct fold_kind *kind;
    struct kir_module *m;
    uint32_t dtype;            /* of the elements */
    enum kir_type number_type; /* of element numbers, for an indexed fold: I32 if that is enough */
    const struct kir_target *target;
};

struct fold_kind {
    uint32_t id;
    uint32_t n_parts;
    bool indexed;  /* its result is an element's number among those that are folded */
    bool least;    /* indexed: the least, else the largest */
    bool rescaled; /* part 1 is relative to part 0 */
    struct fold_state (*identity)(const struct fold *fold);
    /* The elements of `a` come before those of `b`. */
    struct fold_state (*combine)(const struct fold *fold, const struct fold_state *a,
                                 const struct fold_state *b);
    /* Combines two values (part 0), in any order. */
    uint32_t (*merge)(const struct fold *fold, uint32_t a, uint32_t b);
};

/* NULL: the op is not a fold. */
const struct fold_kind *fold_kind_of(uint32_t op);
/* The maximum x_max of some x and, beside it, the sum of exp(x - x_max), of F32 or F64: the sum is
 * rescaled where a larger x comes (Milakov and Gimelshein, 2018). */
extern const struct fold_kind fold_max_exp_sum;
/* The state of one element. */
struct fold_state fold_element(const struct fold *fold, uint32_t value, uint32_t number);
/* The state's part 1, given that the values of all lanes merged to `value`: the number, or the
 * identity's if the state's value is another; the sum, rescaled to `value`. */
uint32_t fold_second_part(const struct fold *fold, const struct fold_state *state, uint32_t value);
/* Combines two such parts, in any order. */
uint32_t fold_merge_second_parts(const struct fold *fold, uint32_t a, uint32_t b);
/* The value, of the type of the op's result. */
uint32_t fold_result(const struct fold *fold, const struct fold_state *state);
/* The sum of fold_max_exp_sum; NaN where the maximum is not finite. */
uint32_t fold_result_sum(const struct fold *fold, const struct fold_state *state);
enum kir_type fold_part_type(const struct fold *fold, uint32_t part);

#endif
