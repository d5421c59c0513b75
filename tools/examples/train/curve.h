/* SPDX-License-Identifier: Apache-2.0 */
/* Curves over epochs, in the terminal and as SVG. */
#ifndef TRAIN_CURVE_H
#define TRAIN_CURVE_H

#include <stdint.h>
#include <stdio.h>

struct curve {
    const char *title;
    const double *values; /* one per epoch */
    uint32_t n;
    int is_log;       /* the axis; values are positive */
    double low, high; /* its ends, low < high */
    const char *unit; /* of the labels: "", "%" */
};

/* Sets the ends so that all values lie between them; those of a linear axis are multiples of 10. */
void curve_fit(struct curve *curve);

/* As text, one above the other. */
void curves_print(const struct curve *curves, uint32_t n, FILE *out);
/* Returns zero and sets errno if the file cannot be written. */
int curves_write_svg(const struct curve *curves, uint32_t n, const char *title, const char *path);

#endif
