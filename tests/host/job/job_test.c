/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a job: values, failures and their texts, warnings, the next generation. */
#include "rig.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"
#include "threads.h"

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
}

/* ---- values ---- */

struct getter {
    struct job_member *job;
    char value[16];
    size_t n;
    frit_status status;
};

static void *get_late(void *ctx)
{
    struct getter *getter = ctx;

    getter->status = job_get(getter->job, FRIT_STR("late"), 5000 * rig_ms, getter->value,
                             sizeof(getter->value), &getter->n, NULL);
    return NULL;
}

static void test_values(void **state)
{
    struct rig rig;
    struct getter getter;
    frit_err err = ERR_INIT;
    static char big[WIRE_VALUE + 1], out[WIRE_VALUE];
    pthread_t thread;
    size_t n;

    (void)state;
    rig_init(&rig);
    rig_start_all(&rig, 2, 2);
    rig_join_all(&rig, 2);
    memset(big, 'x', sizeof(big));
    assert_int_equal(job_set(rig.jobs[1], FRIT_STR("a"), "one", 3, NULL), FRIT_OK);
    assert_int_equal(job_get(rig.jobs[0], FRIT_STR("a"), 0, out, sizeof(out), &n, NULL), FRIT_OK);
    assert_int_equal(n, 3);
    assert_memory_equal(out, "one", 3);
    assert_int_equal(job_get(rig.jobs[0], FRIT_STR("a"), 0, out, 2, &n, &err), FRIT_INVALID);
    assert_has(err.text, "'a' of the job: it has 3 bytes, more than 2");
    assert_int_equal(job_set(rig.jobs[0], FRIT_STR("a"), "two", 3, &err), FRIT_INVALID);
    assert_has(err.text, "has a value already");
    assert_int_equal(job_get(rig.jobs[0], FRIT_STR("b"), 30 * rig_ms, out, 1, &n, &err),
                     FRIT_TIMEOUT);
    assert_has(err.text, "no rank has set it");
    assert_int_equal(job_set(rig.jobs[1], FRIT_STR("big"), big, WIRE_VALUE, NULL), FRIT_OK);
    assert_int_equal(job_get(rig.jobs[0], FRIT_STR("big"), 0, out, sizeof(out), &n, NULL), FRIT_OK);
    assert_int_equal(n, WIRE_VALUE);
    assert_memory_equal(out, big, n);
    assert_int_equal(job_set(rig.jobs[1], FRIT_STR("bigger"), big, WIRE_VALUE + 1, NULL),
                     FRIT_INVALID);
    assert_int_equal(job_set(rig.jobs[1], FRIT_STR("empty"), NULL, 0, NULL), FRIT_OK);
    assert_int_equal(job_get(rig.jobs[1], FRIT_STR("empty"), 0, NULL, 0, &n, NULL), FRIT_OK);
    assert_int_equal(n, 0);

    getter = (struct getter){.job = rig.jobs[0]};
    pthread_create(&thread, NULL, get_late, &getter);
    poll(NULL, 0, 20);
    assert_int_equal(job_set(rig.jobs[1], FRIT_STR("late"), "now", 3, NULL), FRIT_OK);
    pthread_join(thread, NULL);
    assert_int_equal(getter.status, FRIT_OK);
    assert_memory_equal(getter.value, "now", 3);
    rig_fini(&rig);
}

/* ---- the end of a rank ---- */

