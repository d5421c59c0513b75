/* SPDX-License-Identifier: Apache-2.0 */
/* Running a decomposition in the interpreter of eval.h, with inputs made up or drawn. */
#ifndef TESTS_HOST_GRAPH_DECOMPOSED_H
#define TESTS_HOST_GRAPH_DECOMPOSED_H

#include "host/graph/calls.h"
#include "host/graph/eval.h"

/* The result of a checked call as its decomposition computes it; the caller frees the cells. */
struct array decomposed_run(struct call *call, const struct array *inputs);
/* The same of a call in the words of call_check. */
struct array decomposed(const char *op, const char *operands, const void *attrs,
                        const struct array *inputs);

/* A rank 1 array of these numbers, rounded to the type. */
struct array of_floats(uint32_t dtype, int64_t n, const double *values);
/* Whole numbers from low to high, drawn; the same in every run. */
int64_t draw(int64_t low, int64_t high);
struct array draw_array(const char *type, int64_t low, int64_t high);

void expect_cells(const struct array *got, const union cell *expected);

#endif
