/* SPDX-License-Identifier: Apache-2.0 */
/* The open batch: submits that find the device busy go to it together, in order, and as soon as it
 * needs them; transfers, recordings, failures and the loss of the device between them.  The
 * timeline is held, so that the device seems busy. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <frit/capture.h>

#include "add.h"
#include "base/clock.h"
#include "fake_open.h"

enum {
    N = 16,
    BYTES = 4096,
    BUSY = 2,         /* submissions after which the device is busy */
    RECENT_NS = 40000 /* gather.c's */
};

/* ---- a busy device ---- */

struct busy {
    struct rig rig;
    void *a, *b; /* of BYTES, zeros */
    uint64_t value;
};

static frit_cmd fill_of(void *memory, uint32_t pattern)
{
    return (frit_cmd){.struct_size = sizeof(frit_cmd),
                      .kind = FRIT_CMD_FILL,
                      .dst = memory,
                      .bytes = 4,
                      .pattern = pattern,
                      .pattern_bytes = 4};
}

static frit_cmd copy_of(void *from, void *to, uint32_t word)
{
    return (frit_cmd){.struct_size = sizeof(frit_cmd),
                      .kind = FRIT_CMD_COPY,
                      .src = from,
                      .dst = to,
                      .dst_offset = 4 * (uint64_t)word,
                      .bytes = 4};
}

static void fill(struct busy *t, void *memory, uint32_t pattern)
{
    const frit_cmd cmd = fill_of(memory, pattern);

    t->value = rig_submit(&t->rig, &cmd, 1);
}

static void hold(struct busy *t)
{
    const struct timespec no_longer_recent = {0, 1000000};

    fake->held_at = t->value;
    fake->is_held = 1;
    for (int i = 0; i < BUSY; i++) {
        fill(t, t->b, 0);
        nanosleep(&no_longer_recent, NULL);
    }
    fake->submissions = 0;
}

static void release(void)
{
    fake->is_held = 0;
}

/* From here on submits stay in the open batch. */
static void busy_open(struct busy *t, const char *staging)
{
    static const uint8_t zeros[BYTES];

    *fake = (struct fake_loader){0};
    *t = (struct busy){.rig = {.loader = fake_path, .staging = staging}};
    rig_open_plugin(&t->rig);
    rig_open_device(&t->rig);
    t->a = rig_alloc(&t->rig, BYTES).memory;
    t->b = rig_alloc(&t->rig, BYTES).memory;
    rig_write(&t->rig, t->a, 0, zeros, BYTES);
    rig_write(&t->rig, t->b, 0, zeros, BYTES);
    fill(t, t->b, 0);
    rig_wait(&t->rig, t->value);
    hold(t);
}

static void busy_close(struct busy *t)
{
    release();
    t->rig.backend->free(t->rig.device, t->a);
    t->rig.backend->free(t->rig.device, t->b);
    rig_close(&t->rig);
}

/* The submits' failure up to `value`. */
static frit_failure wait_for(struct busy *t, uint64_t value, frit_status expected)
{
    frit_failure failure = {.struct_size = sizeof failure};

    assert_int_equal(
        t->rig.backend->wait(t->rig.device, NULL, value, UINT64_MAX, &failure, &t->rig.err),
        expected);
    return failure;
}

static bool is_submitted_within(int ms)
{
    const struct timespec step = {0, 1000000};

    for (int i = 0; i < ms && fake->submissions == 0; i++)
        nanosleep(&step, NULL);
    return fake->submissions > 0;
}

/* ---- order ---- */

/* a = i; b[i] = a, for all i, each as a submit.  Every one is ordered after the one before. */
static void many_submits_are_one_submission(void **state)
{
    uint32_t got[N];
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    fake->barriers = 0;
    for (uint32_t i = 0; i < N; i++) {
        const frit_cmd copy = copy_of(t.a, t.b, i);

        fill(&t, t.a, i + 1);
        t.value = rig_submit(&t.rig, &copy, 1);
    }
    assert_int_equal(fake->submissions, 0);
    assert_true(fake->barriers >= 2 * N);
    release();
    rig_wait(&t.rig, t.value);
    assert_int_equal(fake->submissions, 1);
    rig_read(&t.rig, t.b, 0, got, sizeof got);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(got[i], i + 1);
    busy_close(&t);
}

/* Neither the first submits nor one after a wait stay with the host. */
static void an_idle_device_gets_each_submit(void **state)
{
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    release();
    rig_wait(&t.rig, t.value);
    for (int i = 0; i < N; i++) {
        fill(&t, t.a, 1);
        assert_int_equal(fake->submissions, i + 1);
        rig_wait(&t.rig, t.value);
    }
    busy_close(&t);
}