static void test_a_lost_rank_is_named(void **state)
{
    struct rig rig;
    struct channel fake;
    struct getter getter;
    frit_err err = ERR_INIT;
    const uint32_t n_threads = count_threads();
    pthread_t thread;

    (void)state;
    rig_init(&rig);
    rig_start_all(&rig, 2, 3);
    fake_greet(&rig, &fake, "sesame");
    fake_hello(&fake, 2, 3, NULL, 0);
    rig_join_all(&rig, 2);
    getter = (struct getter){.job = rig.jobs[1]};
    pthread_create(&thread, NULL, get_late, &getter);
    job_progress(rig.jobs[0], 812, 3, 7, "enc.4.w .. enc.6.b");
    channel_fini(&fake);
    assert_true(rig_wait_failed(&rig, 2, 20000));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rig.failure[i].status, FRIT_PEER_LOST);
        assert_has(rig.failure[i].text, "rank 2 (host fake, pid 1002) died: connection ");
        assert_has(rig.failure[i].text, ", at step 812, bucket 3 of 7 (enc.4.w .. enc.6.b); 2 of 3 "
                                        "ranks are alive");
    }
    pthread_join(thread, NULL);
    assert_int_equal(getter.status, FRIT_PEER_LOST); /* it does not wait any more */
    assert_int_equal(job_set(rig.jobs[1], FRIT_STR("x"), "", 0, &err), FRIT_PEER_LOST);
    assert_has(err.text, "rank 2 (host fake, pid 1002) died");
    assert_int_equal(job_failure(rig.jobs[0], 0, &err), FRIT_PEER_LOST);
    assert_int_equal(rig_logged("rank 2 (host fake, pid 1002) died"), 2); /* by each rank */
    rig_close_all(&rig);
    assert_int_equal(rig.n_failed, 2);
    assert_int_equal(count_threads(), n_threads);
    rig_fini(&rig);
}

static void test_the_first_failure_is_everybodys(void **state)
{
    struct rig rig;
    frit_err first = ERR_INIT, second = ERR_INIT;

    (void)state;
    rig_init(&rig);
    rig_start_all(&rig, 3, 3);
    rig_join_all(&rig, 3);
    (void)fail(&first, FRIT_NO_DEVICE_MEMORY, "no memory for bucket 3");
    (void)fail(&second, FRIT_INVALID, "something else");
    job_fail(rig.jobs[1], &first);
    assert_true(rig_wait_failed(&rig, 3, 20000));
    job_fail(rig.jobs[2], &second);
    poll(NULL, 0, 50);
    assert_int_equal(rig.n_failed, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rig.failure[i].status, FRIT_NO_DEVICE_MEMORY);
        assert_has(rig.failure[i].text, "rank 1 (host ");
        assert_has(rig.failure[i].text, "): no memory for bucket 3");
    }
    rig_fini(&rig);
}

static void test_leaving_is_no_failure(void **state)
{
    struct rig rig;
    frit_err err = ERR_INIT;

    (void)state;
    rig_init(&rig);
    rig_start_all(&rig, 3, 3);
    rig_join_all(&rig, 3);
    job_close(rig.jobs[1]);
    rig.jobs[1] = NULL;
    assert_int_equal(job_set(rig.jobs[2], FRIT_STR("a"), "b", 1, NULL), FRIT_OK);
    job_close(rig.jobs[0]);
    rig.jobs[0] = NULL;
    for (int i = 0; i < 200 && job_set(rig.jobs[2], FRIT_STR("c"), "d", 1, &err) != FRIT_PEER_LOST;
         i++)
        poll(NULL, 0, 5);
    assert_has(err.text, "rank 0 has left the job");
    assert_int_equal(job_failure(rig.jobs[2], 0, &err), FRIT_OK);
    assert_int_equal(rig.n_failed, 0);
    rig_fini(&rig);
}

/* The next job at the same store: rank 1 comes before the first one has ended. */
static void test_one_job_after_the_other(void **state)
{
    struct rig rig;

    (void)state;
    rig_init(&rig);
    rig_start_all(&rig, 2, 2);
    rig_join_all(&rig, 2);
    job_close(rig.jobs[1]);
    rig_start(&rig, 1, 2);
    poll(NULL, 0, 60);
    job_close(rig.jobs[0]);
    rig_start(&rig, 0, 2);
    rig_join_all(&rig, 2);
    assert_int_equal(rig.n_failed, 0);
    rig_fini(&rig);
}

