/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of tests/data/rows/<family>.cases: text blocks with an empty line between them.
 *
 *   case ROW DTYPE                      what it is about
 *   tight exact | ulp N [abs A]         how near a result must be
 *   loose ulp N [abs A]                 the same where the row runs as core ops; absent: tight
 *   seed N                              given to frit_seed before
 *   in NAME DTYPE[DIMS] @PLACE          an input and where its elements lie in the pack of its type
 *   out NAME DTYPE[DIMS] @PLACE         a result, in the order of the program's outputs
 *     LINE                              two blanks: a line of the program, without its inputs
 */
#ifndef ROWS_CASES_H
#define ROWS_CASES_H

#include <stdbool.h>

#include <frit/op.h>

enum { CASE_NAME = 32, CASE_TENSORS = 96 };

/* Exact: bit for bit, any NaN for a NaN.  Else within `ulp` steps of the type, or within
 * `absolute`. */
struct tolerance {
    bool exact;
    uint64_t ulp;
    double absolute;
};

struct case_tensor {
    char name[CASE_NAME];
    uint32_t dtype;
    frit_dims dims;
    uint64_t place;
    uint64_t count;
};

struct row_case {
    const char *file;
    unsigned line;
    char row[CASE_NAME];
    char dtype[CASE_NAME];
    struct tolerance tight, loose;
    bool has_seed;
    uint64_t seed;
    unsigned n_in, n_out;
    struct case_tensor in[CASE_TENSORS], out[CASE_TENSORS];
    char program[16384]; /* with its inputs */
};

/* Calls `use` with every case of every family, in the order of the files' names; fails the test at
 * a line that it cannot read.  Returns how many there were. */
unsigned cases_each(void (*use)(const struct row_case *one, void *ctx), void *ctx);

#endif
