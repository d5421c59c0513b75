/* SPDX-License-Identifier: Apache-2.0 */
/* A bound program as a list of ops, any region of which can be written as a program of its own:
 * its inputs are the values that it reads and does not make, its outputs those that are used after
 * it. Pure. */
#ifndef DOCTOR_SLICE_H
#define DOCTOR_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct slice_value {
    char *name;
    char *type;      /* "f32[2, 3]" of an input or constant; NULL of a result */
    bool is_output;  /* of the program */
    size_t maker;    /* the op that makes it; SIZE_MAX: an input */
    size_t last_use; /* the last op that reads it; SIZE_MAX: none does */
};

struct slice_op {
    char *text;    /* "y = add a, b" */
    uint32_t *in;  /* values that it reads, without repeats */
    uint32_t *out; /* values that it makes */
    uint32_t n_in, n_out;
    bool is_random; /* its numbers depend on the ops before it */
};

struct slice_program {
    struct slice_value *values;
    struct slice_op *ops;
    uint32_t n_values, n_ops;
    uint32_t values_capacity, ops_capacity;
};

/* Takes what frit_graph_print wrote.  False: no memory, or text of another form; the program is
 * empty then. */
bool slice_parse(struct slice_program *program, const char *text);
void slice_fini(struct slice_program *program);

/* The values that ops `first` to `last` read and do not make; or that they make and that are used
 * after them, or are outputs of the program.  Returns their number; `out` has room for all values.
 */
size_t slice_inputs(const struct slice_program *program, size_t first, size_t last, uint32_t *out);
size_t slice_outputs(const struct slice_program *program, size_t first, size_t last, uint32_t *out);

/* Their ops and outputs, without inputs. */
void slice_print_ops(const struct slice_program *program, size_t first, size_t last,
                     struct str *out);

/* Ops `first` to `last` as a program whose outputs are these values.  `types`: of all values, as
 * text; of those that are inputs at least. */
void slice_print(const struct slice_program *program, size_t first, size_t last,
                 const uint32_t *outputs, size_t n_outputs, const char *const *types,
                 struct str *out);

#endif
