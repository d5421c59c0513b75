/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "unit.h"

#include <string.h>

#include "failing_alloc.h"

static void grows(void **state)
{
    struct str str = {0};

    (void)state;
    str_add(&str, "", 0);
    assert_string_equal(str.text, "");
    for (int i = 0; i < 1000; i++) {
        str_add(&str, "abcdef", 3);
        str_addf(&str, "%03d", i);
    }
    assert_false(str.failed);
    assert_int_equal(str.length, 6000);
    assert_int_equal(strlen(str.text), 6000);
    assert_string_equal(str.text + 5994, "abc999");
    str_fini(&str);
    assert_null(str.text);
    assert_int_equal(str.length, 0);
}

static void a_failed_append_leaves_the_text(void **state)
{
    struct str str = {0};

    (void)state;
    str_add(&str, "short", 5);
    failing_alloc_arm(0);
    str_addf(&str, "%0200d", 1);
    assert_true(failing_alloc_disarm());
    assert_true(str.failed);
    assert_string_equal(str.text, "short");
    str_add(&str, "x", 1); /* and stays, so that nothing is missing in the middle */
    assert_string_equal(str.text, "short");
    str_fini(&str);
    assert_false(str.failed);
}

static void borrows(void **state)
{
    (void)state;
    assert_int_equal(str_of(NULL).len, 0);
    assert_int_equal(str_of("abc").len, 3);
    assert_true(str_is(str_of("abc"), "abc"));
    assert_false(str_is(str_of("abc"), "ab"));
    assert_false(str_is(str_of("ab"), "abc"));
    assert_false(str_is((frit_str){"abc", 2}, "abc"));
    assert_true(str_is((frit_str){"abc", 2}, "ab"));
    assert_true(str_is((frit_str){NULL, 0}, ""));
}

static void finds_the_word_that_was_meant(void **state)
{
    static const char *const words[] = {"device", "decompose", "log", "seed", "max_ops"};
    static const char long_word[] = "a_word_of_more_than_forty-seven_characters_is_far_from_all";
    static const char *const long_words[] = {long_word};
    size_t count = sizeof(words) / sizeof(words[0]);

    (void)state;
    assert_string_equal(str_nearest("device", words, count), "device");
    assert_string_equal(str_nearest("devise", words, count), "device");
    assert_string_equal(str_nearest("dvice", words, count), "device");
    assert_string_equal(str_nearest("devicee", words, count), "device");
    assert_string_equal(str_nearest("lgo", words, count), "log");
    assert_string_equal(str_nearest("max-ops", words, count), "max_ops");
    assert_null(str_nearest("precision", words, count));
    assert_null(str_nearest("", words, count));
    assert_null(str_nearest("device", words, 0));
    assert_null(str_nearest(long_word, long_words, 1));
    assert_null(str_nearest(long_word, words, count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows),
        cmocka_unit_test(a_failed_append_leaves_the_text),
        cmocka_unit_test(borrows),
        cmocka_unit_test(finds_the_word_that_was_meant),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
