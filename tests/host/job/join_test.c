/* SPDX-License-Identifier: Apache-2.0 */
/* How a job forms: who comes late or not at all, who does not belong to it, and what is no rank. */
#include "rig.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
}

static void test_wrong_configurations(void **state)
{
    static const char *const stores[] = {"127.0.0.1:80",  "tcp://:80",  "tcp://a:0",
                                         "tcp://a:65536", "tcp://a",    "tcp://a:8x",
                                         "tcp://[::1]:",  "udp://a:80", "tcp://"};
    struct job_config config = {.size = 2, .store = "tcp://[::1]:80", .token = ""};
    struct job_member *job;
    frit_err err = ERR_INIT;

    (void)state;
    assert_int_equal(job_check(&config, &err), FRIT_OK);
    for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
        config.store = stores[i];
        assert_int_equal(job_open(&config, &job, &err), FRIT_INVALID);
        assert_null(job);
        assert_has(err.text, "must be tcp://HOST:PORT");
    }
    config.store = "tcp://a:80";
    config.token = "123456789012345678901234567890123";
    assert_int_equal(job_open(&config, &job, &err), FRIT_INVALID);
    assert_has(err.text, "33 bytes");
    config.rank = 2;
    assert_int_equal(job_open(&config, &job, &err), FRIT_INVALID);
    assert_has(err.text, "rank 2 of 2");
}

static void test_missing_ranks_are_listed(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig.config.connect_ns = 1000 * rig_ms;
    rig_start(&rig, 0, 4);
    rig_start(&rig, 2, 4);
    for (uint32_t i = 0; i < 4; i += 2) {
        assert_int_equal(rig_join(&rig, i), FRIT_TIMEOUT);
        assert_has(rig.errs[i].text,
                   "2 of 4 ranks have come in the time limit; missing: rank 1, 3");
    }
    rig_start(&rig, 1, 4);
    assert_int_equal(rig_join(&rig, 1), FRIT_TIMEOUT);
    assert_has(rig.errs[1].text, "rank 0 is missing: its store tcp://127.0.0.1:");
    rig_fini(&rig);
}

/* A rank that comes before rank 0 does. */
static void test_rank_0_may_come_last(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig_start(&rig, 1, 2);
    poll(NULL, 0, 70);
    rig_start(&rig, 0, 2);
    rig_join_all(&rig, 2);
    rig_fini(&rig);
}

static void test_the_port_is_taken(void **state)
{
    struct rig rig;
    struct job_member *job;
    struct job_config config;
    frit_err err = ERR_INIT;

    (void)state;
    rig_init(&rig);
    rig_start_all(&rig, 1, 1);
    rig_join_all(&rig, 1);
    config = rig.config;
    config.size = 1;
    assert_int_equal(job_open(&config, &job, &err), FRIT_IO);
    assert_has(err.text, "another job or program has this port");
    rig_fini(&rig);
}

static void test_different_programs(void **state)
{
    static const struct job_fact ours = {"program", "train (build 1)"},
                                 theirs[] = {{"plugin x", "2"}, {"program", "test (build 2)"}};
    struct rig rig;
    struct channel fake;
    struct wire_reader in;
    char text[WIRE_TEXT];

    (void)state;
    rig_init(&rig);
    rig.config.facts = &ours;
    rig.config.n_facts = 1;
    rig_start_all(&rig, 1, 3);
    fake_greet(&rig, &fake, "sesame");
    fake_hello(&fake, 1, 3, theirs, 2);
    poll(NULL, 0, 30);
    rig_start(&rig, 2, 3); /* it gets to know, too */
    for (uint32_t i = 0; i < 3; i += 2) {
        assert_int_equal(rig_join(&rig, i), FRIT_MISMATCH);
        assert_has(rig.errs[i].text, ", rank 1 (host fake, pid 1001) has 'test (build 2)'; it must "
                                     "be the same on all ranks");
        assert_has(rig.errs[i].text, "rank 0 (host ");
        assert_has(rig.errs[i].text, ") has the program 'train (build 1)'");
    }
    assert_true(fake_receive(&fake, WIRE_FAILED, &in));
    (void)wire_read_u32(&in);
    assert_int_equal((frit_status)wire_read_u32(&in), FRIT_MISMATCH);
    wire_read_text(&in, text, sizeof(text));
    assert_has(text, "test (build 2)");
    channel_fini(&fake);
    rig_fini(&rig);
}

/* ---- strangers ---- */

