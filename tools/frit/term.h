/* SPDX-License-Identifier: Apache-2.0 */
/* Terminal output: colours, messages, progress.  One thread. */
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

/* Progress on standard error.  On a terminal a bar with the rate, and the time that is left at that
 * rate, after the first second; otherwise, if there is a topic, a line every PROGRESS_SECONDS:
 * "frit TOPIC: 7 of 90". */
enum { PROGRESS_SECONDS = 10 };

struct progress {
    const char *topic; /* NULL: shown only on a terminal */
    uint64_t total;
    uint64_t failed; /* shown in lines, if not 0 */
    double start;
    double shown; /* when it was last shown; 0: never, or the bar is hidden */
};

void progress_begin(struct progress *progress, const char *topic, uint64_t total);
void progress_step(struct progress *progress, uint64_t done);
/* Hides the bar until the next step. */
void progress_hide(struct progress *progress);

#endif
