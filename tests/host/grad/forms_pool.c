/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling and resampling. */
#include <string.h>

#include "host/grad/forms.h"

/* x [n, c, ..] of `n` spatial dims. */
static struct words image(struct script *s, const int64_t *extent, int64_t n)
{
    frit_dims dims = {.rank = n + 2, .dim = {script_batch(s), script_between(s, 1, 2)}};

    memcpy(dims.dim + 2, extent, (size_t)n * sizeof(*extent));
    return script_operand(s, dims, any);
}

static void pool(struct script *s)
{
    const bool of_max = strcmp(s->row->name, "max_pool") == 0;
    const int64_t n = script_between(s, 1, 3);
    int64_t kernel[3], stride[3], padding[3], dilation[3], extent[3];
    struct words x, attrs;

    for (int64_t d = 0; d < n; d++) {
        kernel[d] = script_between(s, 1, 3);
        stride[d] = script_between(s, 0, 3);
        padding[d] = script_between(s, 0, kernel[d] / 2);
        dilation[d] = of_max ? script_between(s, 1, 2) : 1;
        extent[d] = (kernel[d] - 1) * dilation[d] + 1 + script_between(s, 0, n > 2 ? 1 : 3);
    }
    x = image(s, extent, n);
    attrs = script_format("kernel=%s, stride=%s, padding=%s%s", script_list(kernel, n).text,
                          script_list(stride, n).text, script_list(padding, n).text,
                          script_chance(s, 40) ? ", ceil=true" : "");
    if (of_max)
        script_line(s, "output %s = max_pool %s, %s, dilation=%s",
                    script_chance(s, 50) ? "y" : "y, i", x.text, attrs.text,
                    script_list(dilation, n).text);
    else
        script_line(s, "output y = avg_pool %s, %s%s", x.text, attrs.text,
                    script_chance(s, 50) ? ", exclude_pad=true" : "");
}

static void adaptive(struct script *s)
{
    const int64_t n = script_between(s, 1, 3);
    int64_t extent[3], size[3];
    struct words x;

    for (int64_t d = 0; d < n; d++) {
        extent[d] = script_between(s, 1, n > 2 ? 3 : 6);
        size[d] = script_between(s, 1, n > 2 ? 3 : 6);
    }
    x = image(s, extent, n);
    script_line(s, "output y = adaptive_avg_pool %s, size=%s", x.text, script_list(size, n).text);
}

static void interpolate(struct script *s)
{
    static const char *const modes[] = {"nearest", "nearest_exact", "bilinear", "bicubic",
                                        "lanczos3"};
    const int64_t extent[] = {script_between(s, 1, 5), script_between(s, 1, 5)};
    const int64_t size[] = {script_between(s, 1, 6), script_between(s, 1, 6)};
    const struct words x = image(s, extent, 2);

    script_line(s, "output y = interpolate %s, size=%s, mode=%s%s", x.text,
                script_list(size, 2).text, modes[script_draw(s, 5)],
                script_chance(s, 40) ? ", align_corners=true" : "");
}

static void grid_sample(struct script *s)
{
    static const char *const modes[] = {"nearest", "bilinear", "bicubic"};
    static const char *const borders[] = {"zeros", "edge", "reflection"};
    const int64_t n = script_batch(s), c = script_between(s, 1, 2);
    const struct words x =
        script_operand(s, FRIT_SHAPE(n, c, script_between(s, 1, 4), script_between(s, 1, 4)), any);
    const struct words grid =
        script_operand(s, FRIT_SHAPE(n, script_between(s, 1, 3), script_between(s, 1, 3), 2),
                       (struct domain){-1.4, 1.4});

    script_line(s, "output y = grid_sample %s, %s, mode=%s, border=%s%s", x.text, grid.text,
                modes[script_draw(s, 3)], borders[script_draw(s, 3)],
                script_chance(s, 50) ? ", align_corners=true" : "");
}

static void unfold4d(struct script *s)
{
    int64_t kernel[2], stride[2], padding[2], dilation[2], extent[2];
    struct words x;

    for (int d = 0; d < 2; d++) {
        kernel[d] = script_between(s, 1, 3);
        stride[d] = script_between(s, 0, 2);
        padding[d] = script_between(s, 0, 2);
        dilation[d] = script_between(s, 0, 2);
        extent[d] = (kernel[d] - 1) * (dilation[d] ? dilation[d] : 1) + 1 + script_between(s, 0, 3);
    }
    x = image(s, extent, 2);
    script_line(s, "output y = unfold4d %s, kernel=%s, stride=%s, padding=%s, dilation=%s", x.text,
                script_list(kernel, 2).text, script_list(stride, 2).text,
                script_list(padding, 2).text, script_list(dilation, 2).text);
}

const struct form forms_pool[] = {{"avg_pool", pool},
                                  {"max_pool", pool},
                                  {"adaptive_avg_pool", adaptive},
                                  {"interpolate", interpolate},
                                  {"grid_sample", grid_sample},
                                  {"unfold4d", unfold4d},
                                  {0}};
