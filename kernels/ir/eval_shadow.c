/* SPDX-License-Identifier: Apache-2.0 */
/* Who touched which byte of the arguments in a phase.  Nothing orders lanes within a phase but
 * barriers, and those only tiles, so a lane that sees what another wrote, or two that write
 * different things to one place, make results depend on the order.
 *
 * Arguments that overlap share a region of memory; a region is held in granules that divide every
 * element in it. */
#include "ir/eval_shadow.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "ir/eval_state.h"

/* Instead of a lane: several, and those that added to an element. */
#define SEVERAL UINT32_MAX
#define ADDERS  (UINT32_MAX - 1)

static uint64_t common(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

static bool overlap(const struct eval_region *a, const struct eval_region *b)
{
    return a->low < b->high && b->low < a->high;
}

/* Makes one region of those of two arguments; every argument of the second goes to the first. */
static void join(struct eval *e, uint32_t to, uint32_t from)
{
    struct eval_region *a = &e->regions[to], *b = &e->regions[from];

    a->low = a->low < b->low ? a->low : b->low;
    a->high = a->high > b->high ? a->high : b->high;
    for (uint32_t i = 0; i < e->module->n_args; i++) {
        if (e->region_of[i] == from)
            e->region_of[i] = to;
    }
    *b = (struct eval_region){0};
}

/* Regions that overlap are one piece when joined, so that each pair is looked at once. */
static void join_all(struct eval *e)
{
    for (uint32_t i = 0; i < e->module->n_args; i++) {
        for (uint32_t k = 0; k < i; k++) {
            uint32_t a = e->region_of[i], b = e->region_of[k];

            if (a != b && overlap(&e->regions[a], &e->regions[b]))
                join(e, a, b);
        }
    }
}

frit_status eval_shadow_init(struct eval *e)
{
    uint32_t n = e->module->n_args;

    e->regions = calloc((size_t)n + 1, sizeof(*e->regions));
    e->region_of = calloc((size_t)n + 1, sizeof(*e->region_of));
    if (!e->regions || !e->region_of)
        return fail_memory(e->err, ((size_t)n + 1) * sizeof(*e->regions));
    for (uint32_t i = 0; i < n; i++) {
        uintptr_t base = (uintptr_t)e->args[i].base;

        e->regions[i] = (struct eval_region){.low = base - (uintptr_t)e->args[i].before,
                                             .high = base + (uintptr_t)e->args[i].after};
        e->region_of[i] = i;
    }
    join_all(e);
    for (uint32_t i = 0; i < n; i++) {
        struct eval_region *region = &e->regions[e->region_of[i]];

        region->granule = common(region->granule, frit_storage_bytes(e->module->args[i].dtype, 1));
        region->granule = common(region->granule, (uintptr_t)e->args[i].base - region->low);
    }
    return FRIT_OK;
}

static void forget(struct eval *e)
{
    for (uint32_t i = 0; e->regions && i < e->module->n_args; i++) {
        free(e->regions[i].touch);
        e->regions[i].touch = NULL;
    }
}

void eval_shadow_fini(struct eval *e)
{
    forget(e);
    free(e->regions);
    free(e->region_of);
}

frit_status eval_shadow_reset(struct eval *e)
{
    forget(e);
    for (uint32_t i = 0; i < e->module->n_args; i++) {
        struct eval_region *region = &e->regions[i];
        size_t count = region->granule ? (region->high - region->low) / region->granule : 0;

        if (!count)
            continue;
        region->touch = calloc(count, sizeof(*region->touch));
        if (!region->touch)
            return fail_memory(e->err, count * sizeof(*region->touch));
    }
    return FRIT_OK;
}

/* The name of a lane in its phase; those of lanes that are billions apart may be equal. */
static uint32_t name_of(const struct eval *e, uint32_t lane)
{
    return (uint32_t)((e->group_number * e->phase->lanes + lane) % (ADDERS - 1)) + 1;
}

static frit_status race(const struct eval *e, uint32_t lane, const char *does, uint32_t other,
                        const char *did)
{
    uint32_t arg = eval_place(e);

    if (other >= ADDERS)
        return eval_fail(e, "lane %u %s an element of argument %u that others %s in this phase",
                         lane, does, arg, did);
    return eval_fail(e,
                     "lane %u %s an element of argument %u that lane %u of group %u %s in this "
                     "phase",
                     lane, does, arg, (other - 1) % e->phase->lanes, (other - 1) / e->phase->lanes,
                     did);
}

/* The granules of an element, from the first one. */
static struct eval_touch *touch_at(const struct eval *e, const unsigned char *element)
{
    const struct eval_region *region = &e->regions[e->region_of[eval_place(e)]];

    return region->touch + ((uintptr_t)element - region->low) / region->granule;
}

static uint64_t granules_of(const struct eval *e, size_t bytes)
{
    return bytes / e->regions[e->region_of[eval_place(e)]].granule;
}

frit_status eval_shadow_read(const struct eval *e, uint32_t lane, const unsigned char *element,
                             size_t bytes)
{
    struct eval_touch *touch = touch_at(e, element);
    uint32_t self = name_of(e, lane);

    for (uint64_t i = 0; i < granules_of(e, bytes); i++) {
        if (touch[i].writer && touch[i].writer != self)
            return race(e, lane, "reads", touch[i].writer, "wrote");
        touch[i].reader = touch[i].reader && touch[i].reader != self ? SEVERAL : self;
    }
    return FRIT_OK;
}

/* Memory that no lane touched is not looked at: nothing need be there yet. */
frit_status eval_shadow_write(const struct eval *e, uint32_t lane, const unsigned char *element,
                              const void *bits, size_t bytes)
{
    struct eval_touch *touch = touch_at(e, element);
    uint32_t self = name_of(e, lane);

    for (uint64_t i = 0; i < granules_of(e, bytes); i++) {
        bool read = touch[i].reader && touch[i].reader != self;
        bool written = touch[i].writer && touch[i].writer != self;

        if ((read || written) && memcmp(element, bits, bytes) != 0)
            return read ? race(e, lane, "writes", touch[i].reader, "read")
                        : race(e, lane, "writes", touch[i].writer, "wrote otherwise");
        touch[i].writer = touch[i].writer && touch[i].writer != self ? SEVERAL : self;
    }
    return FRIT_OK;
}

frit_status eval_shadow_add(const struct eval *e, uint32_t lane, const unsigned char *element,
                            size_t bytes)
{
    struct eval_touch *touch = touch_at(e, element);

    for (uint64_t i = 0; i < granules_of(e, bytes); i++) {
        if (touch[i].reader)
            return race(e, lane, "adds to", touch[i].reader, "read");
        if (touch[i].writer && touch[i].writer != ADDERS)
            return race(e, lane, "adds to", touch[i].writer, "wrote");
        touch[i].writer = ADDERS;
    }
    return FRIT_OK;
}
