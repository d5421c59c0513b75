/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "unit.h"

#include <string.h>

static void expect(const char *from, size_t length, const char *expected)
{
    char out[64];

    text_clean(from, length, out, sizeof(out));
    assert_string_equal(out, expected);
}

#define EXPECT(from, expected) expect(from, sizeof(from) - 1, expected)

static void good_text_stays(void **state)
{
    (void)state;
    EXPECT("", "");
    EXPECT("plain ~", "plain ~");
    EXPECT("Gr\xc3\xb6\xc3\x9f"
           "e \xe2\x82\xac \xf0\x9f\x8d\x9f \xf4\x8f\xbf\xbf",
           "Gr\xc3\xb6\xc3\x9f"
           "e \xe2\x82\xac \xf0\x9f\x8d\x9f \xf4\x8f\xbf\xbf");
}

static void controls_become_blanks(void **state)
{
    (void)state;
    EXPECT("a\x1b[31m\n\t\x7f\0b", "a [31m    b");
    EXPECT("a\xc2\x9b"
           "31m",
           "a 31m");                                       /* C1: another escape */
    EXPECT("a\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8\xd8\x9c" /* directions, a line */
           "b",
           "a    b");
    EXPECT("\xc2\xa0", "\xc2\xa0"); /* the first after C1 */
}

static void what_is_no_utf8_becomes_question_marks(void **state)
{
    (void)state;
    EXPECT("\x80 \xff \xc3", "? ? ?");
    EXPECT("\xc0\xaf", "??");           /* overlong */
    EXPECT("\xe0\x80\xaf", "???");      /* overlong */
    EXPECT("\xed\xa0\x80", "???");      /* a surrogate */
    EXPECT("\xf4\x90\x80\x80", "????"); /* beyond the last */
    EXPECT("\xf5\x80\x80\x80", "????");
    EXPECT("\xe2\x82z", "??z"); /* cut short */
}

static void it_is_cut_between_characters(void **state)
{
    char out[8];

    (void)state;
    text_clean("abcdef\xc3\xb6", 8, out, sizeof(out));
    assert_string_equal(out, "abcdef");
    text_clean("abcde\xc3\xb6g", 8, out, sizeof(out));
    assert_string_equal(out, "abcde\xc3\xb6");
    text_clean("abc", 3, out, 1);
    assert_string_equal(out, "");
}

static void it_is_done_in_place(void **state)
{
    char text[] = "\xe2\x80\xae\xff\xc3\xb6";

    (void)state;
    text_clean(text, strlen(text), text, sizeof(text));
    assert_string_equal(text, " ?\xc3\xb6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_text_stays),
        cmocka_unit_test(controls_become_blanks),
        cmocka_unit_test(what_is_no_utf8_becomes_question_marks),
        cmocka_unit_test(it_is_cut_between_characters),
        cmocka_unit_test(it_is_done_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
