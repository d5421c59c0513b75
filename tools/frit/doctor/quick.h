/* SPDX-License-Identifier: Apache-2.0 */
/* A part of `frit conform` in a process of its own: all checks of the device, and every row once.
 * One thread. */
#ifndef DOCTOR_QUICK_H
#define DOCTOR_QUICK_H

#include <stdbool.h>
#include <stddef.h>

enum { QUICK_FAILURES = 8, QUICK_LINE = 320 };

struct quick {
    bool ran;    /* the cases were run */
    bool passed; /* and none failed */
    size_t n_failed;
    char failures[QUICK_FAILURES][QUICK_LINE]; /* "CASE: reason", the first ones */
    char summary[QUICK_LINE];                  /* its last line: the counts, or why nothing ran */
};

void quick_run(const char *path, struct quick *out);

#endif
