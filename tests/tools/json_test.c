/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer of the command: places of commas and lines, escapes, numbers. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

static char text[2048];

static void begin(struct json *json)
{
    FILE *out = fmemopen(text, sizeof(text), "w");

    assert_non_null(out);
    json_begin(json, out);
}

static void assert_text(struct json *json, const char *wanted)
{
    json_end(json);
    fclose(json->out);
    assert_string_equal(text, wanted);
}

static void nests(void **state)
{
    struct json json;

    (void)state;
    begin(&json);
    json_list(&json, "empty");
    json_close(&json);
    json_list(&json, "numbers");
    json_int(&json, NULL, -1);
    json_uint(&json, NULL, UINT64_MAX);
    json_close(&json);
    json_list(&json, "objects");
    json_object(&json, NULL);
    json_bool(&json, "yes", true);
    json_bool(&json, "no", false);
    json_close(&json);
    json_object(&json, NULL);
    json_close(&json);
    json_close(&json);
    assert_text(&json, "{\n"
                       "  \"empty\": [],\n"
                       "  \"numbers\": [-1, 18446744073709551615],\n"
                       "  \"objects\": [\n"
                       "    {\n"
                       "      \"yes\": true,\n"
                       "      \"no\": false\n"
                       "    },\n"
                       "    {}\n"
                       "  ]\n"
                       "}\n");
}

static void escapes(void **state)
{
    struct json json;

    (void)state;
    begin(&json);
    json_text(&json, "a\"b", "back\\slash \"quoted\" \n\t\x01\x7f");
    json_text(&json, "utf", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\x9e");
    json_text(&json, "none", NULL);
    assert_text(&json,
                "{\n"
                "  \"a\\\"b\": \"back\\\\slash \\\"quoted\\\" \\u000a\\u0009\\u0001\\u007f\",\n"
                "  \"utf\": \"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\x9e\",\n"
                "  \"none\": null\n"
                "}\n");
}

/* Each byte of what is not UTF-8 becomes U+FFFD: a lone one, one cut short, overlong forms, a
 * surrogate, one beyond U+10FFFF. */
static void replaces_what_is_not_utf8(void **state)
{
    static const struct {
        const char *bytes;
        int replaced;
    } cases[] = {
        {"\x80", 1},     {"\xff", 1},         {"\xc3", 1},         {"\xe2\x82", 2},
        {"\xc0\xaf", 2}, {"\xe0\x80\x80", 3}, {"\xed\xa0\x80", 3}, {"\xf4\x90\x80\x80", 4}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char wanted[128] = "{\n  \"\": \"";
        struct json json;

        begin(&json);
        json_text(&json, "", cases[i].bytes);
        for (int k = 0; k < cases[i].replaced; k++)
            strcat(wanted, "\xef\xbf\xbd");
        assert_text(&json, strcat(wanted, "\"\n}\n"));
    }
}

static void numbers_come_back(void **state)
{
    static const double values[] = {0.1, -1e-300, 1e300, 12345678.9, 5e-324};
    struct json json;

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        begin(&json);
        json_real(&json, "x", values[i]);
        json_end(&json);
        fclose(json.out);
        assert_true(strtod(strchr(text, ':') + 1, NULL) == values[i]);
    }
    begin(&json);
    json_real(&json, "nan", (double)NAN);
    json_real(&json, "inf", -(double)INFINITY);
    assert_text(&json, "{\n  \"nan\": null,\n  \"inf\": null\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nests),
        cmocka_unit_test(escapes),
        cmocka_unit_test(replaces_what_is_not_utf8),
        cmocka_unit_test(numbers_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
