/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that keep or break each rule of the reader, with the exact outcome. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "conf/ini.h"

struct row {
    const char *text;
    const char *seen;  /* what the sink got, "SECTION.KEY=VALUE@LINE" or "[SECTION]@LINE" each */
    const char *error; /* NULL: none */
};

#define TEN    "0123456789"
#define FORTY  TEN TEN TEN TEN
#define NINETY FORTY FORTY TEN

static frit_status note(void *ctx, const struct ini_line *line, frit_err *err)
{
    struct str *seen = ctx;

    if (!line->key)
        str_addf(seen, "[%s]@%u ", line->section, line->number);
    else
        str_addf(seen, "%s.%s=%s@%u ", line->section, line->key, line->value, line->number);
    if (line->key && strcmp(line->key, "stop") == 0)
        return fail(err, FRIT_UNSUPPORTED, "stopped");
    return FRIT_OK;
}

/* A copy of the exact size, so that the address sanitizer sees reads past the end. */
static void check(const char *text, size_t length, const char *seen, const char *error)
{
    char *bytes = malloc(length ? length : 1);
    struct ini_text ini = {.name = "f", .bytes = bytes, .length = length};
    struct str got = {0};
    frit_err err = ERR_INIT;
    frit_status status;

    assert_non_null(bytes);
    memcpy(bytes, text, length);
    status = ini_read(&ini, note, &got, &err);
    assert_string_equal(err.text, error ? error : "");
    assert_int_equal(status, error ? FRIT_INVALID : FRIT_OK);
    assert_string_equal(got.text ? got.text : "", seen);
    str_fini(&got);
    free(bytes);
}

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(rows[i].text, strlen(rows[i].text), rows[i].seen, rows[i].error);
}

