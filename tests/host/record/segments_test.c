/* SPDX-License-Identifier: Apache-2.0 */
/* Loops of several plans: the ops of each are predicted. */
#include "run/driver.h"

#include <frit/frit.h>

#include "record/binding.h"
#include "run/drain.h"

static const float six[] = {1, 2, 3, 4, 5, 6};

typedef frit_tensor *(*map_fn)(frit_tensor *x);

static const map_fn maps[] = {frit_neg, frit_abs, frit_exp, frit_sin, frit_cos};
enum { MAPS = sizeof(maps) / sizeof(maps[0]) };

/* Records two ops and returns whether both were predicted. */
static bool is_predicted(frit_device *device, frit_tensor *x, map_fn map)
{
    const struct recorded_op *const *records;
    frit_scope scope = frit_scope_begin(device);
    bool confirmed;

    frit_sub(map(x), x);
    records = (const struct recorded_op *const *)binding_peek(device)->stream->segment->ops;
    assert_int_equal(binding_peek(device)->stream->segment->n_ops, 2);
    confirmed = records[0]->confirmed && records[1]->confirmed;
    frit_scope_end(scope);
    return confirmed;
}

/* `n` plans in turn: from the third round on all of them are predicted. */
static void loop(int n)
{
    struct driver driver = {0};
    frit_device *device = driver_device(&driver, 100);
    frit_tensor *x = frit_from_host(device, FRIT_F32, FRIT_SHAPE(6), six, sizeof(six));

    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < n; i++) {
            bool predicted = is_predicted(device, x, maps[i]);

            if (round >= 3)
                assert_true(predicted);
        }
    }
    frit_release(x);
    device_close(device);
}

static void test_loops_of_plans(void **state)
{
    (void)state;
    for (int n = 1; n <= MAPS; n++)
        loop(n);
}

/* More segments than are kept: nothing is predicted, nothing breaks. */
static void test_more_than_are_kept(void **state)
{
    struct segments segments;
    struct segment *segment = segments_init(&segments);

    (void)state;
    assert_non_null(segment);
    for (int i = 0; i < 3 * SEGMENTS_MAX; i++) {
        struct segment *next = segments_next(&segments, segment, true);

        assert_ptr_not_equal(next, segment);
        assert_int_equal(next->n_predicted, 0);
        segment->n_predicted = 1;
        segment->running = false;
        segment = next;
    }
    assert_int_equal(segments.count, SEGMENTS_MAX);
    for (uint32_t i = 0; i < segments.count; i++)
        segments.all[i]->n_predicted = 0;
    segments_fini(&segments);
}

/* The successor of a segment is recorded into next; one that succeeds itself, when it has run. */
static void test_successors(void **state)
{
    struct segments segments;
    struct segment *a = segments_init(&segments), *b = segments_next(&segments, a, true);

    (void)state;
    a->running = false;
    assert_ptr_equal(segments_after(a, b), b);
    assert_ptr_not_equal(segments_next(&segments, b, true), b);
    b->running = false;
    assert_ptr_equal(a->successor, b);
    assert_ptr_equal(segments_next(&segments, a, false), b);
    a->running = false;
    assert_ptr_equal(segments_next(&segments, a, false), b);
    assert_ptr_equal(a->successor, a);
    a->running = false;
    assert_ptr_equal(segments_after(a, b), a);
    segments_fini(&segments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops_of_plans),
        cmocka_unit_test(test_more_than_are_kept),
        cmocka_unit_test(test_successors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
