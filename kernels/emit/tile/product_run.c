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

/* Whether `first` and what rounds and lanes add are numbers of their type. */
static bool fits(const struct tile_product_load *load, const struct course *at, int64_t rounds,
                 const char *scratch)
{
    bool wide = load->step.wide;
    int64_t least = wide ? INT64_MIN : INT32_MIN, most = wide ? INT64_MAX : INT32_MAX, last;
    int64_t low = 0, high = 0;

    for (uint32_t i = 0; load->spread && i < load->step.n; i++) {
        int64_t part = tile_read_int(scratch + load->spread + (size_t)i * (wide ? 8 : 4), wide);

        low = part < low ? part : low;
        high = part > high ? part : high;
    }
    if (__builtin_mul_overflow(at->step, rounds - 1, &last) ||
        __builtin_add_overflow(last, at->first, &last))
        return false;
    least -= low;
    most -= high;
    return at->first >= least && at->first <= most && last >= least && last <= most;
}

/* What one round adds to the offset of a load. */
static int64_t growth_of(const struct tile_product *product, const struct tile_product_load *load,
                         const char *scratch)
{
    uint64_t by = load->by == KIR_NONE ? 1 : read(scratch + load->by, load->step.wide);
    uint64_t step = (uint64_t)load->times * by * (uint64_t)product->step;

    return load->step.wide ? (int64_t)step : (int32_t)step;
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

/* Whether a load's elements lie in memory as register tiles read them. */
static bool is_plain(const struct tile_product *product, const struct tile_product_load *load,
                     char *scratch)
{
    const struct tile_step *step = &load->step;

    return !load->panel ||
           (tile_element_bytes(step) == tile_lane_bytes(product->type) &&
            (step->n == 1 || load->run >= TILE_LEAST_LANES) && is_whole(step, scratch));
}

static void fill_panel(const struct tile_product_load *load, const struct course *at, size_t rounds,
                       void *const *args, char *scratch)
{
    const struct tile_step *step = &load->step;
    const struct tile_places places = {.n = rounds, .first = at->first, .step = at->step};
    const struct tile_rounds all = {rounds, at->first, at->step,
                                    load->spread ? scratch + load->spread : NULL};
    char *panel = scratch + load->panel;

    if (step->n == 1)
        step->move(panel, tile_memory(step, args, scratch), &places);
    else
        tile_load_rounds(step, &all, args, scratch, panel);
}

/* Rows, or columns: where their elements are, and from one round to the next. */
struct side {
    const struct tile_product_load *loads;
    uint32_t n;
    bool even;
    bool packs; /* into panels, all of them if any */
    int64_t step;
    struct course courses[TILE_SUMS];
    const void *elements[TILE_SUMS];
};

/* False: offsets leave their type, or loads do not go together. */
static bool find_courses(const struct tile_product *product, int64_t rounds, const char *scratch,
                         struct side *side)
{
    int64_t step = growth_of(product, &side->loads[0], scratch);

    for (uint32_t i = 0; i < side->n; i++) {
        const struct tile_product_load *load = &side->loads[i];
        struct course *at = &side->courses[i];

        if (!side->even && growth_of(product, load, scratch) != step)
            return false;
        at->first = tile_read_int(scratch + load->step.a, load->step.wide);
        at->step = step;
        if (!fits(load, at, rounds, scratch))
            return false;
        at->first *= load->step.scale;
        at->step *= load->step.scale;
    }
    return true;
}

static bool find_side(const struct tile_product *product, int64_t rounds, char *scratch,
                      struct side *side)
{
    bool packs = false;

    if (!find_courses(product, rounds, scratch, side))
        return false;
    for (uint32_t i = 0; i < side->n; i++)
        packs = packs || !is_plain(product, &side->loads[i], scratch);
    for (uint32_t i = 0; packs && i < side->n; i++)
        if (!side->loads[i].panel)
            return false;
    side->packs = packs;
    side->step = (int64_t)tile_lane_bytes(product->type) *
                 (packs ? (int64_t)side->loads[0].step.n : side->courses[0].step);
    return true;
}

/* The elements of the next rounds. */
static void find_elements(const struct tile_product *product, size_t rounds, void *const *args,
                          char *scratch, struct side *side)
{
    int64_t bytes = (int64_t)tile_lane_bytes(product->type);

    for (uint32_t i = 0; i < side->n; i++) {
        const struct tile_product_load *load = &side->loads[i];
        struct course *at = &side->courses[i];

        if (side->packs)
            fill_panel(load, at, rounds, args, scratch);
        side->elements[i] = side->packs
                                ? scratch + load->panel
                                : tile_memory(&load->step, args, scratch) + at->first * bytes;
        at->first += (int64_t)rounds * at->step;
    }
}

static int64_t rounds_of(const struct tile_product *product, const char *scratch)
{
    uint64_t now = read(scratch + product->counter, product->wide);
    uint64_t end = read(scratch + product->end, product->wide);

    return (int64_t)((end - now - 1) / (uint64_t)product->step + 1);
}

/* Runs of lanes whose elements lie together in memory, or all lanes at once. */
static void multiply(const struct tile_product *product, const struct side *across,
                     struct tile_products *p, void **sums, char *scratch)
{
    const struct tile_product_load *load = &product->across[0];
    size_t bytes = tile_lane_bytes(product->type), lanes = load->step.n;
    size_t run = load->spread && !across->packs ? load->run : lanes;
    const void *elements[TILE_SUMS];

    p->lanes = run;
    p->across = across->elements;
    for (size_t lane = 0; lane < lanes; lane += run) {
        for (size_t i = 0; i < p->rows * p->columns; i++)
            sums[i] = scratch + product->sums[i] + lane * bytes;
        if (load->spread && !across->packs) {
            const char *part = scratch + load->spread + lane * (load->step.wide ? 8 : 4);

            elements[0] = (const char *)across->elements[0] +
                          tile_read_int(part, load->step.wide) * (int64_t)bytes;
            p->across = elements;
        }
        product->multiply(p);
    }
}

bool tile_product_run(const struct tile_product *product, void *const *args, char *scratch)
{
    struct side down, across; /* large, and filled as far as needed */
    int64_t rounds = rounds_of(product, scratch);
    void *sums[TILE_SUMS];
    struct tile_products p = {
        .rows = product->rows, .columns = product->columns, .sums = sums, .down = down.elements};

    down.loads = product->down;
    down.n = product->rows;
    down.even = product->even_down;
    across.loads = product->across;
    across.n = product->columns;
    across.even = product->even_across;
    if (!find_side(product, rounds, scratch, &down) ||
        !find_side(product, rounds, scratch, &across))
        return false;
    p.down_step = down.step;
    p.across_step = across.step;
    for (; rounds > 0; rounds -= (int64_t)p.rounds) {
        p.rounds = (size_t)rounds;
        if ((down.packs || across.packs) && p.rounds > product->depth)
            p.rounds = product->depth;
        find_elements(product, p.rounds, args, scratch, &down);
        find_elements(product, p.rounds, args, scratch, &across);
        multiply(product, &across, &p, sums, scratch);
    }
    return true;
}
