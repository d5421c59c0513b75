/* SPDX-License-Identifier: Apache-2.0 */
/* Failures are told to every call that asks for them, and those without room are not lost. */
#include "plugins/util/progress.h"

#include "unit.h"

#include <string.h>

static struct fault fault_of(uint64_t cookie)
{
    return (struct fault){.cookie = cookie, .err = {.status = FRIT_IO, .text = "broken"}};
}

/* What is told to a caller that knows of failures up to `known`. */
static frit_failure tell(struct progress *progress, uint64_t known, uint64_t value)
{
    frit_failure failure = {
        .struct_size = sizeof failure, .status = 77, .value = known, .cookie = 78};
    frit_err err = {.struct_size = sizeof err};

    progress_tell(progress, value, &failure, &err);
    if (failure.status) {
        assert_int_equal(failure.status, FRIT_IO);
        assert_string_equal(err.text, "broken");
    } else {
        assert_int_equal(failure.value, known);
        assert_int_equal(failure.cookie, 0);
        assert_string_equal(err.text, "");
    }
    return failure;
}

static void again_and_again(void **state)
{
    struct fault fault = fault_of(5);
    struct progress progress;

    (void)state;
    progress_init(&progress);
    assert_int_equal(progress_value(&progress), 0);
    assert_int_equal(tell(&progress, 0, 10).status, FRIT_OK);
    assert_int_equal(progress_advance(&progress, NULL), 1);
    assert_int_equal(progress_advance(&progress, &fault), 2);
    assert_int_equal(progress_advance(&progress, NULL), 3);
    fault = fault_of(6);
    assert_int_equal(progress_advance(&progress, &fault), 4);
    assert_int_equal(progress_value(&progress), 4);

    assert_int_equal(tell(&progress, 0, 1).status, FRIT_OK); /* it failed after that */
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(tell(&progress, i / 2, 4).value, 2);
        assert_int_equal(tell(&progress, 0, 2).cookie, 5);
    }
    assert_int_equal(tell(&progress, 2, 3).status, FRIT_OK);
    assert_int_equal(tell(&progress, 2, 4).value, 4);
    assert_int_equal(tell(&progress, 3, 4).cookie, 6);
    assert_int_equal(tell(&progress, 4, 4).status, FRIT_OK);
    progress_fini(&progress);
}

/* Every value at which something failed is told of, whatever was told in between. */
static void more_than_there_is_room_for(void **state)
{
    enum { COUNT = PROGRESS_FAULTS + 5 };
    struct progress progress;

    (void)state;
    progress_init(&progress);
    for (uint64_t i = 1; i <= COUNT; i++) {
        struct fault fault = fault_of(i);

        assert_int_equal(progress_advance(&progress, &fault), i);
    }
    for (uint64_t known = 0; known < COUNT; known++) {
        frit_failure failure = tell(&progress, known, COUNT);

        assert_int_equal(failure.value, known + 1);
        assert_int_equal(failure.cookie, known < PROGRESS_FAULTS ? known + 1 : PROGRESS_FAULTS);
    }
    assert_int_equal(tell(&progress, COUNT, COUNT).status, FRIT_OK);
    assert_int_equal(progress.n_faults, 0); /* room again */
    progress_fini(&progress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(again_and_again),
        cmocka_unit_test(more_than_there_is_room_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