/* A batch that is full does not wait. */
static void a_full_batch_is_submitted(void **state)
{
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    for (int i = 0; i < 64; i++)
        fill(&t, t.a, 1);
    assert_int_equal(fake->submissions, 1);
    fill(&t, t.a, 1);
    assert_int_equal(fake->submissions, 1);
    release();
    rig_wait(&t.rig, t.value);
    assert_int_equal(fake->submissions, 2);
    busy_close(&t);
}

/* ---- who submits it ---- */

/* Nobody calls the driver, which notices that the device is about to be idle. */
static void the_thread_submits(void **state)
{
    uint32_t got;
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    for (uint32_t i = 0; i < 3; i++) {
        fill(&t, t.a, 5 + i);
        assert_false(is_submitted_within(20));
        release();
        assert_true(is_submitted_within(5000));
        rig_wait(&t.rig, t.value);
        assert_int_equal(fake->submissions, 1);
        if (i < 2)
            hold(&t);
    }
    rig_read(&t.rig, t.a, 0, &got, sizeof got);
    assert_int_equal(got, 7);
    busy_close(&t);
}

/* One submission alone, which goes on, keeps the next submit from the device while it is young: in
 * one of many rounds at least, since a busy machine may be slower than that. */
static void a_young_submission_gathers(void **state)
{
    const struct timespec step = {0, 1000000};
    bool gathers = false, was_quick = false;
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    release();
    rig_wait(&t.rig, t.value);
    for (int round = 0; round < 1000 && !gathers; round++) {
        uint64_t begun;

        fake->held_at = t.value;
        fake->is_held = 1;
        fake->submissions = 0;
        begun = clock_ns();
        fill(&t, t.a, 1);
        fill(&t, t.a, 2);
        was_quick |= clock_ns() - begun < RECENT_NS;
        gathers = fake->submissions == 1;
        for (int ms = 0; ms < 5000 && fake->submissions < 2; ms++)
            nanosleep(&step, NULL);
        assert_int_equal(fake->submissions, 2);
        release();
        rig_wait(&t.rig, t.value);
    }
    busy_close(&t);
    if (!was_quick)
        skip(); /* the machine is too slow to submit twice within that time */
    assert_true(gathers);
}

/* A query does not submit it, and a wait for what is submitted already does not. */
static void only_waits_for_its_values_submit(void **state)
{
    frit_failure failure = {.struct_size = sizeof failure};
    uint64_t before, middle;
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    before = t.value;
    fill(&t, t.a, 7);
    middle = t.value;
    fill(&t, t.a, 8);
    for (uint64_t value = before; value <= t.value; value++)
        assert_int_equal(t.rig.backend->wait(t.rig.device, NULL, value, 0, &failure, &t.rig.err),
                         FRIT_TIMEOUT);
    assert_int_equal(t.rig.backend->wait(t.rig.device, NULL, before, 1000, &failure, &t.rig.err),
                     FRIT_TIMEOUT);
    assert_int_equal(fake->submissions, 0);
    assert_int_equal(t.rig.backend->wait(t.rig.device, NULL, middle, 1000, &failure, &t.rig.err),
                     FRIT_TIMEOUT);
    assert_int_equal(fake->submissions, 1);
    assert_int_equal(t.rig.backend->wait(t.rig.device, NULL, t.value + 1, 0, &failure, &t.rig.err),
                     FRIT_INVALID);
    release();
    rig_wait(&t.rig, t.value);
    busy_close(&t);
}

/* Closing the device ends what is still to be submitted. */
static void closed_with_an_open_batch(void **state)
{
    const frit_cmd cmd = {.struct_size = sizeof cmd, .kind = FRIT_CMD_BARRIER};
    uint64_t before;
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    before = t.value;
    t.value = rig_submit(&t.rig, &cmd, 1);
    release();
    rig_wait(&t.rig, before);
    busy_close(&t);
    assert_int_equal(fake->submissions, 1);
}

/* ---- transfers ---- */

/* b[0] = a while the batch is open; then the host writes a and reads both. */
static void write_after_an_open_copy(const char *staging)
{
    const uint32_t later = 9;
    const frit_transfer to = {.struct_size = sizeof to, .bytes = sizeof later};
    frit_transfer from = to;
    uint32_t got[2] = {0};
    frit_cmd copy;
    struct busy t;

    busy_open(&t, staging);
    copy = copy_of(t.a, t.b, 0);
    fill(&t, t.a, 7);
    t.value = rig_submit(&t.rig, &copy, 1);
    from.memory = t.a;
    assert_int_equal(t.rig.backend->write(t.rig.device, &from, &later, &t.value, &t.rig.err),
                     FRIT_OK);
    assert_int_equal(fake->submissions, 0);
    release();
    from.memory = t.b;
    assert_int_equal(t.rig.backend->read(t.rig.device, &from, &got[0], &t.value, &t.rig.err),
                     FRIT_OK);
    from.memory = t.a;
    assert_int_equal(t.rig.backend->read(t.rig.device, &from, &got[1], &t.value, &t.rig.err),
                     FRIT_OK);
    rig_wait(&t.rig, t.value);
    assert_int_equal(got[0], 7);
    assert_int_equal(got[1], 9);
    busy_close(&t);
}

