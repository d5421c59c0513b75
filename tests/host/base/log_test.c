/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

static char last[2048];
static unsigned count;

static void keep(void *ctx, uint32_t level, const char *topic, const char *text)
{
    assert_ptr_equal(ctx, last);
    snprintf(last, sizeof(last), "%u %s %s", (unsigned)level, topic, text);
    count++;
}

static int setup(void **state)
{
    (void)state;
    log_set_sink(keep, last);
    count = 0;
    return log_configure("warn", NULL);
}

static int teardown(void **state)
{
    (void)state;
    log_set_sink(NULL, NULL);
    return log_configure("warn", NULL);
}

static void levels_pass_or_not(void **state)
{
    static const char *const names[] = {"off", "error", "warn", "info", "debug", "trace"};

    (void)state;
    for (uint32_t wanted = 0; wanted <= FRIT_LOG_TRACE; wanted++) {
        assert_int_equal(log_configure(names[wanted], NULL), FRIT_OK);
        for (uint32_t level = FRIT_LOG_ERROR; level <= FRIT_LOG_TRACE; level++) {
            count = 0;
            log_write(level, "conf", "text");
            assert_int_equal(count, level <= wanted);
            assert_int_equal(log_enabled(level, "conf"), level <= wanted);
        }
    }
}

static void topics_have_levels_of_their_own(void **state)
{
    (void)state;
    assert_int_equal(log_configure("error,load=debug, conf=off", NULL), FRIT_OK);
    assert_true(log_enabled(FRIT_LOG_DEBUG, "load"));
    assert_false(log_enabled(FRIT_LOG_TRACE, "load"));
    assert_false(log_enabled(FRIT_LOG_ERROR, "conf"));
    assert_false(log_enabled(FRIT_LOG_WARN, "other"));
    assert_true(log_enabled(FRIT_LOG_ERROR, "loader"));
    log_write(FRIT_LOG_DEBUG, "load", "%d + %d", 1, 2);
    assert_string_equal(last, "4 load 1 + 2");
}

static void a_wrong_text_changes_nothing(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"loud", "'loud' is not a level; allowed: off error warn info debug trace"},
        {"info,load=", "'' is not a level; allowed: off error warn info debug trace"},
        {"info,,debug", "'' is not a level; allowed: off error warn info debug trace"},
        {"INFO", "'INFO' is not a level; allowed: off error warn info debug trace"},
        {"trace,=info", "topic '' is empty, too long, or one too many"},
        {"a23456789012345678901234=info",
         "topic 'a23456789012345678901234' is empty, too long, or one too many"},
        {"a=off,b=off,c=off,d=off,e=off,f=off,g=off,h=off,i=off,j=off,k=off,l=off,m=off,n=off,o="
         "off,p=off,q=off",
         "topic 'q' is empty, too long, or one too many"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        frit_err err = ERR_INIT;

        assert_int_equal(log_check(rows[i].text, &err), FRIT_INVALID);
        assert_string_equal(err.text, rows[i].error);
        assert_int_equal(log_configure(rows[i].text, &err), FRIT_INVALID);
        assert_true(log_enabled(FRIT_LOG_WARN, "a"));
        assert_false(log_enabled(FRIT_LOG_INFO, "a"));
    }
    assert_int_equal(log_check("trace", NULL), FRIT_OK);
    assert_false(log_enabled(FRIT_LOG_INFO, "a"));
}

static void a_long_text_is_cut(void **state)
{
    char text[3000];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_write(FRIT_LOG_WARN, "conf", "%s", text);
    assert_int_equal(strlen(last), strlen("2 conf ") + 1023);
}

/* ---- for the thread sanitizer ---- */

static void quiet(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx;
    (void)level;
    (void)topic;
    (void)text;
}

static void *configure(void *ctx)
{
    for (int i = 0; i < 2000; i++) {
        if (log_configure(i % 2 ? "info,load=off" : "off,load=info", NULL))
            return ctx;
        log_set_sink(quiet, NULL);
    }
    return NULL;
}

static void any_thread_may_log_and_configure(void **state)
{
    pthread_t thread;
    void *failed;

    (void)state;
    log_set_sink(quiet, NULL);
    assert_int_equal(pthread_create(&thread, NULL, configure, last), 0);
    for (int i = 0; i < 2000; i++)
        log_write(FRIT_LOG_INFO, i % 3 ? "load" : "conf", "%d", i);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(levels_pass_or_not),
        TEST(topics_have_levels_of_their_own),
        TEST(a_wrong_text_changes_nothing),
        TEST(a_long_text_is_cut),
        TEST(any_thread_may_log_and_configure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
