/* SPDX-License-Identifier: Apache-2.0 */
/* Random modules, and what one launch of each gives them: for comparing an emitter with eval.
 *
 * A case is made from a number, the same on every machine: elementwise instructions of every row,
 * loads that are linear, strided, gathered and masked, loops with carried values, branches, tiles
 * of lanes and of the group, exchanges, atomic sums.  No two lanes write one element and nothing
 * depends on what kir.def leaves open, so that results are equal bit for bit but for NaNs. */
#ifndef TESTS_KERNELS_EMIT_RANDOM_H
#define TESTS_KERNELS_EMIT_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/kir.h"

enum { RANDOM_ARGS = 8, RANDOM_WORDS = 8, RANDOM_PHASES = 2 };

/* What a target has; all zero: nothing beyond F32, I32 and memory of 32-bit elements. */
struct random_target {
    uint32_t max_lanes; /* 0: 256 */
    bool f64, i64, fma, scale, dot2;
    bool exact;    /* div and sqrt are correctly rounded, denormals are kept */
    bool small;    /* memory of 8 and 16 bits */
    bool atomic;   /* of I32 */
    bool halves;   /* tiles of the group with floats of 16 bits */
    bool products; /* fragments in teams of 32 lanes, and copies */
};

struct random_arg {
    uint32_t count; /* elements */
    uint64_t bytes;
    void *initial; /* contents before the launch */
};

struct random_case {
    struct kir_module module;
    uint32_t grid[RANDOM_PHASES][3];
    uint64_t words[RANDOM_WORDS];
    struct random_arg args[RANDOM_ARGS];
};

/* Everything: what eval and the tile interpreter have. */
extern const struct random_target random_all;

/* What there is no memory for ends the program. */
void random_case_init(struct random_case *c, uint64_t number, const struct random_target *target);
void random_case_fini(struct random_case *c);

/* Memory for the arguments with their initial contents; each of exactly its bytes, so that a
 * sanitizer sees accesses outside. */
void random_case_fill(const struct random_case *c, void **memory);
void random_case_free(const struct random_case *c, void **memory);

/* Runs the case by eval; `memory` as random_case_fill gives it.  What does not run fails the test.
 */
void random_case_eval(const struct random_case *c, void *const *memory);

/* Fails the test where a written argument differs; any NaN is any other.  `name`: whose results
 * `got` are. */
void random_case_compare(const struct random_case *c, const char *name, void *const *expected,
                         void *const *got);

#endif
