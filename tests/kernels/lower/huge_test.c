/* SPDX-License-Identifier: Apache-2.0 */
/* More elements than 32 bits count: every schedule makes a module that verifies, or refuses. */
#include <string.h>

#include "kernels/lower/rig.h"
#include "unit.h"

static const int64_t sizes[] = {INT32_MAX,  1ll << 31,       (1ll << 31) + 1,
                                UINT32_MAX, (1ll << 32) + 3, 1ll << 40};
static const struct {
    bool rereads_are_cached, lanes_interleaved, i64;
} targets[] = {
    {false, false, true}, {true, true, true}, {true, false, true}, {false, false, false}};

/* A block of ops over an input of these dims. */
typedef void (*put_fn)(struct rig *rig, const int64_t *dims, uint32_t axis);

static uint32_t put(struct rig *rig, uint32_t id, uint32_t x, const void *attrs, uint32_t dtype,
                    const int64_t *dims)
{
    return rig_op(rig, id, 1, (struct rig_in[]){rig_value(x)}, attrs, dtype, 2, dims);
}

/* e^x over its sum. */
static void put_soft(struct rig *rig, const int64_t *dims, uint32_t axis)
{
    static frit_attrs_reduce attrs = {.struct_size = sizeof(attrs), .keep = true};
    int64_t kept[2] = {dims[0], dims[1]};
    uint32_t e, s;

    attrs.axes.count = 1;
    attrs.axes.axis[0] = axis;
    kept[axis] = 1;
    e = put(rig, FRIT_OP_exp, rig_input(rig, FRIT_F32, 2, dims), NULL, FRIT_F32, dims);
    s = put(rig, FRIT_OP_sum, e, &attrs, FRIT_F32, kept);
    rig_op(rig, FRIT_OP_div, 2, (struct rig_in[]){rig_value(e), rig_value(s)}, NULL, FRIT_F32, 2,
           dims);
}

static void put_most(struct rig *rig, const int64_t *dims, uint32_t axis)
{
    static frit_attrs_reduce attrs = {.struct_size = sizeof(attrs), .keep = true};
    int64_t kept[2] = {dims[0], dims[1]};

    attrs.axes.count = 1;
    attrs.axes.axis[0] = axis;
    kept[axis] = 1;
    put(rig, FRIT_OP_argmax, rig_input(rig, FRIT_I8, 2, dims), &attrs, FRIT_I64, kept);
}

static void put_scan(struct rig *rig, const int64_t *dims, uint32_t axis)
{
    static frit_attrs_axis attrs = {.struct_size = sizeof(attrs)};

    attrs.axis = axis;
    put(rig, FRIT_OP_cumsum, rig_input(rig, FRIT_F32, 2, dims), &attrs, FRIT_F32, dims);
}

/* Turned, beside one that is not. */
static void put_map(struct rig *rig, const int64_t *dims, uint32_t axis)
{
    uint32_t x = rig_input(rig, FRIT_F32, 2, dims), y;

    y = axis ? rig_input(rig, FRIT_F32, 2, dims)
             : rig_laid(rig, FRIT_F32, 2, dims, (uint32_t[]){1, 0}, 1, 1);
    rig_op(rig, FRIT_OP_add, 2, (struct rig_in[]){rig_value(x), rig_value(y)}, NULL, FRIT_F32, 2,
           dims);
}

/* Sums along the axis, 3 of them or 3 times. */
static void put_contract(struct rig *rig, const int64_t *dims, uint32_t axis)
{
    const int64_t *right = axis ? (int64_t[]){dims[1], 3} : (int64_t[]){3, dims[0]};
    const int64_t out[2] = {axis ? dims[0] : 3, axis ? 3 : dims[1]};
    struct rig_in in[2];

    in[axis ? 0 : 1] = rig_value(rig_input(rig, FRIT_F32, 2, dims));
    in[axis ? 1 : 0] = rig_value(rig_input(rig, FRIT_F32, 2, right));
    rig_op(rig, FRIT_OP_matmul, 2, in, NULL, FRIT_F32, 2, out);
}

static void put_sort(struct rig *rig, const int64_t *dims, uint32_t axis)
{
    static frit_attrs_sort attrs = {.struct_size = sizeof(attrs)};

    attrs.axis = axis;
    put(rig, FRIT_OP_sort, rig_input(rig, FRIT_I8, 2, dims), &attrs, FRIT_I8, dims);
}

