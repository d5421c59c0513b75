/* SPDX-License-Identifier: Apache-2.0 */
/* Running: step after step, by kind. */
#include "emit/tile/run.h"

#include <stdatomic.h>
#include <string.h>

#include "emit/tile/code.h"
#include "emit/tile/product_run.h"
#include "emit/tile/range.h"

enum { WATCHED = 256 }; /* lanes at a time */

static struct tile_places places_of(const struct tile_step *step, const char *scratch)
{
    struct tile_places at = {.n = step->n, .offsets = scratch + step->a};

    if (step->way == TILE_LINEAR) {
        at.first = tile_read_int(scratch + step->a, step->wide) * step->scale;
        at.step = (int64_t)step->imm;
    }
    return at;
}

/* Leaves the lanes from `first` to before `end`. */
static void cut(struct tile_places *at, const struct tile_step *step, uint32_t first, uint32_t end)
{
    at->n = end > first ? end - first : 0;
    at->first += at->step * first;
    at->offsets = (const char *)at->offsets + (size_t)first * (step->wide ? 8 : 4);
}

/* The lanes that take part, as far as they are a range; `mask` of the others. */
static struct tile_range taking_part(const struct tile_step *step, const char *scratch,
                                     const uint32_t **mask)
{
    const char *lanes = scratch + step->c;
    struct tile_range range = {0, (int32_t)step->n};

    if (step->mask == MASK_ONE && !*(const uint32_t *)lanes)
        range.end = 0;
    if (step->mask == MASK_RANGE)
        range = *(const struct tile_range *)(lanes - TILE_HEAD);
    *mask = NULL;
    if (step->mask == MASK_LANES || range.first < 0) {
        *mask = (const uint32_t *)lanes;
        range = (struct tile_range){0, (int32_t)step->n};
    }
    return range;
}

/* Lanes first .. end - 1 of `out` get what they have where nothing is loaded. */
static void get_rest(const struct tile_step *step, const char *scratch, char *out, size_t first,
                     size_t end)
{
    size_t bytes = tile_lane_bytes(step->type);
    const char *rest = scratch + step->b + (step->one_b ? 0 : first * bytes);

    if (end > first)
        step->loop(out + first * bytes, rest, rest, rest, end - first, 0);
}

/* ---- within bounds ---- */

/* A run that is watched: what is not within the bounds of its argument takes no part. */
struct watch {
    const struct tile_bounds *bounds; /* NULL: nothing is watched */
    uint64_t outside;                 /* elements */
};

static int64_t place_at(const struct tile_step *step, const struct tile_places *at, size_t i)
{
    if (step->way == TILE_LINEAR)
        return at->first + at->step * (int64_t)i;
    return tile_read_int((const char *)at->offsets + i * (step->wide ? 8 : 4), step->wide);
}

static bool is_inside(const struct watch *watch, const struct tile_step *step, int64_t place)
{
    const struct tile_bounds *bounds = watch->bounds + step->base;

    return place * step->bytes >= bounds->first && (place + 1) * step->bytes <= bounds->end;
}

/* The lanes that are left, in `lanes` if not all are. */
static void watch_places(struct watch *watch, const struct tile_step *step, struct tile_places *at,
                         uint32_t *lanes)
{
    uint64_t before = watch->outside;

    for (size_t i = 0; i < at->n; i++) {
        bool inside = is_inside(watch, step, place_at(step, at, i));
        bool taken = !at->mask || at->mask[i];

        lanes[i] = taken && inside ? UINT32_MAX : 0;
        watch->outside += taken && !inside;
    }
    if (watch->outside > before)
        at->mask = lanes;
}

static bool is_watched(const struct watch *watch, const struct tile_step *step)
{
    return watch->bounds && !step->in_tile;
}

/* ---- loads and stores ---- */

static void move_watched(struct watch *watch, const struct tile_step *step, char *reg, void *memory,
                         struct tile_places *at)
{
    uint32_t lanes[WATCHED];
    const char *offsets = at->offsets;
    const uint32_t *mask = at->mask;
    size_t bytes = tile_lane_bytes(step->type), n = at->n;

