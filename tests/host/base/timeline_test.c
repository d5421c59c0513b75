/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timeline.h"

#include "unit.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "failing_alloc.h"

static const char empty[] =
    "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"lost\":0},\"traceEvents\":[\n]}\n";

static void contains(const struct str *text, const char *part)
{
    assert_false(text->failed);
    if (!strstr(text->text, part))
        fail_msg("'%s' is not in '%s'", part, text->text);
}

static uint32_t count_of(const struct str *text, const char *part)
{
    uint32_t n = 0;

    for (const char *at = text->text; (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

static void off_records_nothing(void **state)
{
    struct str text = {0};

    (void)state;
    assert_int_equal(timeline_begin(), 0);
    timeline_end(0, "stream", FRIT_STR("run"));
    timeline_counter("stream", FRIT_STR("ops"), 1);
    timeline_stop(&text);
    assert_null(text.text);

    assert_int_equal(timeline_start(4, NULL), FRIT_OK);
    timeline_stop(&text);
    assert_string_equal(text.text, empty);
    str_fini(&text);
}

static void events(void **state)
{
    frit_err err = ERR_INIT;
    struct str text = {0};
    uint64_t outer, inner;
    double start[2], length[2];
    const char *at;

    (void)state;
    assert_int_equal(timeline_start(16, &err), FRIT_OK);
    assert_int_equal(timeline_start(16, &err), FRIT_BUSY);
    assert_non_null(strstr(err.text, "being recorded"));
    outer = timeline_begin();
    inner = timeline_begin();
    assert_true(outer > 0 && inner >= outer);
    timeline_end(inner, "plan", FRIT_STR("inner"));
    timeline_end(outer, "stream", FRIT_STR("outer"));
    timeline_counter("memory", FRIT_STR("bytes"), 12.5);
    timeline_counter("memory", FRIT_STR("odd"), NAN);
    timeline_stop(&text);
    contains(&text, "\"lost\":0}");
    contains(&text, ",\"args\":{\"value\":12.5}}");
    contains(&text, ",\"args\":{\"value\":null}}");
    assert_int_equal(count_of(&text, "\"ph\":\"X\""), 2);
    assert_int_equal(count_of(&text, "\"ph\":\"C\""), 2);
    for (int i = 0; i < 2; i++) {
        at = strstr(text.text, i ? "\"outer\",\"cat\":\"stream\"" : "\"inner\",\"cat\":\"plan\"");
        assert_non_null(at);
        at = strstr(at, "\"ts\":");
        assert_int_equal(sscanf(at, "\"ts\":%lf,\"dur\":%lf}", &start[i], &length[i]), 2);
    }
    assert_true(start[0] >= start[1]);
    assert_true(start[0] + length[0] <= start[1] + length[1] + 0.0005); /* rounded */
    str_fini(&text);
}

/* Spans of devices have tracks of their own, which have names. */
static void tracks(void **state)
{
    struct str text = {0};
    uint64_t begun;

    (void)state;
    timeline_span(7, 10, 20, "null:0", FRIT_STR("early"));
    timeline_track(7, FRIT_STR("null:0"));
    assert_false(timeline_is_on());
    assert_int_equal(timeline_start(16, NULL), FRIT_OK);
    assert_true(timeline_is_on());
    begun = timeline_begin();
    timeline_track(7, FRIT_STR("null:0"));
    timeline_span(7, begun, begun + 1500, "null:0", FRIT_STR("exp"));
    timeline_span(7, begun + 10, begun + 5, "null:0", FRIT_STR("odd"));
    timeline_stop(&text);
    contains(&text, "{\"name\":\"thread_name\",\"cat\":\"\",\"ph\":\"M\",\"pid\":2,\"tid\":7,"
                    "\"args\":{\"name\":\"null:0\"}}");
    contains(&text, "{\"name\":\"exp\",\"cat\":\"null:0\",\"ph\":\"X\",\"pid\":2,\"tid\":7,");
    contains(&text, "\"dur\":1.500}");
    contains(&text, "\"dur\":0.000}"); /* an end before its start */
    assert_int_equal(count_of(&text, "\"ph\":"), 3);
    str_fini(&text);
}

/* Neither quotes nor line ends nor bytes of any other kind leave the string; names are cut. */
static void any_text_is_a_string(void **state)
{
    char longer[200];
    struct str text = {0};

    (void)state;
    memset(longer, 'x', sizeof(longer));
    assert_int_equal(timeline_start(16, NULL), FRIT_OK);
    timeline_counter("r", FRIT_STR("a\"b\\c\nd\xffz"), 1);
    timeline_counter("r", (frit_str){longer, sizeof(longer)}, 2);
    timeline_counter("r", (frit_str){NULL, 0}, 3);
    timeline_stop(&text);
    contains(&text, "\"name\":\"a\\\"b\\\\c\\u000ad\\u00ffz\"");
    assert_int_equal(count_of(&text, "x"), TIMELINE_NAME - 1);
    contains(&text, "\"name\":\"\",\"cat\":\"r\"");
    str_fini(&text);
}

static void what_is_too_much_is_counted(void **state)
{
    struct str text = {0};

    (void)state;
    assert_int_equal(timeline_start(3, NULL), FRIT_OK);
    for (int i = 0; i < 10; i++)
        timeline_counter("r", FRIT_STR("n"), i);
    timeline_stop(&text);
    contains(&text, "\"lost\":7}");
    assert_int_equal(count_of(&text, "\"ph\":\"C\""), 3);
    str_fini(&text);
}

enum { WRITERS = 3 };

static atomic_bool enough;

static void *write_events(void *arg)
{
    (void)arg;
    while (!atomic_load(&enough)) {
        timeline_end(timeline_begin(), "thread", FRIT_STR("span"));
        timeline_counter("thread", FRIT_STR("level"), 1);
    }
    return NULL;
}

/* Stopping while others write: each printed event is whole, and none is written after. */
static void writers_and_a_stopper(void **state)
{
    pthread_t thread[WRITERS];

    (void)state;
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, write_events, NULL), 0);
    for (int round = 0; round < 200; round++) {
        struct str text = {0};

        assert_int_equal(timeline_start(64, NULL), FRIT_OK);
        for (int i = 0; i < 100; i++)
            timeline_counter("main", FRIT_STR("level"), i);
        timeline_stop(&text);
        assert_int_equal(count_of(&text, "\"ph\":"), 64);
        assert_int_equal(count_of(&text, "\"level\"") + count_of(&text, "\"span\""), 64);
        str_fini(&text);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
}

static void without_memory(void **state)
{
    frit_err err = ERR_INIT;

    (void)state;
    failing_alloc_arm(0);
    assert_int_equal(timeline_start(4, &err), FRIT_NO_HOST_MEMORY);
    assert_true(failing_alloc_disarm());
    assert_int_equal(timeline_begin(), 0);
    assert_int_equal(timeline_start(4, &err), FRIT_OK);
    timeline_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_records_nothing),
        cmocka_unit_test(events),
        cmocka_unit_test(tracks),
        cmocka_unit_test(any_text_is_a_string),
        cmocka_unit_test(what_is_too_much_is_counted),
        cmocka_unit_test(writers_and_a_stopper),
        cmocka_unit_test(without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
