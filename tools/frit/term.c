/* SPDX-License-Identifier: Apache-2.0 */
#include "term.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* https://no-color.org: set and not empty means no colour. */
static bool colourful(FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return isatty(fileno(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

void term_paint(FILE *out, enum paint paint, int width, const char *text)
{
    static const char *const codes[] = {
        [PAINT_HEAD] = "1", [PAINT_GOOD] = "32", [PAINT_BAD] = "31", [PAINT_DIM] = "2"};

    if (colourful(out))
        fprintf(out, "\033[%sm%-*s\033[0m", codes[paint], width, text);
    else
        fprintf(out, "%-*s", width, text);
}

void term_error(const char *topic, const char *format, va_list args)
{
    char prefix[64];

    snprintf(prefix, sizeof(prefix), "frit %s:", topic);
    term_paint(stderr, PAINT_BAD, 0, prefix);
    fputc(' ', stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

const char *term_bytes(uint64_t bytes, char text[16])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double amount = (double)bytes;
    int unit = -1;

    while (amount >= 1024 && unit < 5) {
        amount /= 1024;
        unit++;
    }
    if (unit < 0)
        snprintf(text, 16, "%" PRIu64 " B", bytes);
    else
        snprintf(text, 16, "%.1f %s", amount, units[unit]);
    return text;
}

const char *term_seconds(double seconds, char text[16])
{
    if (seconds < 1e-3)
        snprintf(text, 16, "%.1f us", seconds * 1e6);
    else if (seconds < 1)
        snprintf(text, 16, "%.1f ms", seconds * 1e3);
    else
        snprintf(text, 16, "%.2f s", seconds);
    return text;
}

double term_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void progress_begin(struct progress *progress, uint64_t total)
{
    *progress = (struct progress){.total = total, .start = term_clock()};
}

void progress_step(struct progress *progress, uint64_t done)
{
    static const char bar[] = "##############################";
    double now = term_clock();
    int filled = (int)(done * (sizeof(bar) - 1) / progress->total);

    if (now - progress->start < 1 || now - progress->shown < 0.1 || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r[%-*.*s] %" PRIu64 "/%" PRIu64 "  %.1f/s ", (int)sizeof(bar) - 1, filled,
            bar, done, progress->total, (double)done / (now - progress->start));
    progress->shown = now;
}

void progress_end(const struct progress *progress)
{
    if (progress->shown > 0)
        fprintf(stderr, "\r%78s\r", "");
}