    for (size_t i = 0; i < n; i += WATCHED) {
        struct tile_places part = *at;

        part.n = n - i < WATCHED ? n - i : WATCHED;
        part.first += at->step * (int64_t)i;
        part.offsets = offsets + i * (step->wide ? 8 : 4);
        part.mask = mask ? mask + i : NULL;
        watch_places(watch, step, &part, lanes);
        for (size_t k = 0; step->kind == STEP_LOAD && part.mask == lanes && k < part.n; k++)
            if (!lanes[k] && (!mask || mask[i + k]))
                memset(reg + (i + k) * bytes, 0, bytes);
        step->move(reg + i * bytes, memory, &part);
    }
}

/* Lanes that take no part were cut off, or are masked. */
static void move(struct watch *watch, const struct tile_step *step, char *reg, void *memory,
                 struct tile_places *at)
{
    if (is_watched(watch, step))
        move_watched(watch, step, reg, memory, at);
    else
        step->move(reg, memory, at);
}

/* From `at` to the register `out`. */
static void load(const struct tile_step *step, struct watch *watch, void *const *args,
                 struct tile_places at, char *scratch, char *out)
{
    char *memory = tile_memory(step, args, scratch);
    size_t first = 0;

    if (step->way != TILE_LINEAR)
        memory += at.first * (int64_t)tile_element_bytes(step);
    if (step->mask != MASK_NONE) {
        struct tile_range range = taking_part(step, scratch, &at.mask);

        if (at.mask) {
            get_rest(step, scratch, out, 0, step->n);
        } else {
            get_rest(step, scratch, out, 0, (size_t)range.first);
            get_rest(step, scratch, out, (size_t)range.end, step->n);
            first = (size_t)range.first;
            cut(&at, step, (uint32_t)range.first, (uint32_t)range.end);
        }
    }
    if (at.n)
        move(watch, step, out + first * tile_lane_bytes(step->type), memory, &at);
}

void tile_load_rounds(const struct tile_step *step, const struct tile_rounds *rounds,
                      void *const *args, char *scratch, char *out)
{
    size_t bytes = tile_lane_bytes(step->type);
    char *memory = tile_memory(step, args, scratch);
    struct tile_places at = {.first = rounds->first, .step = (int64_t)step->imm};
    struct watch watch = {NULL, 0};
    struct tile_range range = taking_part(step, scratch, &at.mask);
    bool alike = !at.mask && step->way == TILE_LINEAR; /* the same lanes take part in all rounds */

    at.offsets = rounds->offsets;
    at.n = alike ? (size_t)(range.end - range.first) : step->n;
    at.first += alike ? at.step * range.first : 0;
    for (size_t i = 0; i < rounds->n; i++, out += step->n * bytes, at.first += rounds->by) {
        if (!alike) {
            load(step, &watch, args, at, scratch, out);
            continue;
        }
        if (step->mask != MASK_NONE) {
            get_rest(step, scratch, out, 0, (size_t)range.first);
            get_rest(step, scratch, out, (size_t)range.end, step->n);
        }
        if (at.n)
            step->move(out + (size_t)range.first * bytes, memory, &at);
    }
}

static void run_store(const struct tile_step *step, struct watch *watch, void *const *args,
                      char *scratch)
{
    struct tile_places at = places_of(step, scratch);
    struct tile_range range = taking_part(step, scratch, &at.mask);

    cut(&at, step, (uint32_t)range.first, (uint32_t)range.end);
    if (at.n)
        move(watch, step, scratch + step->b + (size_t)range.first * tile_lane_bytes(step->type),
             tile_memory(step, args, scratch), &at);
}

/* ---- atomics ---- */

static void add_float(_Atomic uint32_t *to, uint32_t bits)
{
    uint32_t old = atomic_load_explicit(to, memory_order_relaxed), sum;
    float a, b;

    memcpy(&b, &bits, sizeof(b));
    do {
        memcpy(&a, &old, sizeof(a));
        a += b;
        memcpy(&sum, &a, sizeof(sum));
    } while (!atomic_compare_exchange_weak_explicit(to, &old, sum, memory_order_relaxed,
                                                    memory_order_relaxed));
}

static void run_atomic(const struct tile_step *step, struct watch *watch, void *const *args,
                       char *scratch)
{
    struct tile_places at = places_of(step, scratch);
    struct tile_range range = taking_part(step, scratch, &at.mask);
    char *memory = tile_memory(step, args, scratch);
    const char *from = scratch + step->b;

    for (int32_t i = range.first; i < range.end; i++) {
        int64_t where = place_at(step, &at, (size_t)i);

        if (at.mask && !at.mask[i])
            continue;
        if (is_watched(watch, step) && !is_inside(watch, step, where)) {
            watch->outside++;
            continue;
        }
        if (step->type == KIR_I64)
            atomic_fetch_add_explicit((_Atomic uint64_t *)memory + where,
                                      ((const uint64_t *)from)[i], memory_order_relaxed);
        else if (step->type == KIR_I32)
            atomic_fetch_add_explicit((_Atomic uint32_t *)memory + where,
                                      ((const uint32_t *)from)[i], memory_order_relaxed);
        else
            add_float((_Atomic uint32_t *)memory + where, ((const uint32_t *)from)[i]);
    }
}

