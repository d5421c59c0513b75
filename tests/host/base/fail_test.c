/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fail.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

static void writes_the_slot(void **state)
{
    frit_err err = {.native_code = 7, .text = "before"};

    (void)state;
    assert_int_equal(fail(&err, FRIT_IO, "%s %d", "a", 5), FRIT_IO);
    assert_int_equal(err.struct_size, sizeof(err));
    assert_int_equal(err.status, FRIT_IO);
    assert_int_equal(err.native_code, 0);
    assert_string_equal(err.text, "a 5");
    assert_int_equal(fail_memory(&err, 12), FRIT_NO_HOST_MEMORY);
    assert_string_equal(err.text, "no host memory for 12 bytes");
}

static void puts_text_around(void **state)
{
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(fail(&err, FRIT_IO, "middle"), FRIT_IO);
    assert_int_equal(fail_context(&err, "row %d", 3), FRIT_IO);
    fail_append(&err, "; %s", "end");
    assert_string_equal(err.text, "row 3: middle; end");
}

static void cuts_what_is_too_long(void **state)
{
    frit_err err = ERR_INIT;
    char long_text[1000];

    (void)state;
    memset(long_text, 'x', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    assert_int_equal(fail(&err, FRIT_INVALID, "%s", long_text), FRIT_INVALID);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    fail_append(&err, "more");
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_int_equal(fail_context(&err, "in front"), FRIT_INVALID);
    assert_int_equal(strncmp(err.text, "in front: xxx", 13), 0);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_int_equal(fail_context(&err, "%s", long_text), FRIT_INVALID);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void needs_no_slot(void **state)
{
    (void)state;
    assert_int_equal(fail(NULL, FRIT_BUSY, "a"), FRIT_BUSY);
    assert_int_equal(fail_memory(NULL, 1), FRIT_NO_HOST_MEMORY);
    fail_append(NULL, "a");
}

static void names_a_slot_that_gave_no_reason(void **state)
{
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(fail_from(&err, FRIT_OK, "submit"), FRIT_OK);
    assert_int_equal(err.status, FRIT_OK);
    assert_int_equal(fail_from(&err, FRIT_BUSY, "submit"), FRIT_BUSY);
    assert_int_equal(err.status, FRIT_BUSY);
    assert_string_equal(err.text, "submit failed and gave no reason (busy)");
    fail(&err, FRIT_IO, "a reason");
    assert_int_equal(fail_from(&err, FRIT_IO, "submit"), FRIT_IO);
    assert_string_equal(err.text, "a reason");
    assert_int_equal(fail_from(NULL, FRIT_IO, "submit"), FRIT_IO);
}

static void takes_what_is_no_status_for_a_defect(void **state)
{
    static const int32_t wrong[] = {1, 7, INT32_MAX, -15, -1000, INT32_MIN};
    char expected[80];

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        frit_err err = ERR_INIT;

        snprintf(expected, sizeof(expected), "alloc returned %d, which is not a status", wrong[i]);
        assert_int_equal(fail_from(&err, wrong[i], "alloc"), FRIT_INTERNAL);
        assert_int_equal(err.status, FRIT_INTERNAL);
        assert_string_equal(err.text, expected);
        assert_int_equal(fail_from(NULL, wrong[i], "alloc"), FRIT_INTERNAL);
    }
}

static void cleans_the_text(void **state)
{
    frit_err err = {.status = FRIT_IO};

    (void)state;
    memset(err.text, 'x', sizeof(err.text));
    memcpy(err.text, "\x1b[2J\xff", 5);
    assert_int_equal(fail_from(&err, FRIT_IO, "open"), FRIT_IO);
    assert_memory_equal(err.text, " [2J?xxx", 8);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    snprintf(err.text, sizeof(err.text), "smoke");
    assert_int_equal(fail_from(&err, 3, "open"), FRIT_INTERNAL);
    assert_string_equal(err.text, "open returned 3, which is not a status: smoke");
}

static void every_status_has_a_name(void **state)
{
    (void)state;
    for (frit_status status = FRIT_BUSY; status <= FRIT_OK; status++)
        assert_true(status_name(status)[0] != '\0');
    assert_string_equal(status_name(FRIT_OK), "ok");
    assert_string_equal(status_name(FRIT_NO_DEVICE_MEMORY), "no-device-memory");
    assert_string_equal(status_name(-1000), "internal");
    assert_string_equal(status_name(5), "ok");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_the_slot),
        cmocka_unit_test(puts_text_around),
        cmocka_unit_test(cuts_what_is_too_long),
        cmocka_unit_test(needs_no_slot),
        cmocka_unit_test(takes_what_is_no_status_for_a_defect),
        cmocka_unit_test(cleans_the_text),
        cmocka_unit_test(every_status_has_a_name),
        cmocka_unit_test(names_a_slot_that_gave_no_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