static void writes_keep_their_order(void **state)
{
    (void)state;
    write_after_an_open_copy("force");
    write_after_an_open_copy(NULL);
}

/* More bytes than the staging ring has, in writes of which each may stay in the open batch. */
static void writes_fill_the_ring(void **state)
{
    enum { CHUNK = 1 << 16, CHUNKS = 300 };
    static uint8_t data[CHUNK];
    struct busy t;
    frit_transfer to = {.struct_size = sizeof to, .bytes = CHUNK};

    (void)state;
    busy_open(&t, "force");
    to.memory = rig_alloc(&t.rig, CHUNK).memory;
    for (int i = 0; i < CHUNKS; i++) {
        if (i == 40)
            release();
        memset(data, i, sizeof data);
        assert_int_equal(t.rig.backend->write(t.rig.device, &to, data, &t.value, &t.rig.err),
                         FRIT_OK);
    }
    rig_read(&t.rig, to.memory, 0, data, sizeof data);
    for (int i = 0; i < CHUNK; i++)
        assert_int_equal(data[i], (uint8_t)(CHUNKS - 1));
    t.rig.backend->free(t.rig.device, to.memory);
    busy_close(&t);
}

/* ---- recordings ---- */

/* Replays of b = a + a between fills of a. */
static void replays_join_it(void **state)
{
    const frit_capture_table *capture;
    frit_recording *recording;
    float got[N] = {0};
    struct vector vectors[3];
    struct add add;
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    capture = t.rig.plugin->get_interface(t.rig.instance, FRIT_STR(FRIT_CAPTURE_TABLE));
    assert_non_null(capture);
    vectors[0] = vectors[1] = (struct vector){t.a, 0};
    vectors[2] = (struct vector){t.b, 0};
    assert_int_equal(add_open(&t.rig, &add, vectors, 1), FRIT_OK);
    assert_int_equal(capture->record(t.rig.device, NULL, &add.cmd, 1, sizeof add.cmd, NULL, 0,
                                     sizeof(frit_param), &recording, &t.rig.err),
                     FRIT_OK);
    fake->submissions = 0;
    for (uint32_t i = 0; i < N; i++) {
        const frit_cmd copy = copy_of(t.b, t.a, i + 1);

        fill(&t, t.a, 0x3f800000 + (i << 23)); /* 2^i */
        assert_int_equal(
            capture->replay(t.rig.device, recording, NULL, NULL, 0, &t.value, &t.rig.err), FRIT_OK);
        t.value = rig_submit(&t.rig, &copy, 1);
    }
    assert_int_equal(fake->submissions, 0);
    release();
    rig_read(&t.rig, t.a, 4, got, sizeof got);
    for (uint32_t i = 0; i < N; i++)
        assert_true(got[i] == (float)(2u << i));
    capture->release(t.rig.device, recording);
    add_close(&add);
    busy_close(&t);
}

/* A long recording is a command buffer of its own, which comes after the open batch. */
static void long_replays_come_after_it(void **state)
{
    enum { LONG = 40 };
    const frit_capture_table *capture;
    frit_recording *recording;
    frit_cmd cmds[LONG];
    uint32_t got[LONG];
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    capture = t.rig.plugin->get_interface(t.rig.instance, FRIT_STR(FRIT_CAPTURE_TABLE));
    for (uint32_t i = 0; i < LONG; i++)
        cmds[i] = copy_of(t.a, t.b, i);
    assert_int_equal(capture->record(t.rig.device, NULL, cmds, LONG, sizeof *cmds, NULL, 0,
                                     sizeof(frit_param), &recording, &t.rig.err),
                     FRIT_OK);
    fill(&t, t.a, 7);
    assert_int_equal(capture->replay(t.rig.device, recording, NULL, NULL, 0, &t.value, &t.rig.err),
                     FRIT_OK);
    assert_int_equal(fake->submissions, 2);
    release();
    rig_read(&t.rig, t.b, 0, got, sizeof got);
    for (uint32_t i = 0; i < LONG; i++)
        assert_int_equal(got[i], 7);
    capture->release(t.rig.device, recording);
    busy_close(&t);
}

/* ---- failures ---- */

/* The batch cannot be submitted: each of its submits has failed, those around it have not, and
 * nobody waits forever. */