/* The test is rank 0. */
static void test_the_end_of_rank_0(void **state)
{
    struct rig rig;
    struct channel first;
    struct wire_reader in;
    size_t begin;
    int listening, fd = -1;

    (void)state;
    rig_init(&rig);
    assert_int_equal(address_listen(rig.store, &listening, NULL), FRIT_OK);
    rig_start(&rig, 1, 2);
    for (int i = 0; i < 4000 && fd < 0; i++) {
        poll(NULL, 0, 5);
        fd = accept(listening, NULL, NULL);
    }
    channel_init(&first, fd, 5000 * rig_ms);
    while (first.in.length < WIRE_GREETING) {
        poll(NULL, 0, 5);
        assert_int_equal(channel_read(&first, WIRE_GREETING), 0);
    }
    channel_drop(&first, WIRE_GREETING);
    assert_true(fake_receive(&first, WIRE_HELLO, &in));
    begin = wire_begin(&first.out, WIRE_JOINED);
    wire_text(&first.out, "h0");
    wire_u32(&first.out, 17);
    wire_end(&first.out, begin);
    fake_send(&first);
    assert_int_equal(rig_join(&rig, 1), FRIT_OK);
    job_close(rig.jobs[0]);
    job_progress(rig.jobs[1], 5, 1, 2, "a .. b");
    channel_fini(&first);
    close(listening);
    {
        frit_err err = ERR_INIT;

        assert_int_equal(job_failure(rig.jobs[1], 20000 * rig_ms, &err), FRIT_PEER_LOST);
        assert_has(err.text, "rank 0 (host h0, pid 17) died: connection ");
        assert_has(err.text, "at step 5, bucket 1 of 2 (a .. b); it held the store");
        assert_int_equal(job_rebuild(rig.jobs[1], 1000 * rig_ms, &err), FRIT_PEER_LOST);
        assert_has(err.text, "start the job again");
    }
    rig_fini(&rig);
}

/* ---- silence ---- */

/* On a busy machine rank 0 may be silent for as long. */
static void test_a_silent_rank_is_named_once(void **state)
{
    static const char silent[] = "no heartbeat from rank 1 (host fake, pid 1001) for ";
    const struct job_place place = {.operation = 3};
    struct rig rig;
    struct channel fake;
    struct wire_reader in;

    (void)state;
    rig_init(&rig);
    rig.config.suspect_ns = 100 * rig_ms;
    rig_start_all(&rig, 1, 2);
    fake_greet(&rig, &fake, "sesame");
    fake_hello(&fake, 1, 2, NULL, 0);
    rig_join_all(&rig, 1);
    assert_true(rig_wait_logged(silent, 20000));
    assert_true(rig_logged("but its kernel still answers: stopped, swapping or in a debugger") > 0);
    poll(NULL, 0, 150);
    assert_int_equal(rig_logged(silent), 1);
    assert_int_equal(rig.n_failed, 0);
    fake_beat(&fake, &place);
    assert_true(fake_receive(&fake, WIRE_PULSE, &in));
    assert_int_equal(job_set(rig.jobs[0], FRIT_STR("a"), "b", 1, NULL), FRIT_OK); /* all is well */
    rig_fini(&rig);
    channel_fini(&fake);
}

static void test_an_operation_that_takes_long(void **state)
{
    const struct job_place place = {.operation = 6, .step = 811, .bucket = 7, .n_buckets = 7};
    struct rig rig;
    struct channel fake;
    struct job_wait wait;
    char text[WIRE_TEXT];

    (void)state;
    rig_init(&rig);
    rig.config.warn_ns = 100 * rig_ms;
    rig_start_all(&rig, 2, 3);
    fake_greet(&rig, &fake, "sesame");
    fake_hello(&fake, 2, 3, NULL, 0);
    rig_join_all(&rig, 2);
    fake_beat(&fake, &place);
    for (int i = 0; i < 2; i++)
        job_progress(rig.jobs[i], 812, 1, 7, "a .. b");
    job_wait_begin(rig.jobs[1], &wait);
    for (int i = 0; i < 1000 && !rig_logged("waiting"); i++) {
        fake_beat(&fake, &place);
        poll(NULL, 0, 20);
    }
    assert_int_equal(rig_logged("step 812, bucket 1 of 7 (a .. b): waiting "), 1);
    assert_int_equal(rig_logged(" s for rank 2 (host fake, pid 1002): it has begun 0 of 7 buckets "
                                "of step 812 (last heartbeat "),
                     1);
    assert_int_equal(rig_logged(" s ago: alive, not progressing)"), 1);
    fake_beat(&fake, &place);
    job_behind(rig.jobs[1], text, sizeof(text));
    assert_has(text, "rank 2 (host fake, pid 1002): it has begun 0 of 7 buckets of step 812");
    job_wait_end(rig.jobs[1], &wait);
    poll(NULL, 0, 150);
    assert_int_equal(rig_logged("waiting"), 1);
    assert_int_equal(rig.n_failed, 0);
    rig_fini(&rig);
    channel_fini(&fake);
}