static void reads_good_texts(void **state)
{
    static const struct row rows[] = {
        {"", "", NULL},
        {"\xef\xbb\xbf", "", NULL},
        {"\xef\xbb\xbf[a]\nk=v", "[a]@1 a.k=v@2 ", NULL},
        {"\n\n; note\n  # note\n\t\n[a]\n", "[a]@6 ", NULL},
        {"[a]\r\nk = v\r\n", "[a]@1 a.k=v@2 ", NULL},
        {"[a] \t\nk\t=\tv w \n", "[a]@1 a.k=v w@2 ", NULL},
        {"[a]\nk = \n", "[a]@1 a.k=@2 ", NULL},
        {"[a]\nk = v;w#x\n", "[a]@1 a.k=v;w#x@2 ", NULL},
        {"[a]\nk = b:c=d\n", "[a]@1 a.k=b:c=d@2 ", NULL},
        {"[a]\nk = \"v\"\n", "[a]@1 a.k=\"v\"@2 ", NULL},
        {"[a]\n[b]\nk=1\n[a]\nl=2\n", "[a]@1 [b]@2 b.k=1@3 [a]@4 a.l=2@5 ", NULL},
        {"[a]\nk=\xc3\xa4\n", "[a]@1 a.k=\xc3\xa4@2 ", NULL},
        {"[" FORTY "01234567]\n", "[" FORTY "01234567]@1 ", NULL},
        {"[a]\n" FORTY "012345678=v\n", "[a]@1 a." FORTY "012345678=v@2 ", NULL},
        {"[a]\nk=" NINETY NINETY TEN "012345\n", "[a]@1 a.k=" NINETY NINETY TEN "012345@2 ", NULL},
        {"[a]\nk=" NINETY NINETY TEN "012345\r\n", "[a]@1 a.k=" NINETY NINETY TEN "012345@2 ",
         NULL},
    };

    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void refuses_bad_texts(void **state)
{
    static const struct row rows[] = {
        {"[a]\nk=" NINETY NINETY TEN "0123456\n", "[a]@1 ",
         "f:2: the line has 199 bytes; at most 198 are allowed"},
        {"[a]\n;" NINETY NINETY TEN TEN "\n", "[a]@1 ",
         "f:2: the line has 201 bytes; at most 198 are allowed"},
        {"[a]\nk=v ;w\n", "[a]@1 ",
         "f:2: ';' or '#' after a blank looks like a comment; put comments on lines of their own"},
        {"[a]\nk=v\t#w\n", "[a]@1 ",
         "f:2: ';' or '#' after a blank looks like a comment; put comments on lines of their own"},
        {"[a] ; note\n", "",
         "f:1: ';' or '#' after a blank looks like a comment; put comments on lines of their own"},
        {"[a]\nk=v\n  w\n", "[a]@1 a.k=v@2 ",
         "f:3: the line begins with a blank; values cannot span lines, and keys are not indented"},
        {"[a]\n\tk=v\n", "[a]@1 ",
         "f:2: the line begins with a blank; values cannot span lines, and keys are not indented"},
        {"[a\nk=v\n", "", "f:1: the section's ']' is missing"},
        {"[a]b\n", "", "f:1: there is text after the section's ']'; put it on a line of its own"},
        {"[]\n", "", "f:1: the section has no name"},
        {"[" FORTY "012345678]\n", "",
         "f:1: the section's name has 49 bytes; at most 48 are allowed"},
        {"[a]\n" FORTY "0123456789 = v\n", "[a]@1 ",
         "f:2: the key has 50 bytes; at most 49 are allowed"},
        {"k=v\n[a]\n", "", "f:1: a key stands before the first [section]"},
        {"[a]\nk\n", "[a]@1 ", "f:2: neither [section] nor key = value"},
        {"[a]\nk: v\n", "[a]@1 ", "f:2: neither [section] nor key = value"},
        {"[a]\nk:l = v\n", "[a]@1 ", "f:2: neither [section] nor key = value"},
        {"[a]\n= v\n", "[a]@1 ", "f:2: the key before '=' is missing"},
        {"[a]\nk=\x01\n", "[a]@1 ", "f:2: byte 3 is 0x01, which is not text; remove it"},
        {"[a]\nk=v\x7f\n", "[a]@1 ", "f:2: byte 4 is 0x7f, which is not text; remove it"},
        {"[a]\r\r\n", "", "f:1: byte 4 is 0x0d, which is not text; remove it"},
        {"[a]\n\fk=v\n", "[a]@1 ", "f:2: byte 1 is 0x0c, which is not text; remove it"},
        {"\xef\xbb\xbf\xef\xbb\xbf[a]\n", "", "f:1: neither [section] nor key = value"},
        {"[a]\nbad\nk=v\n", "[a]@1 ", "f:2: neither [section] nor key = value"},
    };

    (void)state;
    check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void refuses_nul(void **state)
{
    static const char value[] = "[a]\nk=v\0w\n";
    static const char comment[] = "; a\0b\n";
    static const char wide[] = "\xff\xfe[\0a\0]\0";

    (void)state;
    check(value, sizeof(value) - 1, "[a]@1 ", "f:2: byte 4 is 0x00, which is not text; remove it");
    check(comment, sizeof(comment) - 1, "", "f:1: byte 4 is 0x00, which is not text; remove it");
    check(wide, sizeof(wide) - 1, "", "f:1: byte 4 is 0x00, which is not text; remove it");
}

static void stops_where_the_sink_fails(void **state)
{
    static const char text[] = "[a]\nstop=1\nk=2\n[b]\n";
    struct ini_text ini = {.name = "f", .bytes = text, .length = sizeof(text) - 1};
    struct str got = {0};
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(ini_read(&ini, note, &got, &err), FRIT_UNSUPPORTED);
    assert_string_equal(err.text, "stopped");
    assert_string_equal(got.text, "[a]@1 a.stop=1@2 ");
    str_fini(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_good_texts),
        cmocka_unit_test(refuses_bad_texts),
        cmocka_unit_test(refuses_nul),
        cmocka_unit_test(stops_where_the_sink_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
