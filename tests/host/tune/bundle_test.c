/* SPDX-License-Identifier: Apache-2.0 */
/* What was put into a bundle comes out of it; what is damaged or of another kind is refused before
 * anything comes out. */
#include "unit.h"

#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "host/tune/record_rig.h"
#include "tune/bundle.h"

static const char kind[] = "abi 2\nplugin p 1\nfingerprint sm_90\n";

struct contents {
    struct str records, artefacts;
    uint32_t n;
    uint32_t limit; /* after so many it fails; 0: never */
};

static frit_status count(struct contents *contents, frit_err *err)
{
    return ++contents->n == contents->limit ? fail(err, FRIT_IO, "enough") : FRIT_OK;
}

static frit_status take_record(void *ctx, const struct tune_record *record, frit_err *err)
{
    struct contents *contents = ctx;

    tune_record_print(record, &contents->records);
    return count(contents, err);
}

static frit_status take_artefact(void *ctx, const void *bytes, size_t n_bytes, frit_err *err)
{
    struct contents *contents = ctx;

    str_add(&contents->artefacts, bytes, n_bytes);
    str_add(&contents->artefacts, ";", 1);
    return count(contents, err);
}

static void contents_fini(struct contents *contents)
{
    str_fini(&contents->records);
    str_fini(&contents->artefacts);
}

static frit_status read_bundle(const char *bytes, size_t length, const char *of,
                               struct contents *contents, frit_err *err)
{
    const struct bundle_visitor visitor = {take_record, take_artefact, contents};

    return bundle_read(bytes, length, of, &visitor, err);
}

/* Three records, an artefact of any bytes and an empty one. */
static struct str make(struct str *records)
{
    struct str text = {0};

    bundle_begin(kind, &text);
    for (uint64_t seed = 1; seed < 4; seed++) {
        struct tune_record *record = record_rig_random(seed);

        tune_record_print(record, &text);
        tune_record_print(record, records);
        tune_record_destroy(record);
    }
    bundle_add_artefact("a\0\nb", 4, &text);
    bundle_add_artefact("", 0, &text);
    bundle_end(&text);
    assert_false(text.failed);
    return text;
}

static void test_round_trip(void **state)
{
    struct str records = {0}, text = make(&records);
    struct contents contents = {.limit = 0};

    (void)state;
    assert_int_equal(read_bundle(text.text, text.length, kind, &contents, NULL), FRIT_OK);
    assert_string_equal(contents.records.text, records.text);
    assert_int_equal(contents.artefacts.length, 6);
    assert_memory_equal(contents.artefacts.text, "a\0\nb;;", 6);
    contents_fini(&contents);
    contents = (struct contents){.limit = 4};
    assert_int_equal(read_bundle(text.text, text.length, kind, &contents, NULL), FRIT_IO);
    assert_int_equal(contents.n, 4);
    contents_fini(&contents);
    str_fini(&records);
    str_fini(&text);
}

static void test_damaged(void **state)
{
    struct str records = {0}, text = make(&records), longer = {0};
    struct contents contents = {.limit = 0};
    frit_err err = ERR_INIT;

    (void)state;
    for (size_t length = 0; length < text.length; length++)
        assert_int_not_equal(read_bundle(text.text, length, kind, &contents, NULL), FRIT_OK);
    str_add(&longer, text.text, text.length);
    str_add(&longer, "\n", 1);
    assert_int_equal(read_bundle(longer.text, longer.length, kind, &contents, &err), FRIT_INVALID);
    assert_non_null(strstr(err.text, "the bundle is damaged"));
    assert_int_equal(read_bundle("decision 1\n", 11, kind, &contents, &err), FRIT_INVALID);
    assert_non_null(strstr(err.text, "no bundle"));
    longer.length = 0;
    str_addf(&longer, "frit bundle 1\n%s\nartefact 99999999999999999999999\nx\nend of bundle\n",
             kind);
    assert_int_equal(read_bundle(longer.text, longer.length, kind, &contents, &err), FRIT_INVALID);
    assert_int_equal(contents.n, 0);
    contents_fini(&contents);
    str_fini(&records);
    str_fini(&text);
    str_fini(&longer);
}

static void test_other_kinds(void **state)
{
    static const struct {
        const char *kind, *expected;
    } cases[] = {
        {"abi 2\nplugin p 1\nfingerprint sm_80\n",
         "has \"fingerprint sm_90\", this one has \"fingerprint sm_80\""},
        {"abi 2\nplugin p 1\n", "has \"fingerprint sm_90\", this one has \"\""},
        {"abi 2\nplugin p 1\nfingerprint sm_90\nthreads 2\n",
         "has \"\", this one has \"threads 2\""},
        {"", "has \"abi 2\", this one has \"\""},
    };
    struct str records = {0}, text = make(&records);
    struct contents contents = {.limit = 0};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        frit_err err = ERR_INIT;

        assert_int_equal(read_bundle(text.text, text.length, cases[i].kind, &contents, &err),
                         FRIT_INCOMPATIBLE);
        if (!strstr(err.text, cases[i].expected))
            fail_msg("\"%s\" without \"%s\"", err.text, cases[i].expected);
    }
    assert_int_equal(contents.n, 0);
    str_fini(&records);
    str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_other_kinds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