static void put_fft(struct rig *rig, const int64_t *dims, uint32_t axis)
{
    static frit_attrs_fft attrs = {.struct_size = sizeof(attrs)};
    int64_t half[2] = {dims[0], dims[1]};

    attrs.axis = axis;
    attrs.n = dims[axis];
    half[axis] = dims[axis] / 2 + 1;
    put(rig, FRIT_OP_rfft, rig_input(rig, FRIT_F32, 2, dims), &attrs, FRIT_F32, half);
    rig_second(rig, FRIT_F32, 2, half);
}

/* Windows of 3 along the last dim. */
static void put_pool(struct rig *rig, const int64_t *dims, uint32_t axis)
{
    static const frit_attrs_avg_pool attrs = {
        .struct_size = sizeof(attrs), .kernel = {3}, .stride = {3}};
    const int64_t in[3] = {axis ? 1 : dims[0], axis ? dims[0] : dims[1], axis ? dims[1] : 3};
    const int64_t out[3] = {in[0], in[1], in[2] / 3};
    uint32_t x = rig_input(rig, FRIT_F32, 3, in);

    rig_op(rig, FRIT_OP_avg_pool, 1, (struct rig_in[]){rig_value(x)}, &attrs, FRIT_F32, 3, out);
}

static void put_scatter(struct rig *rig, const int64_t *dims, uint32_t axis)
{
    static frit_attrs_scatter attrs = {.struct_size = sizeof(attrs)};
    uint32_t x = rig_input(rig, FRIT_F32, 2, dims), at = rig_input(rig, FRIT_I64, 2, dims);
    uint32_t values = rig_input(rig, FRIT_F32, 2, dims);

    attrs.axis = axis;
    rig_op(rig, FRIT_OP_scatter, 3,
           (struct rig_in[]){rig_value(x), rig_value(at), rig_value(values)}, &attrs, FRIT_F32, 2,
           dims);
}

/* The gradient of ctc_loss: as many steps or sequences. */
static void put_ctc(struct rig *rig, const int64_t *dims, uint32_t axis)
{
    static const frit_attrs_ctc attrs = {.struct_size = sizeof(attrs)};
    const int64_t of_x[3] = {dims[axis], dims[1 - axis], 5}, of_targets[2] = {of_x[1], 2};
    struct rig_in in[5];

    in[0] = rig_value(rig_input(rig, FRIT_F32, 3, of_x));
    in[1] = rig_value(rig_input(rig, FRIT_I32, 2, of_targets));
    in[2] = rig_value(rig_input(rig, FRIT_I64, 1, &of_x[1]));
    in[3] = rig_value(rig_input(rig, FRIT_I64, 1, &of_x[1]));
    in[4] = rig_value(rig_input(rig, FRIT_F32, 1, &of_x[1]));
    rig_op(rig, FRIT_OP_ctc_loss_backward, 5, in, &attrs, FRIT_F32, 3, of_x);
}

/* How many of the shapes were not refused. */
static uint32_t build(const struct schedule *schedule, put_fn put_ops, uint32_t target)
{
    uint32_t built = 0;

    for (uint32_t i = 0; i < 3 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        const int64_t n = sizes[i / 3];
        const int64_t shapes[3][2] = {{3, n}, {n, 3}, {1 << 20, n >> 20}};

        for (uint32_t axis = 0; axis < 2; axis++) {
            struct rig rig;

            rig_init(&rig);
            rig.index_width = 64;
            rig.target.rereads_are_cached = targets[target].rereads_are_cached;
            rig.target.lanes_interleaved = targets[target].lanes_interleaved;
            rig.target.i64 = targets[target].i64;
            put_ops(&rig, shapes[i % 3], axis);
            built += rig_build(&rig, schedule) == FRIT_OK;
            rig_fini(&rig);
        }
    }
    return built;
}

static void test_builds(void **state)
{
    static const struct {
        const char *name;
        const struct schedule *schedule;
        put_fn put;
        uint32_t built; /* of 36, the others are refused: too many groups, or places to sort.  Where
                           the target has integers of 64 bits; else none is */
        uint32_t more;  /* where rereads are cached: a group has more points */
    } cases[] = {
        {"softmax", &sched_row, put_soft, 26, 0},
        {"argmax", &sched_row, put_most, 26, 0},
        {"cumsum", &sched_scan, put_scan, 26, 0},
        {"map", &sched_map, put_map, 31, 0},
        {"matmul", &sched_contract, put_contract, 34, 0},
        {"sort", &sched_sort, put_sort, 0, 0},
        {"rfft", &sched_fft, put_fft, 20, 0},
        {"pool", &sched_pool, put_pool, 31, 1},
        {"scatter", &sched_scatter, put_scatter, 30, 0},
        {"ctc", &sched_ctc, put_ctc, 22, 0},
    };

    (void)state;
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++) {
            uint32_t built = build(cases[i].schedule, cases[i].put, t);
            uint32_t more = targets[t].rereads_are_cached ? cases[i].more : 0;
            uint32_t want = targets[t].i64 ? cases[i].built + more : 0;

            if (built != want)
                fail_msg("%s, target %u: %u, not %u", cases[i].name, t, built, want);
        }
}