static void a_refused_batch(void **state)
{
    uint64_t before, last;
    frit_failure failure;
    uint32_t got;
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    before = t.value;
    for (uint32_t i = 0; i < 3; i++)
        fill(&t, t.a, 7);
    last = t.value;
    fake->failing_name = "QueueSubmit";
    release();
    failure = wait_for(&t, before, FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
    for (uint64_t value = before + 1; value <= last; value++) {
        failure.struct_size = sizeof failure;
        failure.value = value - 1;
        failure.command = 0;
        assert_int_equal(
            t.rig.backend->wait(t.rig.device, NULL, last, UINT64_MAX, &failure, &t.rig.err),
            FRIT_OK);
        assert_int_equal(failure.status, FRIT_NO_DEVICE_MEMORY);
        assert_int_equal(failure.value, value);
    }
    assert_string_equal(fake->failed_name, "QueueSubmit");
    fill(&t, t.a, 8);
    failure.value = last;
    assert_int_equal(
        t.rig.backend->wait(t.rig.device, NULL, t.value, UINT64_MAX, &failure, &t.rig.err),
        FRIT_OK);
    assert_int_equal(failure.value, last);
    rig_read(&t.rig, t.a, 0, &got, sizeof got);
    assert_int_equal(got, 8);
    busy_close(&t);
}

/* The last command of a submit, a timestamp, cannot be recorded.  What the batch has already runs;
 * the submit has failed, not those before and after it. */
static void a_failure_in_the_middle(void **state)
{
    frit_failure failure;
    frit_cmd cmds[3];
    uint64_t failed;
    uint32_t got;
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    fill(&t, t.a, 7);
    cmds[0] = fill_of(t.b, 5);
    cmds[1] = (frit_cmd){.struct_size = sizeof *cmds, .kind = FRIT_CMD_BARRIER};
    cmds[2] = (frit_cmd){
        .struct_size = sizeof *cmds, .kind = FRIT_CMD_TIMESTAMP, .dst = t.b, .dst_offset = 8};
    t.rig.fail_alloc = 1;
    failed = t.value = rig_submit(&t.rig, cmds, 3);
    assert_int_equal(t.rig.fail_alloc, 0);
    fill(&t, t.a, 8);
    assert_int_equal(fake->submissions, 0);
    release();
    failure = wait_for(&t, failed - 1, FRIT_OK);
    assert_int_equal(failure.status, FRIT_OK);
    failure = wait_for(&t, t.value, FRIT_OK);
    assert_int_equal(failure.status, FRIT_NO_HOST_MEMORY);
    assert_int_equal(failure.value, failed);
    failure.value = t.value;
    assert_int_equal(
        t.rig.backend->wait(t.rig.device, NULL, t.value, UINT64_MAX, &failure, &t.rig.err),
        FRIT_OK);
    assert_int_equal(failure.value, t.value);
    rig_read(&t.rig, t.b, 0, &got, sizeof got);
    assert_int_equal(got, 5);
    rig_read(&t.rig, t.a, 0, &got, sizeof got);
    assert_int_equal(got, 8);
    busy_close(&t);
}

static void lost_with_an_open_batch(void **state)
{
    const frit_cmd cmd = {.struct_size = sizeof cmd, .kind = FRIT_CMD_BARRIER};
    frit_failure failure;
    uint64_t value;
    struct busy t;

    (void)state;
    busy_open(&t, "force");
    fill(&t, t.a, 7);
    fake->is_lost = 1;
    assert_int_equal(
        t.rig.backend->submit(t.rig.device, NULL, &cmd, 1, sizeof cmd, NULL, 0, &value, &t.rig.err),
        FRIT_DEVICE_LOST);
    release();
    failure = wait_for(&t, t.value, FRIT_DEVICE_LOST);
    assert_int_equal(failure.status, FRIT_DEVICE_LOST);
    t.rig.backend->free(t.rig.device, t.a);
    t.rig.backend->free(t.rig.device, t.b);
    t.rig.backend->device_close(t.rig.device);
    fake->is_lost = 0;
    rig_open_device(&t.rig);
    t.a = t.b = NULL;
    busy_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_submits_are_one_submission),
        cmocka_unit_test(an_idle_device_gets_each_submit),
        cmocka_unit_test(a_full_batch_is_submitted),
        cmocka_unit_test(the_thread_submits),
        cmocka_unit_test(a_young_submission_gathers),
        cmocka_unit_test(only_waits_for_its_values_submit),
        cmocka_unit_test(closed_with_an_open_batch),
        cmocka_unit_test(writes_keep_their_order),
        cmocka_unit_test(writes_fill_the_ring),
        cmocka_unit_test(replays_join_it),
        cmocka_unit_test(long_replays_come_after_it),
        cmocka_unit_test(a_refused_batch),
        cmocka_unit_test(a_failure_in_the_middle),
        cmocka_unit_test(lost_with_an_open_batch),
    };
    const int skips = rig_skips();

    return skips ? skips : cmocka_run_group_tests(tests, fake_open, NULL);
}