static void test_strangers_are_closed_and_logged_once(void **state)
{
    static const char web[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    struct rig rig;
    struct channel strangers[3], right;
    struct wire_reader in;
    char text[WIRE_TEXT];

    (void)state;
    rig_init(&rig);
    rig_start_all(&rig, 1, 2);
    for (int i = 0; i < 3; i++)
        fake_connect(&rig, &strangers[i], web, sizeof(web) - 1);
    for (int i = 0; i < 3; i++) {
        assert_false(fake_receive(&strangers[i], WIRE_PULSE, &in));
        channel_fini(&strangers[i]);
    }
    assert_int_equal(rig_logged("a connection from 127.0.0.1 is closed: it is not of a rank"), 1);
    for (int i = 0; i < 3; i++) {
        fake_greet(&rig, &strangers[i], i == 0 ? "" : "open");
        fake_hello(&strangers[i], 1, 2, NULL, 0);
        assert_true(fake_receive(&strangers[i], WIRE_FAILED, &in));
        (void)wire_read_u32(&in);
        assert_int_equal((frit_status)wire_read_u32(&in), FRIT_INVALID);
        wire_read_text(&in, text, sizeof(text));
        assert_has(text, "its token is not that of the job");
        channel_fini(&strangers[i]);
    }
    assert_int_equal(rig_logged("is refused: its token is not"), 1);
    fake_greet(&rig, &right, "sesame");
    fake_hello(&right, 1, 2, NULL, 0);
    rig_join_all(&rig, 1); /* it did not notice */
    channel_fini(&right);
    rig_fini(&rig);
}

/* The same, by a member. */
static void test_a_wrong_token(void **state)
{
    struct rig rig;
    struct channel right;

    (void)state;
    rig_init(&rig);
    rig_start(&rig, 0, 2);
    poll(NULL, 0, 30);
    rig.config.token = "open";
    rig_start(&rig, 1, 2);
    assert_int_equal(rig_join(&rig, 1), FRIT_INVALID);
    assert_has(rig.errs[1].text, "its token is not that of the job");
    fake_greet(&rig, &right, "sesame");
    fake_hello(&right, 1, 2, NULL, 0);
    rig_join_all(&rig, 1);
    rig_fini(&rig);
    channel_fini(&right);
}

/* Frames that are none, from one that has the token. */
static void test_wrong_frames(void **state)
{
    static const struct {
        uint8_t bytes[12];
        size_t n;
    } wrong[] = {
        {{0, 0, 0, 0}, 4},            /* no kind */
        {{255, 255, 255, 255, 1}, 5}, /* too long */
        {{1, 0, 16, 0, 1}, 5},        /* by a byte */
        {{1, 0, 0, 0, 99}, 5},        /* unknown */
        {{1, 0, 0, 0, WIRE_BEAT}, 5}, /* of no rank */
        {{5, 0, 0, 0, WIRE_HELLO, 1}, 9},
    };
    struct rig rig;
    struct wire_reader in;
    struct channel fake;

    (void)state;
    rig_init(&rig);
    rig_start_all(&rig, 1, 2);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        fake_greet(&rig, &fake, "sesame");
        str_add(&fake.out, (const char *)wrong[i].bytes, wrong[i].n);
        fake_send(&fake);
        assert_false(fake_receive(&fake, WIRE_PULSE, &in));
        channel_fini(&fake);
    }
    fake_greet(&rig, &fake, "sesame");
    fake_hello(&fake, 1, 2, NULL, 0);
    rig_join_all(&rig, 1);
    fake_hello(&fake, 1, 2, NULL, 0); /* for a second time */
    assert_true(rig_wait_failed(&rig, 1, 20000));
    assert_has(rig.failure[0].text,
               "rank 1 (host fake, pid 1001) is dropped: what it sends is not of this protocol");
    channel_fini(&fake);
    rig_fini(&rig);
}

static void test_ranks_that_are_not_of_the_job(void **state)
{
    struct rig rig;
    struct wire_reader in;
    struct channel right, other;
    char text[WIRE_TEXT];

    (void)state;
    rig_init(&rig);
    rig_start_all(&rig, 1, 2);
    fake_greet(&rig, &right, "sesame");
    fake_hello(&right, 1, 2, NULL, 0);
    rig_join_all(&rig, 1);
    fake_greet(&rig, &other, "sesame");
    fake_hello(&other, 1, 2, NULL, 0);
    assert_true(fake_receive(&other, WIRE_FAILED, &in));
    (void)wire_read_u64(&in);
    wire_read_text(&in, text, sizeof(text));
    assert_string_equal(text, "rank 1 (host fake, pid 1001) is here already");
    channel_fini(&other);
    fake_greet(&rig, &other, "sesame");
    fake_hello(&other, 2, 3, NULL, 0);
    assert_true(fake_receive(&other, WIRE_FAILED, &in));
    (void)wire_read_u64(&in);
    wire_read_text(&in, text, sizeof(text));
    assert_string_equal(text, "it is rank 2 of 3, and this job has 2 ranks");
    channel_fini(&other);
    assert_int_equal(rig.n_failed, 0);
    rig_fini(&rig);
    channel_fini(&right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_configurations),
        cmocka_unit_test(test_missing_ranks_are_listed),
        cmocka_unit_test(test_rank_0_may_come_last),
        cmocka_unit_test(test_the_port_is_taken),
        cmocka_unit_test(test_different_programs),
        cmocka_unit_test(test_strangers_are_closed_and_logged_once),
        cmocka_unit_test(test_a_wrong_token),
        cmocka_unit_test(test_wrong_frames),
        cmocka_unit_test(test_ranks_that_are_not_of_the_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
