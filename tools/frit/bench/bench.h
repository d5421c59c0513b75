/* SPDX-License-Identifier: Apache-2.0 */
/* What the suites of `frit bench` share: where rows go, medians, where the device without computing
 * is found. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <frit/frit.h>

#include "command.h"

struct bench {
    const struct invocation *in;
    uint64_t rounds;
    bool json, quick;
    int64_t side;         /* of matrices; 0: by the kind of device */
    const char *plot;     /* file, or NULL */
    char null_path[4096]; /* of the plugin `null`, "" where the search has to find it */
};

/* One figure of a row; `target` 0 for none. */
struct bench_figure {
    const char *key;  /* in JSON */
    const char *unit; /* for people */
    double value;
    double target;
    bool at_least; /* the value should reach the target; else stay below it */
};

struct bench_row {
    const char *suite;
    const char *row;
    const char *what; /* the case */
    const char *device;
    uint64_t ops, streams, plans; /* `streams` 0: it is not about threads and plans */
    uint32_t n_figures;
    struct bench_figure figures[16];
};

/* Whether the row is wanted: there is no --filter, or one that is its name or a pattern for it. */
bool bench_wants(const struct bench *bench, const char *row);
/* CLI_MISUSED after a message if a filter names none of the suite's rows; `row_at` gives NULL
 * beyond the last. */
int bench_check_filters(const struct bench *bench, const char *(*row_at)(size_t index));

/* One line for people, or one object in one line. */
void bench_print(const struct bench *bench, const struct bench_row *row);

/* Sorts; n > 0. */
double bench_median(double *samples, size_t n);
uint64_t bench_now(void);
/* Begins to measure time by the device's own clock; false: it has none. */
bool bench_clock_start(frit_device *device);
/* Milliseconds of it since then, of each of `n` runs, which have ended. */
double bench_clock_stop(frit_device *device, uint64_t n);

#endif
