/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise rows.  The operands are walked together with the result; a region of each is loaded
 * into lanes, one loop per row and kind of value works on the lanes (maps.def), and the result is
 * stored. */
#include <math.h>

#include "rows.h"

struct lanes {
    int64_t n;
    uint32_t dtype; /* that the row computes in */
    int64_t bits;   /* of that type */
    union value in[3][VALUE_LANES];
    union value out[VALUE_LANES];
};

typedef void (*map_fn)(struct lanes *l);

struct map {
    uint32_t decides; /* the operand in whose kind the row computes */
    map_fn by_kind[VALUE_KINDS];
};

static void map_lanes(struct lanes *lanes, const struct view *views, const struct walk *walk,
                      int64_t done)
{
    for (uint32_t k = 1; k < walk->n; k++) {
        const struct view *in = &views[k];

        if (in->data)
            value_load(in->dtype, in->data + walk->at[k] + done * walk->step[k], walk->step[k],
                       lanes->n, lanes->in[k - 1]);
    }
}

static void map_run(const struct call *call, const struct map *map)
{
    struct view views[4] = {call_out(call, 0)};
    const struct view *walked[] = {&views[0], &views[1], &views[2], &views[3]};
    const struct view *y = &views[0];
    uint32_t n = call_n_in(call), dtype = call_dtype(call, map->decides);
    map_fn fn = map->by_kind[value_kind(dtype)];
    struct lanes lanes = {.dtype = dtype, .bits = frit_dtype_bits(dtype)};
    struct walk walk;

    for (uint32_t i = 0; i < n; i++) {
        views[1 + i] = call_in(call, i);
        if (views[1 + i].data)
            continue;
        lanes.in[i][0] = call_scalar(call, i);
        for (uint32_t lane = 1; lane < VALUE_LANES; lane++)
            lanes.in[i][lane] = lanes.in[i][0];
    }
    view_walk(&walk, WALK_ROWS, walked, 1 + n);
    for (bool more = walk_first(&walk); more; more = walk_next(&walk))
        for (int64_t done = 0; done < walk.count; done += lanes.n) {
            lanes.n = walk.count - done < VALUE_LANES ? walk.count - done : VALUE_LANES;
            map_lanes(&lanes, views, &walk, done);
            fn(&lanes);
            value_store(y->dtype, y->data + walk.at[0] + done * walk.step[0], walk.step[0], lanes.n,
                        lanes.out);
        }
}

/* ---- what the expressions of maps.def use ---- */

static double larger(double a, double b)
{
    return isnan(a) || !(isnan(b) || b > a) ? a : b;
}

static double smaller(double a, double b)
{
    return isnan(a) || !(isnan(b) || b < a) ? a : b;
}

static uint64_t div_sint(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    return b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b);
}

static double rem_real(double a, double b)
{
    double rest = fmod(a, b);

    if (rest == 0)
        return copysign(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t rem_sint(int64_t a, int64_t b)
{
    int64_t rest = b == 0 || b == -1 ? 0 : a % b;

    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static uint64_t pow_uint(uint64_t a, uint64_t b)
{
    uint64_t power = 1;

    for (; b; b >>= 1, a *= a)
        if (b & 1)
            power *= a;
    return power;
}

static uint64_t pow_sint(int64_t a, int64_t b)
{
    if (b >= 0)
        return pow_uint((uint64_t)a, (uint64_t)b);
    if (a == 1 || a == -1)
        return b & 1 ? (uint64_t)a : 1;
    return 0;
}

/* ---- one loop per row and kind ---- */

#define OPERANDS_1(type, member) const type a = l->in[0][i].member
#define OPERANDS_2(type, member) \
    OPERANDS_1(type, member);    \
    const type b = l->in[1][i].member
#define OPERANDS_3(type, member) \
    OPERANDS_2(type, member);    \
    const type c = l->in[2][i].member
#define LOOP(fn, n_operands, type, member, result, result_type, expression) \
    static void fn(struct lanes *l)                                         \
    {                                                                       \
        for (int64_t i = 0; i < l->n; i++) {                                \
            OPERANDS_##n_operands(type, member);                            \
            l->out[i].result = (result_type)(expression);                   \
        }                                                                   \
    }
#define REAL_LOOP(n, name, r) LOOP(lanes_##name##_real, n, double, real, real, double, r)
#define SINT_LOOP(n, name, s) LOOP(lanes_##name##_sint, n, int64_t, sint, uint, uint64_t, s)
#define UINT_LOOP(n, name, u) LOOP(lanes_##name##_uint, n, uint64_t, uint, uint, uint64_t, u)
#define TEST_LOOP(n, name, r) LOOP(lanes_##name##_real, n, double, real, uint, uint64_t, r)

#define MAP_REAL(n, name, r) REAL_LOOP(n, name, r)
#define MAP_INT(n, name, s, u) \
    SINT_LOOP(n, name, s)      \
    UINT_LOOP(n, name, u)
#define MAP_ALL(n, name, r, s, u) \
    REAL_LOOP(n, name, r)         \
    MAP_INT(n, name, s, u)
#define MAP_TEST_REAL(n, name, r) TEST_LOOP(n, name, r)
#define MAP_TEST(n, name, any) \
    TEST_LOOP(n, name, any)    \
    MAP_INT(n, name, any, any)
#include "maps.def"

#define RUN(name, real, sint, uint)                                \
    void ref_##name(const struct call *call)                       \
    {                                                              \
        map_run(call, &(const struct map){0, {real, sint, uint}}); \
    }
#define MAP_REAL(n, name, r)   RUN(name, lanes_##name##_real, NULL, NULL)
#define MAP_INT(n, name, s, u) RUN(name, NULL, lanes_##name##_sint, lanes_##name##_uint)
#define MAP_ALL(n, name, r, s, u) \
    RUN(name, lanes_##name##_real, lanes_##name##_sint, lanes_##name##_uint)
#define MAP_TEST_REAL(n, name, r) RUN(name, lanes_##name##_real, NULL, NULL)
#define MAP_TEST(n, name, any) \
    RUN(name, lanes_##name##_real, lanes_##name##_sint, lanes_##name##_uint)
#include "maps.def"

/* ---- choosing between operands ---- */

static void lanes_where(struct lanes *l)
{
    for (int64_t i = 0; i < l->n; i++)
        l->out[i] = l->in[0][i].uint ? l->in[1][i] : l->in[2][i];
}

static void lanes_mask_fill(struct lanes *l)
{
    for (int64_t i = 0; i < l->n; i++)
        l->out[i] = l->in[1][i].uint ? l->in[2][i] : l->in[0][i];
}

void ref_where(const struct call *call)
{
    map_run(call, &(const struct map){1, {lanes_where, lanes_where, lanes_where}});
}

void ref_mask_fill(const struct call *call)
{
    map_run(call, &(const struct map){0, {lanes_mask_fill, lanes_mask_fill, lanes_mask_fill}});
}
