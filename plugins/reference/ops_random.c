/* SPDX-License-Identifier: Apache-2.0 */
/* Random rows.  Element i depends on the seed, the op's counter and i alone, so rows may be walked
 * in any way.
 *
 * Where results must agree bit for bit between drivers, types up to f32 compute in float, step by
 * step, and are rounded from it. */
#include <math.h>

#include "philox.h"
#include "rows.h"

struct source {
    uint32_t key[2];
    uint32_t op[2]; /* op counter, stream ordinal */
    uint64_t block; /* that `words` is of */
    uint32_t words[4];
};

static void source_block(struct source *source, uint64_t block)
{
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), source->op[0],
                                 source->op[1]};

    source->block = block;
    philox(counter, source->key, source->words);
}

static void source_init(struct source *source, const struct call *call)
{
    uint64_t seed = call_seed(call), op = call_counter(call);

    source->key[0] = (uint32_t)seed;
    source->key[1] = (uint32_t)(seed >> 32);
    source->op[0] = (uint32_t)op;
    source->op[1] = (uint32_t)(op >> 32);
    source_block(source, 0);
}

static uint32_t word32(struct source *source, uint64_t i)
{
    if (source->block != i / 4)
        source_block(source, i / 4);
    return source->words[i % 4];
}

static uint64_t word64(struct source *source, uint64_t i)
{
    if (source->block != i / 2)
        source_block(source, i / 2);
    return source->words[2 * (i % 2)] | (uint64_t)source->words[2 * (i % 2) + 1] << 32;
}

static float uniform_f32(struct source *source, uint64_t i)
{
    return (float)(word32(source, i) >> 8) * 0x1p-24f;
}

static double uniform_f64(struct source *source, uint64_t i)
{
    return (double)(word64(source, i) >> 11) * 0x1p-53;
}

/* Element `i` of a result of this element type. */
typedef union value (*draw_fn)(struct source *source, const struct call *call, uint32_t dtype,
                               uint64_t i);

static void draw(const struct call *call, draw_fn fn)
{
    const struct view y = call_out(call, 0);
    const struct view *views[] = {&y};
    struct source source = {0};
    struct walk walk;
    uint64_t i = 0;

    source_init(&source, call);
    view_walk(&walk, WALK_ELEMENTS, views, 1);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        value_put(y.dtype, y.data + walk.at[0], fn(&source, call, y.dtype, i++));
}

static union value draw_raw(struct source *source, const struct call *call, uint32_t dtype,
                            uint64_t i)
{
    (void)call;
    return (union value){.uint = dtype == FRIT_U64 ? word64(source, i) : word32(source, i)};
}

static union value draw_uniform(struct source *source, const struct call *call, uint32_t dtype,
                                uint64_t i)
{
    double low = call_scalar(call, 0).real, high = call_scalar(call, 1).real;
    float narrow_low = (float)low, range = (float)high - narrow_low;

    if (dtype == FRIT_F64)
        return (union value){.real = low + uniform_f64(source, i) * (high - low)};
    return (union value){.real = narrow_low + uniform_f32(source, i) * range};
}

static double uniform(struct source *source, uint32_t dtype, uint64_t i)
{
    return dtype == FRIT_F64 ? uniform_f64(source, i) : uniform_f32(source, i);
}

/* Box-Muller over the pair of uniforms that elements 2 j and 2 j + 1 share. */
static union value draw_normal(struct source *source, const struct call *call, uint32_t dtype,
                               uint64_t i)
{
    double mean = call_scalar(call, 0).real, std = call_scalar(call, 1).real;
    double u = uniform(source, dtype, i & ~1ull), v = uniform(source, dtype, i | 1);
    double radius = sqrt(-2 * log1p(-u)), angle = 2 * M_PI * v;

    return (union value){.real = mean + std * radius * (i & 1 ? sin(angle) : cos(angle))};
}

static union value draw_bernoulli(struct source *source, const struct call *call, uint32_t dtype,
                                  uint64_t i)
{
    int one = uniform_f32(source, i) < (float)call_scalar(call, 0).real;

    return value_kind(dtype) == VALUE_REAL ? (union value){.real = one}
                                           : (union value){.sint = one};
}

static union value draw_int(struct source *source, const struct call *call, uint32_t dtype,
                            uint64_t i)
{
    uint64_t low = call_scalar(call, 0).uint, range = call_scalar(call, 1).uint - low;

    (void)dtype;
    return (union value){.uint = low + (range ? word64(source, i) % range : 0)};
}

void ref_random_raw(const struct call *call)
{
    draw(call, draw_raw);
}

void ref_random_uniform(const struct call *call)
{
    draw(call, draw_uniform);
}

void ref_random_normal(const struct call *call)
{
    draw(call, draw_normal);
}

void ref_random_bernoulli(const struct call *call)
{
    draw(call, draw_bernoulli);
}

void ref_random_int(const struct call *call)
{
    draw(call, draw_int);
}
