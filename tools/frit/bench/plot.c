/* SPDX-License-Identifier: Apache-2.0 */
/* The chart has a light and a dark colour scheme, which the viewer's setting selects, and draws its
 * own background. */
#include "bench/plot.h"

#include <stdio.h>

/* Pixels: margins; the width of ratio 1; the height of a bar and of a row. */
enum { LEFT = 130, RIGHT = 70, TOP = 52, BOTTOM = 52, UNIT = 480, BAR = 18, ROW = 26 };

static const char style[] =
    "<style>\n"
    ".page{fill:#ffffff}.bar{fill:#4477aa}.limit{stroke:#cc3311;stroke-width:2}\n"
    ".grid{stroke:#cccccc}text{fill:#222222}\n"
    "@media (prefers-color-scheme: dark){.page{fill:#1b1e23}.bar{fill:#77aadd}"
    ".limit{stroke:#ee7733}.grid{stroke:#444a53}text{fill:#e6e6e6}}\n"
    "</style>\n";

/* The axis ends at ratio TICKS * tick = 1.25; a longer bar is cut there, its label is not. */
enum { TICKS = 5 };
static const double tick = 0.25;

void plot_add(struct plot *plot, const char *name, double ratio)
{
    if (plot->n == PLOT_ROWS)
        return;
    plot->rows[plot->n].name = name;
    plot->rows[plot->n++].ratio = ratio;
}

static double x_of(double ratio)
{
    return LEFT + (ratio < TICKS * tick ? ratio : TICKS * tick) * UNIT;
}

static void write_axis(const struct plot *plot, FILE *file)
{
    uint32_t bottom = TOP + plot->n * ROW;

    for (int i = 0; i <= TICKS; i++) {
        double x = x_of(i * tick);

        fprintf(file, "<line class='grid' x1='%.1f' y1='%d' x2='%.1f' y2='%u'/>\n", x, TOP - 6, x,
                bottom);
        fprintf(file, "<text x='%.1f' y='%u' text-anchor='middle'>%.2f</text>\n", x, bottom + 16,
                i * tick);
    }
    fprintf(file, "<text x='%.1f' y='%u' text-anchor='middle'>speed / limit of the device</text>\n",
            x_of(TICKS * tick / 2), bottom + 38);
    fprintf(file, "<line class='limit' x1='%.1f' y1='%d' x2='%.1f' y2='%u'/>\n", x_of(1), TOP - 6,
            x_of(1), bottom);
}

static void write_rows(const struct plot *plot, FILE *file)
{
    for (uint32_t i = 0; i < plot->n; i++) {
        double ratio = plot->rows[i].ratio;
        uint32_t y = TOP + i * ROW;

        fprintf(file, "<text x='%d' y='%u' text-anchor='end'>%s</text>\n", LEFT - 8, y + 14,
                plot->rows[i].name);
        fprintf(file, "<rect class='bar' x='%d' y='%u' width='%.1f' height='%d'/>\n", LEFT, y,
                x_of(ratio) - LEFT, BAR);
        fprintf(file, "<text x='%.1f' y='%u'>%.2f</text>\n", x_of(ratio) + 6, y + 14, ratio);
    }
}

bool plot_write(const struct plot *plot, const char *path)
{
    FILE *file = fopen(path, "w");
    int width = LEFT + (int)(TICKS * tick * UNIT) + RIGHT;
    uint32_t height = TOP + plot->n * ROW + BOTTOM;

    if (!file)
        return false;
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%u' viewBox='0 0 %d %u' "
            "font-family='sans-serif' font-size='13'>\n%s",
            width, height, width, height, style);
    fprintf(file, "<rect class='page' width='%d' height='%u'/>\n", width, height);
    fprintf(file, "<text x='%d' y='28' font-size='16'>%s</text>\n", LEFT, plot->title);
    write_axis(plot, file);
    write_rows(plot, file);
    fputs("</svg>\n", file);
    return fclose(file) == 0;
}