/* ---- the next generation ---- */

static void write_rebuild(struct channel *fake, uint32_t request, uint32_t generation)
{
    const size_t begin = wire_begin(&fake->out, WIRE_REBUILD);

    wire_u32(&fake->out, request);
    wire_u32(&fake->out, generation);
    wire_u64(&fake->out, 2000 * rig_ms);
    wire_end(&fake->out, begin);
    fake_send(fake);
}

static void write_fail(struct channel *fake, uint32_t generation)
{
    const size_t begin = wire_begin(&fake->out, WIRE_FAIL);

    wire_u32(&fake->out, generation);
    wire_u32(&fake->out, (uint32_t)FRIT_ABORTED);
    wire_text(&fake->out, "of long ago");
    wire_end(&fake->out, begin);
    fake_send(fake);
}

/* Rank 1 of 3 is lost; the test is rank 2, then 1. */
static void test_survivors_go_on(void **state)
{
    struct rig rig;
    struct channel lost, fake;
    struct wire_reader in;
    frit_err err = ERR_INIT;
    uint32_t rank, size, generation;
    char value[8];
    size_t n;

    (void)state;
    rig_init(&rig);
    rig_start_all(&rig, 1, 3);
    fake_greet(&rig, &lost, "sesame");
    fake_hello(&lost, 1, 3, NULL, 0);
    fake_greet(&rig, &fake, "sesame");
    fake_hello(&fake, 2, 3, NULL, 0);
    rig_join_all(&rig, 1);
    assert_int_equal(job_set(rig.jobs[0], FRIT_STR("id"), "old", 3, NULL), FRIT_OK);
    assert_int_equal(job_rebuild(rig.jobs[0], rig_ms, &err), FRIT_INVALID);
    assert_has(err.text, "has not failed");
    channel_fini(&lost);
    assert_true(rig_wait_failed(&rig, 1, 20000));
    assert_true(fake_receive(&fake, WIRE_FAILED, &in));
    assert_int_equal(job_rebuild(rig.jobs[0], 50 * rig_ms, &err), FRIT_TIMEOUT);
    assert_has(err.text, "did not take part in time: 2");

    write_rebuild(&fake, 9, 7); /* of no generation that is */
    write_rebuild(&fake, 9, 0);
    assert_int_equal(job_rebuild(rig.jobs[0], 1000 * rig_ms, NULL), FRIT_OK);
    job_where(rig.jobs[0], &rank, &size, &generation);
    assert_int_equal(rank, 0);
    assert_int_equal(size, 2);
    assert_int_equal(generation, 1);
    assert_true(fake_receive(&fake, WIRE_REPLY, &in));
    assert_int_equal(wire_read_u32(&in), 9);
    assert_int_equal(wire_read_u32(&in), FRIT_OK);
    (void)wire_read_u32(&in);
    assert_int_equal(wire_read_u32(&in), 1); /* generation */
    assert_int_equal(wire_read_u32(&in), 1); /* rank */
    assert_int_equal(wire_read_u32(&in), 2);

    write_fail(&fake, 0); /* was under way */
    assert_int_equal(job_get(rig.jobs[0], FRIT_STR("id"), 30 * rig_ms, value, 8, &n, NULL),
                     FRIT_TIMEOUT);
    assert_int_equal(job_set(rig.jobs[0], FRIT_STR("id"), "new", 3, NULL), FRIT_OK);
    assert_int_equal(job_failure(rig.jobs[0], 0, NULL), FRIT_OK);
    write_fail(&fake, 1);
    assert_true(rig_wait_failed(&rig, 2, 20000)); /* once for each generation */
    assert_string_equal(rig.failure[0].text, "rank 1 (host fake, pid 1002): of long ago");
    rig_fini(&rig);
    channel_fini(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_a_lost_rank_is_named),
        cmocka_unit_test(test_the_first_failure_is_everybodys),
        cmocka_unit_test(test_leaving_is_no_failure),
        cmocka_unit_test(test_one_job_after_the_other),
        cmocka_unit_test(test_the_end_of_rank_0),
        cmocka_unit_test(test_a_silent_rank_is_named_once),
        cmocka_unit_test(test_an_operation_that_takes_long),
        cmocka_unit_test(test_survivors_go_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
