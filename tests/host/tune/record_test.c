/* SPDX-License-Identifier: Apache-2.0 */
/* Records keep what they are given within their limits; their text form is exact, and text that
 * was changed is refused with its line. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include <frit/program.h>

#include "base/fail.h"
#include "base/str.h"
#include "failing_alloc.h"
#include "host/tune/record_rig.h"

enum { RECORDS = 300 };

static void expect_same(const struct tune_record *a, const struct tune_record *b)
{
    assert_int_equal(a->key_bytes, b->key_bytes);
    assert_memory_equal(a->key, b->key, a->key_bytes);
    assert_string_equal(a->what, b->what);
    assert_int_equal(a->clock, b->clock);
    assert_int_equal(a->reason, b->reason);
    assert_int_equal(a->n_splits, b->n_splits);
    for (uint32_t i = 0; i < a->n_splits; i++) {
        assert_int_equal(a->splits[i], b->splits[i]);
        assert_true(tune_record_is_split(b, a->splits[i]));
    }
    assert_false(tune_record_is_split(b, UINT64_C(0x123456789)));
    assert_int_equal(a->n_candidates, b->n_candidates);
    for (uint32_t i = 0; i < a->n_candidates; i++) {
        const struct tune_candidate *x = &a->candidates[i], *y = &b->candidates[i];

        assert_string_equal(x->identity, y->identity);
        assert_int_equal(x->version, y->version);
        assert_int_equal(x->numeric_class, y->numeric_class);
        assert_int_equal(x->state, y->state);
        assert_string_equal(x->evidence, y->evidence);
        assert_int_equal(x->n_samples, y->n_samples);
        assert_memory_equal(x->samples, y->samples, x->n_samples * sizeof(*x->samples));
    }
}

static void test_words(void **state)
{
    struct tune_record *record = record_rig_small(0x0102, 1200);
    struct str text = {0};

    (void)state;
    tune_record_print(record, &text);
    assert_string_equal(text.text, "decision 1\n"
                                   "key 0201000000000000\n"
                                   "what matmul 128x128 f32\n"
                                   "clock device\n"
                                   "reason measured\n"
                                   "candidate right exact 3 tile 64\n"
                                   "samples 1200\n"
                                   "candidate right exact 0 plain\n"
                                   "samples 2400 2401\n"
                                   "candidate wrong reduced 0 odd\n"
                                   "evidence output 0 differs by 2.0 at 17\n"
                                   "end\n");
    assert_string_equal(tune_record_find(record, str_of("odd"), 0)->identity, "odd");
    assert_null(tune_record_find(record, str_of("odd"), 1));
    assert_true(tune_state_is_quarantined(TUNE_WRONG));
    assert_false(tune_state_is_quarantined(TUNE_FAILED));
    str_fini(&text);
    tune_record_destroy(record);
}

/* Random records one after another in a text come back, and are printed as they were. */
static void test_round_trip(void **state)
{
    struct str text = {0}, again = {0};
    struct tune_text left;

    (void)state;
    for (uint64_t seed = 0; seed < RECORDS; seed++) {
        struct tune_record *record = record_rig_random(seed);

        tune_record_print(record, &text);
        tune_record_destroy(record);
    }
    assert_false(text.failed);
    left = (struct tune_text){text.text, text.length, 0};
    for (uint64_t seed = 0; seed < RECORDS; seed++) {
        struct tune_record *record = record_rig_random(seed), *parsed;

        assert_int_equal(tune_record_parse(&left, &parsed, NULL), FRIT_OK);
        expect_same(record, parsed);
        tune_record_print(parsed, &again);
        tune_record_destroy(record);
        tune_record_destroy(parsed);
    }
    assert_int_equal(left.length, 0);
    assert_string_equal(text.text, again.text);
    str_fini(&text);
    str_fini(&again);
}

static frit_status parse(const char *bytes, size_t length, frit_err *err)
{
    struct tune_text text = {bytes, length, 0};
    struct tune_record *record;
    struct str again = {0};
    frit_status status = tune_record_parse(&text, &record, err);

    if (status) {
        assert_null(record);
        assert_ptr_equal(text.at, bytes);
        return status;
    }
    tune_record_print(record, &again);
    assert_int_equal(again.length, (size_t)(text.at - bytes));
    assert_memory_equal(again.text, bytes, again.length);
    str_fini(&again);
    tune_record_destroy(record);
    return FRIT_OK;
}

/* Whatever is cut off or changed: refused, or read as exactly what is there. */
static void test_changed_text(void **state)
{
    struct tune_record *record = record_rig_small(7, 1000);
    struct str text = {0};

    (void)state;
    tune_record_print(record, &text);
    for (size_t length = 0; length < text.length; length++)
        assert_int_equal(parse(text.text, length, NULL), FRIT_INVALID);
    for (size_t i = 0; i < text.length; i++) {
        static const char bytes[] = {'\0', '\n', ' ', '0', 'a', '\x7f', '\xff'};
        const char before = text.text[i];

        for (size_t j = 0; j < sizeof(bytes); j++) {
            text.text[i] = bytes[j];
            parse(text.text, text.length, NULL);
        }
        text.text[i] = before;
    }
    assert_int_equal(parse(text.text, text.length, NULL), FRIT_OK);
    str_fini(&text);
    tune_record_destroy(record);
}

