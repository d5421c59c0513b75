/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of tests/data/gradients: text blocks with an empty line between them.
 *
 *   case NAME DTYPE
 *   in NAME DTYPE[DIMS] SEED LOW HIGH PARTS    an input, drawn as book.py does
 *   loss @PLACE                                an output's value, in the pack of DTYPE
 *   grad NAME @PLACE                           the gradient by an input
 *     LINE                                     two blanks: a line of the program, without its
 * inputs
 *
 * Without losses every float output is multiplied by factors, and the products are summed. */
#ifndef GRAD_STORED_H
#define GRAD_STORED_H

#include <stdbool.h>

#include <frit/frit.h>

enum { STORED_INPUTS = 32, STORED_LOSSES = 4 };

struct stored_input {
    char name[16];
    uint32_t dtype;
    frit_dims dims;
    uint64_t count;
    uint64_t seed;
    double low, high, parts;
    const void *grad; /* `count` elements, NULL: an input without gradient */
};

struct stored_case {
    unsigned line;
    char name[32];
    uint32_t dtype;
    uint32_t n_in, n_losses;
    struct stored_input in[STORED_INPUTS];
    double losses[STORED_LOSSES];
    char program[8192]; /* with its inputs */
};

/* Calls `use` with each case of FOLDER/NAME.cases; fails the test at a line that it cannot read.
 * Returns how many there were. */
unsigned stored_each(const char *folder, const char *name,
                     void (*use)(const struct stored_case *one, void *ctx), void *ctx);

/* `count` numbers of 0 .. 1. */
void stored_draw(uint64_t seed, uint64_t count, double *numbers);

#endif
