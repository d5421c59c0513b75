/* SPDX-License-Identifier: Apache-2.0 */
/* The chart has a light and a dark colour scheme, which the viewer's setting selects, and draws its
 * own background. */
#include "train/curve.h"

#include <math.h>
#include <string.h>

/* Characters: two dots one above the other in each. */
enum { COLUMNS = 64, ROWS = 7, DOTS = 2 * ROWS };
/* Pixels: margins; the width of a panel, its height and the space below it. */
enum { LEFT = 80, RIGHT = 40, TOP = 64, WIDTH = 600, HEIGHT = 180, GAP = 60 };

static double scaled(const struct curve *curve, double value)
{
    return curve->is_log ? log10(value) : value;
}

/* 0 at the lower end of the axis, 1 at the upper. */
static double height_of(const struct curve *curve, double value)
{
    const double low = scaled(curve, curve->low), high = scaled(curve, curve->high);
    const double height = (scaled(curve, value) - low) / (high - low);

    return height < 0 ? 0 : height > 1 ? 1 : height;
}

void curve_fit(struct curve *curve)
{
    curve->low = curve->high = curve->n ? curve->values[0] : 1;
    for (uint32_t i = 1; i < curve->n; i++) {
        curve->low = fmin(curve->low, curve->values[i]);
        curve->high = fmax(curve->high, curve->values[i]);
    }
    if (curve->is_log) {
        curve->low = fmax(curve->low, 1e-12);
        curve->high = fmax(curve->high, curve->low * 1.01);
        return;
    }
    curve->low = floor(curve->low / 10) * 10;
    curve->high = ceil(fmax(curve->high, curve->low + 1) / 10) * 10;
}

/* ---- text ---- */

/* Between the values, so that few of them still make a line. */
static double value_at_column(const struct curve *curve, int column)
{
    const double at = (double)column * (curve->n - 1) / (COLUMNS - 1);
    const uint32_t i = (uint32_t)at, next = i + 1 < curve->n ? i + 1 : i;

    return curve->values[i] + (at - i) * (curve->values[next] - curve->values[i]);
}

static void print_curve(const struct curve *curve, FILE *out)
{
    char dots[DOTS][COLUMNS] = {{0}};

    for (int column = 0; column < COLUMNS; column++) {
        const double height = height_of(curve, value_at_column(curve, column));

        dots[(int)((1 - height) * (DOTS - 1) + 0.5)][column] = 1;
    }
    fprintf(out, "%s\n", curve->title);
    for (int row = 0; row < ROWS; row++) {
        char line[COLUMNS + 1];
        size_t end = COLUMNS;

        for (int column = 0; column < COLUMNS; column++)
            line[column] = dots[2 * row][column] ? '\'' : dots[2 * row + 1][column] ? '.' : ' ';
        while (end && line[end - 1] == ' ')
            end--;
        line[end] = '\0';
        if (row == 0 || row == ROWS - 1)
            fprintf(out, "%8.3g%-2s|%s\n", row ? curve->low : curve->high, curve->unit, line);
        else
            fprintf(out, "%10s|%s\n", "", line);
    }
}

void curves_print(const struct curve *curves, uint32_t n, FILE *out)
{
    char line[COLUMNS + 1];

    for (uint32_t i = 0; i < n && curves[i].n; i++)
        print_curve(&curves[i], out);
    memset(line, '-', COLUMNS);
    line[COLUMNS] = '\0';
    if (n && curves[0].n)
        fprintf(out, "%10s+%s\n%12d%*s %u\n", "", line, 1, COLUMNS - 9, "epoch", curves[0].n);
}

/* ---- SVG ---- */

static const char style[] =
    "<style>\n"
    ".page{fill:#ffffff}.line{fill:none;stroke:#4477aa;stroke-width:2}.grid{stroke:#cccccc}\n"
    "text{fill:#222222}\n"
    "@media (prefers-color-scheme: dark){.page{fill:#1b1e23}.line{stroke:#77aadd}"
    ".grid{stroke:#444a53}text{fill:#e6e6e6}}\n"
    "</style>\n";

static double x_of(const struct curve *curve, uint32_t i)
{
    return LEFT + (curve->n > 1 ? (double)i / (curve->n - 1) : 0.5) * WIDTH;
}

static void write_tick(const struct curve *curve, double value, int top, FILE *file)
{
    const double y = top + (1 - height_of(curve, value)) * HEIGHT;

    fprintf(file, "<line class='grid' x1='%d' y1='%.1f' x2='%d' y2='%.1f'/>\n", LEFT, y,
            LEFT + WIDTH, y);
    fprintf(file, "<text x='%d' y='%.1f' text-anchor='end'>%g%s</text>\n", LEFT - 8, y + 4, value,
            curve->unit);
}

/* 1, 2, 5, 10, 20 ... of a logarithmic axis; else five. */
static void write_ticks(const struct curve *curve, int top, FILE *file)
{
    static const double marks[] = {1, 2, 5};
    const int first = (int)floor(log10(fmax(curve->low, 1e-12)));

    if (!curve->is_log) {
        for (int i = 0; i <= 4; i++)
            write_tick(curve, curve->low + (curve->high - curve->low) * i / 4, top, file);
        return;
    }
    for (int i = 0; i < 3 * 16; i++) {
        const double value = marks[i % 3] * pow(10, first + i / 3);

        if (value >= curve->low && value <= curve->high)
            write_tick(curve, value, top, file);
    }
}

static void write_panel(const struct curve *curve, int top, FILE *file)
{
    fprintf(file, "<text x='%d' y='%d' font-size='14'>%s</text>\n", LEFT, top - 10, curve->title);
    write_ticks(curve, top, file);
    fputs("<polyline class='line' points='", file);
    for (uint32_t i = 0; i < curve->n; i++)
        fprintf(file, "%s%.1f,%.1f", i ? " " : "", x_of(curve, i),
                top + (1 - height_of(curve, curve->values[i])) * HEIGHT);
    fputs("'/>\n", file);
    for (uint32_t i = 0; i<curve->n; i += curve->n> 10 ? (curve->n + 9) / 10 : 1)
        fprintf(file, "<text x='%.1f' y='%d' text-anchor='middle'>%u</text>\n", x_of(curve, i),
                top + HEIGHT + 18, i + 1);
}

int curves_write_svg(const struct curve *curves, uint32_t n, const char *title, const char *path)
{
    const int width = LEFT + WIDTH + RIGHT, height = TOP + (int)n * (HEIGHT + GAP);
    FILE *file = fopen(path, "w");

    if (!file)
        return 0;
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' viewBox='0 0 %d %d' "
            "font-family='sans-serif' font-size='12'>\n%s",
            width, height, width, height, style);
    fprintf(file, "<rect class='page' width='%d' height='%d'/>\n", width, height);
    fprintf(file, "<text x='%d' y='28' font-size='16'>%s</text>\n", LEFT, title);
    for (uint32_t i = 0; i < n; i++)
        write_panel(&curves[i], TOP + (int)i * (HEIGHT + GAP), file);
    fprintf(file, "<text x='%d' y='%d' text-anchor='middle'>epoch</text>\n", LEFT + WIDTH / 2,
            height - 16);
    fputs("</svg>\n", file);
    return fclose(file) == 0;
}
