/* SPDX-License-Identifier: Apache-2.0 */
/* Joins that are stored, of so many elements that groups within one piece do that piece alone. */
#include <string.h>

#include "kernels/lower/rig.h"
#include "unit.h"

enum { PIECES = 5 };

struct join {
    uint32_t rank, axis, n;
    int64_t dims[3]; /* but for the axis */
    int64_t extent[PIECES];
    bool computed; /* pieces are negated before */
    uint32_t branches;
};

static uint32_t n_ifs(const struct rig *rig)
{
    const struct kir_phase *phase = &rig->module.phases[0];
    uint32_t n = 0;

    for (uint32_t i = 0; i < phase->n; i++)
        n += phase->inst[i].op == KIR_if;
    return n;
}

/* The number along the axis of element `number`, and the row-major number without the axis. */
static int64_t split(const struct join *join, const int64_t *dims, int64_t number, int64_t *rest)
{
    int64_t inner = 1;

    for (uint32_t d = join->rank; d-- > join->axis + 1;)
        inner *= dims[d];
    *rest = number / (inner * dims[join->axis]) * inner + number % inner;
    return number / inner % dims[join->axis];
}

static void check_values(const struct rig *rig, const struct join *join, uint32_t y)
{
    const int64_t *dims = rig->values[y].dims;

    for (int64_t i = 0; i < rig_count(rig, y); i++) {
        int64_t rest, at = split(join, dims, i, &rest), want;
        uint32_t piece = 0;

        while (at >= join->extent[piece])
            at -= join->extent[piece++];
        want = 1000000 * (piece + 1) + 5000 * (rest % 150) + at;
        want = join->computed ? -want : want;
        if (rig_get_int(rig, y, i) != want)
            fail_msg("element %lld is %lld, not %lld", (long long)i,
                     (long long)rig_get_int(rig, y, i), (long long)want);
    }
}

static void check(const struct join *join, bool wide)
{
    frit_attrs_axis attrs = {.struct_size = sizeof(attrs), .axis = join->axis};
    struct rig_in in[PIECES];
    int64_t dims[3], total = 0;
    struct rig rig;
    uint32_t y;

    rig_init(&rig);
    rig.index_width = wide ? 64 : 32;
    for (uint32_t p = 0; p < join->n; p++) {
        uint32_t x;

        memcpy(dims, join->dims, sizeof(dims));
        dims[join->axis] = join->extent[p];
        total += join->extent[p];
        x = rig_input(&rig, FRIT_I32, join->rank, dims);
        for (int64_t i = 0; i < rig_count(&rig, x); i++) {
            int64_t rest, at = split(join, dims, i, &rest);

            rig_set_int(&rig, x, i, 1000000 * (p + 1) + 5000 * (rest % 150) + at);
        }
        if (join->computed)
            x = rig_op(&rig, FRIT_OP_neg, 1, (struct rig_in[]){rig_value(x)}, NULL, FRIT_I32,
                       join->rank, dims);
        in[p] = rig_value(x);
    }
    dims[join->axis] = total;
    y = rig_op(&rig, FRIT_OP_cat, join->n, in, &attrs, FRIT_I32, join->rank, dims);
    rig_run(&rig, &sched_map);
    check_values(&rig, join, y);
    assert_int_equal(n_ifs(&rig), join->branches);
    rig_fini(&rig);
}

/* Branches: full groups, a branch per piece that has elements, one for groups of several pieces;
 * and the last group. */
static void test_joins(void **state)
{
    static const struct join joins[] = {
        {1, 0, 3, {0}, {3000, 1, 5000}, false, 6},
        {1, 0, 3, {0}, {3000, 1, 5000}, true, 6},
        {1, 0, 5, {0}, {64, 0, 4032, 100, 63}, false, 7},
        {1, 0, 2, {0}, {64, 4032}, false, 3},
        {2, 1, 3, {40, 0}, {300, 77, 1000}, false, 6},
        {2, 1, 3, {40, 0}, {256, 128, 640}, true, 4},
        {2, 0, 3, {0, 200}, {10, 33, 1}, false, 6},
        {3, 1, 2, {4, 0, 130}, {7, 20}, true, 5},
        {3, 0, 2, {0, 3, 130}, {7, 20}, false, 5},
        {2, 0, 2, {0, 3}, {3000, 2000}, false, 2}, /* short rows: no coordinate is a group's */
        {1, 0, 2, {0}, {900, 100}, false, 0},      /* few groups */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(joins) / sizeof(joins[0]); i++)
        for (uint32_t wide = 0; wide < 2; wide++)
            check(&joins[i], wide);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_joins)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