static void test_reasons(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "line 1: expected \"decision 1\""},
        {"decision 2\n", "line 1: expected \"decision 1\""},
        {"decision 1\nkey 0\n", "line 2: expected \"key\""},
        {"decision 1\nkey 0g\n", "line 2: expected \"key\""},
        {"decision 1\nkey \nwhat x\nclock host\nreason only\nend\n", "a key of 0 bytes"},
        {"decision 1\nkey 00\nwhat \x1b[2J\nclock host\nreason only\nend\n", "control characters"},
        {"decision 1\nkey 00\nwhat x\nclock sun\n",
         "line 4: expected host or device, found \"sun\""},
        {"decision 1\nkey 00\nwhat x\nclock host\nreason luck\n", "line 5: expected measured"},
        {"decision 1\nkey 00\nwhat x\nclock host\nreason only\nsamples 1\n",
         "line 6: expected split, cand"},
        {"decision 1\nkey 00\nwhat x\nclock host\nreason only\nsplit 123\n",
         "line 6: expected a digest"},
        {"decision 1\nkey 00\nwhat x\nclock host\nreason only\ncandidate right exact 0 a\n"
         "split 0123456789abcdef\n",
         "line 7: expected split, cand"},
        {"decision 1\nkey 00\nwhat x\nclock host\nreason only\ncandidate good exact 0 a\n",
         "line 6: expected a state"},
        {"decision 1\nkey 00\nwhat x\nclock host\nreason only\ncandidate right exact 4294967296 "
         "a\n",
         "line 6: expected a version"},
        {"decision 1\nkey 00\nwhat x\nclock host\nreason only\ncandidate right exact 0 a\n"
         "samples 1 02\n",
         "line 7: expected nanoseconds"},
        {"decision 1\nkey 00\nwhat x\nclock host\nreason only\ncandidate right exact 0 a\n"
         "evidence \n",
         "line 7: expected a text"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        frit_err err = ERR_INIT;

        assert_int_equal(parse(cases[i].text, strlen(cases[i].text), &err), FRIT_INVALID);
        if (!strstr(err.text, cases[i].expected))
            fail_msg("case %zu: \"%s\" without \"%s\"", i, err.text, cases[i].expected);
    }
}

/* Texts for people are cleaned and cut; what would change the meaning is refused. */
static void test_limits(void **state)
{
    char longest[TUNE_TEXT_BYTES + 2], key[TUNE_KEY_BYTES + 1] = "k";
    static const uint64_t splits[TUNE_SPLITS + 1];
    struct tune_candidate candidate = {.identity = "a", .evidence = longest};
    struct tune_record record = {
        .key = key, .key_bytes = 1, .what = "a\nb", .n_candidates = 1, .candidates = &candidate};
    struct tune_record *copy;
    frit_err err = ERR_INIT;

    (void)state;
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(tune_record_verify(&record, &err), FRIT_INVALID);
    assert_int_equal(tune_record_copy(&record, &copy, &err), FRIT_OK);
    assert_string_equal(copy->what, "a b");
    assert_int_equal(strlen(copy->candidates[0].evidence), TUNE_TEXT_BYTES);
    assert_int_equal(tune_record_verify(copy, &err), FRIT_OK);
    tune_record_destroy(copy);
    candidate.identity = longest;
    assert_int_equal(tune_record_copy(&record, &copy, &err), FRIT_INVALID);
    assert_null(copy);
    candidate.identity = "";
    assert_int_equal(tune_record_copy(&record, &copy, &err), FRIT_INVALID);
    candidate = (struct tune_candidate){.identity = "a", .state = TUNE_STATES};
    assert_int_equal(tune_record_copy(&record, &copy, &err), FRIT_INVALID);
    candidate.state = TUNE_RIGHT;
    record.n_splits = TUNE_SPLITS + 1;
    record.splits = splits;
    assert_int_equal(tune_record_copy(&record, &copy, &err), FRIT_INVALID);
    record.n_splits = 0;
    record.key_bytes = sizeof(key);
    assert_int_equal(tune_record_copy(&record, &copy, &err), FRIT_INVALID);
}

static void test_no_memory(void **state)
{
    struct tune_record *record = record_rig_small(7, 1000);
    struct str text = {0};
    bool hit = true;

    (void)state;
    tune_record_print(record, &text);
    for (long n = 0; hit; n++) {
        struct tune_text left = {text.text, text.length, 0};
        struct tune_record *parsed;
        frit_status status;

        failing_alloc_arm(n);
        status = tune_record_parse(&left, &parsed, NULL);
        hit = failing_alloc_disarm();
        assert_int_equal(status, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        tune_record_destroy(parsed);
    }
    str_fini(&text);
    tune_record_destroy(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),   cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_reasons), cmocka_unit_test(test_changed_text),
        cmocka_unit_test(test_limits),  cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
