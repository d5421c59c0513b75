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

/* ---- progress ---- */

void progress_begin(struct progress *progress, const char *topic, uint64_t total)
{
    *progress = (struct progress){.topic = topic, .total = total, .start = term_clock()};
}

/* Whole seconds or minutes; nothing is said where nothing is done, or in more than a day. */
static void put_rest(double seconds)
{
    if (seconds < 90)
        fprintf(stderr, "%.0f s left  ", seconds);
    else if (seconds < 86400)
        fprintf(stderr, "%.0f min left  ", seconds / 60);
}

static void draw_bar(const struct progress *progress, uint64_t done, double rate)
{
    static const char bar[] = "##############################";
    int filled = (int)(done * (sizeof(bar) - 1) / progress->total);

    fprintf(stderr, "\r[%-*.*s] %" PRIu64 "/%" PRIu64 "  %.1f/s  ", (int)sizeof(bar) - 1, filled,
            bar, done, progress->total, rate);
    put_rest((double)(progress->total - done) / rate);
}

static void put_line(const struct progress *progress, uint64_t done, double rate)
{
    fprintf(stderr, "frit %s: %" PRIu64 " of %" PRIu64, progress->topic, done, progress->total);
    if (progress->failed)
        fprintf(stderr, ", %" PRIu64 " failed", progress->failed);
    fprintf(stderr, ", %.1f/s\n", rate);
}

void progress_step(struct progress *progress, uint64_t done)
{
    double now = term_clock(), rate = (double)done / (now - progress->start);
    bool terminal = isatty(STDERR_FILENO), shown = progress->shown > 0;

    if (terminal ? now - progress->start < 1 || now - progress->shown < 0.1
                 : now - (shown ? progress->shown : progress->start) < PROGRESS_SECONDS)
        return;
    if (terminal)
        draw_bar(progress, done, rate);
    else if (progress->topic)
        put_line(progress, done, rate);
    progress->shown = now;
}

void progress_hide(struct progress *progress)
{
    if (progress->shown <= 0 || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r%78s\r", "");
    progress->shown = 0;
}
