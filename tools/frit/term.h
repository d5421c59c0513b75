/* SPDX-License-Identifier: Apache-2.0 */
/* What the terminal sees: colours where they are wanted, messages, progress.  One thread. */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

enum paint { PAINT_HEAD, PAINT_GOOD, PAINT_BAD, PAINT_DIM };

/* Prints `text` padded to `width` columns, coloured if `out` is a terminal and NO_COLOR is not set.
 */
void term_paint(FILE *out, enum paint paint, int width, const char *text);

/* "frit TOPIC: text" on standard error. */
void term_error(const char *topic, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* "3.2 MiB" and so on into `text`; returns text. */
const char *term_bytes(uint64_t bytes, char text[16]);
/* "12.3 ms" and so on into `text`; returns text. */
const char *term_seconds(double seconds, char text[16]);

/* Monotonic, in seconds. */
double term_clock(void);

/* A bar with a rate on standard error, if that is a terminal and it takes longer than a second. */
struct progress {
    uint64_t total;
    double start;
    double shown; /* when the bar was last drawn, 0: never */
};

void progress_begin(struct progress *progress, uint64_t total);
void progress_step(struct progress *progress, uint64_t done);
void progress_end(const struct progress *progress);

#endif