/* ---- elements that lie far apart ---- */

enum { SIDE = 20 };

/* [2, SIDE] or more dims before them, with rows so far apart that `span` lies between the first
 * element and the last. */
static uint32_t put_apart(struct rig *rig, uint32_t dtype, uint32_t rank, int64_t span)
{
    const int64_t dims[4] = {rank == 2 ? 2 : 1, rank == 2 ? SIDE : 1, 2, SIDE};
    uint32_t x = rig_input(rig, dtype, rank, dims);

    rig->values[x].strides[rank - 2] = span - (SIDE - 1);
    return x;
}

static void put_product(struct rig *rig, int64_t span)
{
    const int64_t y[2] = {2, SIDE}, w[2] = {SIDE, SIDE};
    uint32_t x = put_apart(rig, FRIT_F16, 2, span), b = rig_input(rig, FRIT_F16, 2, w);

    rig_op(rig, FRIT_OP_matmul, 2, (struct rig_in[]){rig_value(x), rig_value(b)}, NULL, FRIT_F16, 2,
           y);
}

static void put_conv(struct rig *rig, int64_t span)
{
    static const frit_attrs_conv attrs = {.struct_size = sizeof(attrs)};
    const int64_t y[4] = {1, 3, 1, SIDE - 2}, w[4] = {3, 1, 2, 3};
    uint32_t x = put_apart(rig, FRIT_F32, 4, span), b = rig_input(rig, FRIT_F32, 4, w);

    rig_op(rig, FRIT_OP_conv, 3,
           (struct rig_in[]){rig_value(x), rig_value(b), {.value = RIG_ABSENT}}, &attrs, FRIT_F32,
           4, y);
}

static void put_attention(struct rig *rig, int64_t span)
{
    static const frit_attrs_attention attrs = {.struct_size = sizeof(attrs)};
    const int64_t q[4] = {1, 1, 7, SIDE};
    struct rig_in in[5] = {[3] = {.value = RIG_ABSENT}, [4] = {.value = RIG_ABSENT}};

    in[0] = rig_value(rig_input(rig, FRIT_F32, 4, q));
    in[1] = rig_value(put_apart(rig, FRIT_F32, 4, span));
    in[2] = rig_value(put_apart(rig, FRIT_F32, 4, span));
    rig_op(rig, FRIT_OP_attention, 5, in, &attrs, FRIT_F32, 4, q);
}

/* Offsets have 64 bits where 32 do not hold them, or nearly not; a target without such integers
 * refuses. */
static void test_width_of_offsets(void **state)
{
    static const struct {
        const char *name;
        const struct schedule *schedule;
        void (*put)(struct rig *rig, int64_t span);
    } cases[] = {{"matmul", &sched_contract, put_product},
                 {"conv", &sched_contract, put_conv},
                 {"attention", &sched_attention, put_attention}};
    static const struct {
        int64_t span;
        bool is_wide;
    } spans[] = {{INT32_MAX / 2, false},  {INT32_MAX - 70000, false}, {INT32_MAX - 1, true},
                 {INT32_MAX, true},       {INT32_MAX + 1ll, true},    {UINT32_MAX, true},
                 {UINT32_MAX + 2ll, true}};

    (void)state;
    for (uint32_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++)
        for (uint32_t k = 0; k < sizeof(spans) / sizeof(spans[0]); k++) {
            struct rig rig;
            frit_status status;

            rig_init(&rig);
            rig.target.i64 = i % 2 == 0;
            rig.target.stages_tiles = true;
            rig.index_width = spans[k].span > INT32_MAX ? 64 : 32; /* as the host says it */
            cases[i / 2].put(&rig, spans[k].span);
            status = rig_build(&rig, cases[i / 2].schedule);
            if ((status == FRIT_OK) != (rig.target.i64 || !spans[k].is_wide) ||
                (status == FRIT_OK && rig.module.wide != spans[k].is_wide))
                fail_msg("%s over %lld elements: status %u, %s offsets", cases[i / 2].name,
                         (long long)spans[k].span, status, rig.module.wide ? "wide" : "narrow");
            rig_fini(&rig);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_builds),
                                       cmocka_unit_test(test_width_of_offsets)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
