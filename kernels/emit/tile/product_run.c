/* SPDX-License-Identifier: Apache-2.0 */
/* Running product loops: elements that lie in memory as register tiles read them are read there,
 * others are put in order in panels of some rounds first. */
#include "emit/tile/product_run.h"

#include "emit/tile/run.h"

/* Where a load's elements are: that of round i at first + i * step, in elements. */
struct course {
    int64_t first, step;
};

static uint64_t read(const char *at, bool wide)
{
    return (uint64_t)tile_read_int(at, wide);
}

/* False: not all offsets are numbers of their type. */
static bool find_course(const struct tile_product *product, const struct tile_product_load *load,
                        int64_t rounds, const char *scratch, struct course *out)
{
    uint64_t by = load->by == KIR_NONE ? 1 : read(scratch + load->by, load->step.wide);
    uint64_t step = (uint64_t)load->times * by * (uint64_t)product->step;
    int64_t last;

    out->first = tile_read_int(scratch + load->step.a, load->step.wide);
    out->step = load->step.wide ? (int64_t)step : (int32_t)step;
    return !__builtin_mul_overflow(out->step, rounds - 1, &last) &&
           !__builtin_add_overflow(last, out->first, &last) &&
           (load->step.wide || (last >= INT32_MIN && last <= INT32_MAX));
}

/* All lanes take part. */
static bool is_whole(const struct tile_step *step, char *scratch)
{
    const struct tile_range *range = tile_range_of(scratch + step->c);

    if (step->mask == MASK_ONE)
        return *(const uint32_t *)(scratch + step->c) != 0;
    return step->mask == MASK_NONE ||
           (step->mask == MASK_RANGE && range->first == 0 && range->end == (int32_t)step->n);
}

static void fill_across(const struct tile_product *product, const struct course *at, int64_t round,
                        size_t rounds, void *const *args, char *scratch)
{
    const struct tile_step *step = &product->across.step;
    size_t bytes = step->n * tile_lane_bytes(product->type);

    for (size_t i = 0; i < rounds; i++)
        tile_load_at(step, at->first + (round + (int64_t)i) * at->step, args, scratch,
                     scratch + product->across_panel + i * bytes);
}

static void fill_down(const struct tile_product *product, const struct course *courses,
                      int64_t round, size_t rounds, void *const *args, char *scratch)
{
    size_t bytes = product->depth * tile_lane_bytes(product->type);

    for (uint32_t i = 0; i < product->rows; i++) {
        const struct tile_step *step = &product->down[i].step;
        const struct tile_places at = {.n = rounds,
                                       .first = courses[i].first + round * courses[i].step,
                                       .step = courses[i].step};

        step->move(scratch + product->down_panel + i * bytes, tile_memory(step, args, scratch),
                   &at);
    }
}

static int64_t rounds_of(const struct tile_product *product, const char *scratch)
{
    uint64_t now = read(scratch + product->counter, product->wide);
    uint64_t end = read(scratch + product->end, product->wide);

    return (int64_t)((end - now - 1) / (uint64_t)product->step + 1);
}

bool tile_product_run(const struct tile_product *product, void *const *args, char *scratch)
{
    int64_t rounds = rounds_of(product, scratch), bytes = (int64_t)tile_lane_bytes(product->type);
    const struct tile_step *across = &product->across.step;
    struct course line, courses[TILE_ROWS];
    const void *down[TILE_ROWS];
    void *sums[TILE_ROWS];
    struct tile_products p = {
        .rows = product->rows, .lanes = across->n, .sums = sums, .down = down};
    bool pack_across, pack_down = product->down_panel != 0;

    if (!find_course(product, &product->across, rounds, scratch, &line))
        return false;
    pack_across = product->across_panel &&
                  !(across->bytes == bytes && across->imm == 1 && is_whole(across, scratch));
    for (uint32_t i = 0; i < product->rows; i++) {
        if (!find_course(product, &product->down[i], rounds, scratch, &courses[i]) ||
            courses[i].step != courses[0].step)
            return false;
        sums[i] = scratch + product->sums[i];
        down[i] = pack_down ? scratch + product->down_panel + i * product->depth * (size_t)bytes
                            : tile_memory(&product->down[i].step, args, scratch) +
                                  courses[i].first * bytes;
    }
    p.across = pack_across ? scratch + product->across_panel
                           : tile_memory(across, args, scratch) + line.first * bytes;
    p.across_step = pack_across ? (int64_t)across->n * bytes : line.step * bytes;
    p.down_step = pack_down ? bytes : courses[0].step * bytes;
    for (int64_t round = 0; round < rounds; round += (int64_t)p.rounds) {
        bool packs = pack_across || pack_down;

        p.rounds = (size_t)(rounds - round);
        if (packs && p.rounds > product->depth)
            p.rounds = product->depth;
        if (pack_across)
            fill_across(product, &line, round, p.rounds, args, scratch);
        if (pack_down)
            fill_down(product, courses, round, p.rounds, args, scratch);
        product->multiply(&p);
        for (uint32_t i = 0; !pack_down && i < product->rows; i++)
            down[i] = (const char *)down[i] + (int64_t)p.rounds * p.down_step;
        if (!pack_across)
            p.across = (const char *)p.across + (int64_t)p.rounds * p.across_step;
    }
    return true;
}
