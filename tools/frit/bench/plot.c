/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/plot.h"

#include <stdio.h>

enum { LEFT = 120, WIDTH = 480, BAR = 18, STEP = 26, TOP = 48 };

void plot_add(struct plot *plot, const char *name, double ratio)
{
    if (plot->n == PLOT_ROWS)
        return;
    plot->rows[plot->n].name = name;
    plot->rows[plot->n++].ratio = ratio;
}

static void write_rows(const struct plot *plot, FILE *file)
{
    for (uint32_t i = 0; i < plot->n; i++) {
        double ratio = plot->rows[i].ratio;
        uint32_t y = TOP + i * STEP;

        fprintf(file, "<text x='%d' y='%u' text-anchor='end'>%s</text>\n", LEFT - 8, y + 13,
                plot->rows[i].name);
        fprintf(file, "<rect x='%d' y='%u' width='%.1f' height='%d' fill='#4477aa'/>\n", LEFT, y,
                (ratio < 1.25 ? ratio : 1.25) * WIDTH, BAR);
        fprintf(file, "<text x='%.1f' y='%u'>%.2f</text>\n",
                LEFT + (ratio < 1.25 ? ratio : 1.25) * WIDTH + 6, y + 13, ratio);
    }
}

bool plot_write(const struct plot *plot, const char *path)
{
    FILE *file = fopen(path, "w");
    uint32_t height = TOP + plot->n * STEP + 16;

    if (!file)
        return false;
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%u' "
            "font-family='sans-serif' font-size='13'>\n",
            LEFT + WIDTH * 5 / 4 + 60, height);
    fprintf(file, "<text x='%d' y='24' font-size='16'>%s: ratio to the limit</text>\n", LEFT,
            plot->title);
    write_rows(plot, file);
    fprintf(file, "<line x1='%d' y1='%d' x2='%d' y2='%u' stroke='#cc3311'/>\n</svg>\n",
            LEFT + WIDTH, TOP - 6, LEFT + WIDTH, height - 10);
    return fclose(file) == 0;
}