/* ---- control ---- */

static void write_int(char *at, bool wide, int64_t value)
{
    if (wide)
        *(int64_t *)at = value;
    else
        *(int32_t *)at = (int32_t)value;
}

/* The step to go on with. */
static uint32_t run_for(const struct tile_step *step, char *scratch, uint32_t here)
{
    bool wide = step->type == KIR_I64;
    int64_t begin = tile_read_int(scratch + step->a, wide);

    write_int(scratch + step->out, wide, begin);
    return begin < tile_read_int(scratch + step->b, wide) ? here + 1 : step->to;
}

static uint32_t run_next(const struct tile_step *step, char *scratch, uint32_t here)
{
    bool wide = step->type == KIR_I64;
    int64_t now = tile_read_int(scratch + step->out, wide),
            end = tile_read_int(scratch + step->b, wide);

    if ((uint64_t)end - (uint64_t)now <= step->imm) /* now < end */
        return here + 1;
    write_int(scratch + step->out, wide, now + (int64_t)step->imm);
    return step->to;
}

static uint32_t run_step(const struct tile_code *code, uint32_t here, struct watch *watch,
                         void *const *args, char *scratch)
{
    const struct tile_step *step = &code->steps[here];

    switch (step->kind) {
    case STEP_LOOP:
        step->loop(scratch + step->out, scratch + step->a, scratch + step->b, scratch + step->c,
                   step->n, step->imm);
        break;
    case STEP_ADD_I32:
        *(uint32_t *)(scratch + step->out) =
            *(const uint32_t *)(scratch + step->a) + *(const uint32_t *)(scratch + step->b);
        break;
    case STEP_MUL_I32:
        *(uint32_t *)(scratch + step->out) =
            *(const uint32_t *)(scratch + step->a) * *(const uint32_t *)(scratch + step->b);
        break;
    case STEP_LOAD:
        load(step, watch, args, places_of(step, scratch), scratch, scratch + step->out);
        break;
    case STEP_STORE:
        run_store(step, watch, args, scratch);
        break;
    case STEP_ATOMIC:
        run_atomic(step, watch, args, scratch);
        break;
    case STEP_RANGE:
        tile_range(step, scratch);
        break;
    case STEP_RANGE_AND:
        tile_range_and(step, scratch);
        break;
    case STEP_RANGE_FILL:
        tile_range_fill(step, scratch);
        break;
    case STEP_PRODUCT: /* the steps that follow watch each access */
        return !watch->bounds && tile_product_run(&code->products[step->imm], args, scratch)
                   ? step->to
                   : here + 1;
    case STEP_FOR:
        return run_for(step, scratch, here);
    case STEP_NEXT:
        return run_next(step, scratch, here);
    case STEP_IF:
        return *(const uint32_t *)(scratch + step->a) ? here + 1 : step->to;
    }
    return here + 1;
}

static void run(const struct tile_code *code, const uint64_t *words, void *const *args,
                struct watch *watch, const uint32_t group[3], char *scratch)
{
    uint32_t here = 0;

    memcpy(scratch, group, 3 * sizeof(*group));
    if (code->n_words)
        memcpy(scratch + code->words, words, code->n_words * sizeof(*words));
    if (code->n_consts)
        memcpy(scratch + code->consts, code->const_bits, code->n_consts * sizeof(*words));
    while (here < code->n_steps)
        here = run_step(code, here, watch, args, scratch);
}

void tile_run(const struct tile_code *code, const uint64_t *words, void *const *args,
              const uint32_t group[3], void *scratch)
{
    struct watch watch = {NULL, 0};

    run(code, words, args, &watch, group, scratch);
}

uint64_t tile_run_within(const struct tile_code *code, const uint64_t *words, void *const *args,
                         const struct tile_bounds *bounds, const uint32_t group[3], void *scratch)
{
    struct watch watch = {bounds, 0};

    run(code, words, args, &watch, group, scratch);
    return watch.outside;
}
