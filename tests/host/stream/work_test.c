/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of several plans: every one of them finds its records again. */
#include "stream/driver.h"

#include <frit/frit.h>

#include "stream/stream.h"

static const float six[] = {1, 2, 3, 4, 5, 6};

typedef frit_tensor *(*map_fn)(frit_tensor *x);

static const map_fn maps[] = {frit_neg, frit_abs, frit_exp, frit_sin, frit_cos};
enum { MAPS = sizeof(maps) / sizeof(maps[0]) };

/* Records two ops and says whether both came again. */
static bool comes_again(frit_device *device, frit_tensor *x, map_fn map)
{
    const struct op_record *const *records;
    frit_scope scope = frit_scope_begin(device);
    bool again;

    frit_sub(map(x), x);
    records = (const struct op_record *const *)seat_peek(device)->stream->work->segment.records;
    assert_int_equal(seat_peek(device)->stream->work->segment.n_records, 2);
    again = records[0]->again && records[1]->again;
    frit_scope_end(scope);
    return again;
}

/* `n` plans in turn: from the third round on all of them are met. */
static void loop(int n)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = frit_from_host(device, FRIT_F32, FRIT_SHAPE(6), six, sizeof(six));

    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < n; i++) {
            bool again = comes_again(device, x, maps[i]);

            if (round >= 3)
                assert_true(again);
        }
    }
    frit_release(x);
    device_destroy(device);
}

static void test_loops_of_plans(void **state)
{
    (void)state;
    for (int n = 1; n <= MAPS; n++)
        loop(n);
}

/* More plans than are kept: nothing is met, nothing breaks. */
static void test_more_than_are_kept(void **state)
{
    struct works works;
    struct work *work = works_init(&works);

    (void)state;
    assert_non_null(work);
    for (int i = 0; i < 3 * WORKS; i++) {
        struct work *next = works_next(&works, work, true);

        assert_ptr_not_equal(next, work);
        assert_int_equal(next->segment.n_known, 0);
        work->segment.n_known = 1;
        work->away = false;
        work = next;
    }
    assert_int_equal(works.count, WORKS);
    for (uint32_t i = 0; i < works.count; i++)
        works.all[i]->segment.n_known = 0;
    works_fini(&works);
}

/* The one that came after a work is taken next; a work that came after itself, when it has run. */
static void test_what_came_after(void **state)
{
    struct works works;
    struct work *a = works_init(&works), *b = works_next(&works, a, true);

    (void)state;
    a->away = false;
    assert_ptr_equal(works_after(a, b), b);
    assert_ptr_not_equal(works_next(&works, b, true), b);
    b->away = false;
    assert_ptr_equal(a->then, b);
    assert_ptr_equal(works_next(&works, a, false), b);
    a->away = false;
    assert_ptr_equal(works_next(&works, a, false), b);
    assert_ptr_equal(a->then, a);
    a->away = false;
    assert_ptr_equal(works_after(a, b), a);
    works_fini(&works);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops_of_plans),
        cmocka_unit_test(test_more_than_are_kept),
        cmocka_unit_test(test_what_came_after),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
