/* SPDX-License-Identifier: Apache-2.0 */
/* A chart of ratios to a limit: one bar per row, as SVG. */
#ifndef CLI_BENCH_PLOT_H
#define CLI_BENCH_PLOT_H

#include <stdbool.h>
#include <stdint.h>

enum { PLOT_ROWS = 64 };

struct plot {
    const char *title;
    uint32_t n;
    struct {
        const char *name;
        double ratio;
    } rows[PLOT_ROWS];
};

/* Borrows the name; rows beyond PLOT_ROWS are dropped. */
void plot_add(struct plot *plot, const char *name, double ratio);
/* Returns false and sets errno if the file cannot be written. */
bool plot_write(const struct plot *plot, const char *path);

#endif
