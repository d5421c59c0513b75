/* SPDX-License-Identifier: Apache-2.0 */
/* A limit is never above what the device takes: simulated devices, measured at a few steps. */
#include "unit.h"

#include "tune/limit.h"

/* The time of a launch on a device. */
struct simulated {
    double overhead_ns;
    double rate;        /* work per ns */
    double cache, fast; /* up to so much work at another rate; 0: no cache */
    double half;        /* work at which half of the rate is reached; 0: all of it always */
};

static uint64_t ns_of(const struct simulated *device, uint64_t work)
{
    const double w = (double)work;
    double rate = w <= device->cache ? device->fast : device->rate;

    if (device->half > 0)
        rate *= w / (w + device->half);
    return (uint64_t)(device->overhead_ns + w / rate);
}

static struct tune_ladder measure(const struct simulated *device, uint64_t first, uint64_t factor)
{
    struct tune_ladder ladder = {0};

    for (uint64_t work = first; !tune_ladder_is_whole(&ladder); work *= factor)
        tune_ladder_add(&ladder, work, ns_of(device, work));
    return ladder;
}

static const struct simulated devices[] = {
    {.overhead_ns = 500, .rate = 10},
    {.overhead_ns = 500, .rate = 10, .cache = 32e6, .fast = 60},
    {.overhead_ns = 500, .rate = 10, .cache = 320e6, .fast = 30},
    {.overhead_ns = 4000, .rate = 3000, .cache = 50e6, .fast = 6000},
    {.overhead_ns = 4000, .rate = 40000, .half = 2e9},
    {.overhead_ns = 10000, .rate = 100, .half = 1e7},
};

static void no_launch_beats_its_limit(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof(devices) / sizeof(*devices); d++) {
        const bool is_product = devices[d].half > 0;
        const struct tune_ladder ladder =
            is_product ? measure(&devices[d], 1 << 22, 8) : measure(&devices[d], 1 << 20, 4);

        for (uint64_t work = 1000; work < UINT64_C(1) << 40; work += work / 7) {
            const uint64_t ns = ns_of(&devices[d], work), limit = tune_ladder_ns(&ladder, work);

            if ((double)limit > (double)ns * 1.05 + 1)
                fail_msg("device %d: %lld takes %lld, its limit is %lld", (int)d, (long long)work,
                         (long long)ns, (long long)limit);
        }
    }
}

static void limits_are_near_where_the_rate_is_even(void **state)
{
    const struct tune_ladder plain = measure(&devices[0], 1 << 20, 4),
                             cached = measure(&devices[1], 1 << 20, 4);

    (void)state;
    for (uint64_t work = 4 << 20; work < UINT64_C(1) << 34; work *= 3)
        assert_true((double)tune_ladder_ns(&plain, work) >=
                    0.99 * (double)ns_of(&devices[0], work));
    for (uint64_t work = 64 << 20; work < UINT64_C(1) << 34; work *= 3)
        assert_true((double)tune_ladder_ns(&cached, work) >=
                    0.99 * (double)ns_of(&devices[1], work));
}

static void what_was_not_measured_is_unknown(void **state)
{
    struct tune_ladder ladder = {0};

    (void)state;
    assert_int_equal(tune_ladder_ns(&ladder, 1000), 0);
    tune_ladder_add(&ladder, 1000, 100);
    assert_int_equal(tune_ladder_ns(&ladder, 1500), 0);
    tune_ladder_add(&ladder, 2000, 150);
    assert_int_equal(tune_ladder_ns(&ladder, 1999), 0);
    assert_int_equal(tune_ladder_ns(&ladder, 2000), 0); /* a larger one may be faster */
    assert_false(tune_ladder_is_whole(&ladder));
    tune_ladder_add(&ladder, 4000, 350);
    assert_int_equal(tune_ladder_ns(&ladder, 2000), 150);
    assert_int_equal(tune_ladder_ns(&ladder, 3000), 200); /* less steep before */
    tune_ladder_add(&ladder, 8000, 700);
    assert_true(tune_ladder_is_whole(&ladder)); /* the rate does not grow */
    assert_int_equal(tune_ladder_ns(&ladder, 16000), 1400);
}

static void what_failed_is_unknown(void **state)
{
    struct tune_ladder ladder = {0};

    (void)state;
    tune_ladder_add(&ladder, 1000, 100);
    tune_ladder_add(&ladder, 2000, 150);
    tune_ladder_add(&ladder, 4000, 0);
    assert_true(tune_ladder_is_whole(&ladder));
    assert_int_equal(tune_ladder_ns(&ladder, 2500), 0);
    assert_int_equal(tune_ladder_ns(&ladder, 5000), 0);
}

static void ten_percent_above_is_enough(void **state)
{
    (void)state;
    assert_int_equal(tune_limit_enough(0, 0), 0);
    assert_int_equal(tune_limit_enough(1000, 0), 1100);
    assert_int_equal(tune_limit_enough(1000, 1050), 1155);
    assert_int_equal(tune_limit_least(1000, 900), 950);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_launch_beats_its_limit),
        cmocka_unit_test(limits_are_near_where_the_rate_is_even),
        cmocka_unit_test(what_was_not_measured_is_unknown),
        cmocka_unit_test(what_failed_is_unknown),
        cmocka_unit_test(ten_percent_above_is_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
