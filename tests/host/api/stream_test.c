/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that a program opens: entering nests and drains nothing, values cross without copies,
 * only one thread at a time is in one, closed ones serve again. */
#include "api/rig.h"

#include <pthread.h>

#include <frit/inspect.h>

static const float four[4] = {1, 2, 3, 4};

static void expect(frit_tensor *tensor, float first)
{
    float out[4];

    assert_int_equal(frit_read(tensor, out, sizeof(out), NULL), FRIT_OK);
    for (int i = 0; i < 4; i++)
        assert_true(out[i] == first * four[i]);
}

static frit_stream *enter(struct rig *rig, frit_stream *stream)
{
    frit_stream *before = (frit_stream *)rig;

    assert_int_equal(frit_stream_enter(rig->dev, stream, &before, NULL), FRIT_OK);
    return before;
}

static uint64_t drains(const struct rig *rig)
{
    frit_stats stats = rig_stats(rig);

    return stats.drains_read + stats.drains_sync + stats.drains_share + stats.drains_full +
           stats.drains_scope;
}

static void test_entering_nests(void **state)
{
    struct rig rig;
    frit_stream *a, *b;

    (void)state;
    rig_open(&rig, NULL, 0);
    assert_int_equal(frit_stream_open(rig.dev, &a, NULL), FRIT_OK);
    assert_int_equal(frit_stream_open(rig.dev, &b, NULL), FRIT_OK);
    assert_non_null(a);
    assert_ptr_not_equal(a, b);
    assert_null(enter(&rig, a));
    assert_ptr_equal(enter(&rig, b), a);
    assert_ptr_equal(enter(&rig, b), b);
    assert_ptr_equal(enter(&rig, a), b);
    assert_ptr_equal(enter(&rig, NULL), a);
    assert_null(enter(&rig, NULL));
    assert_int_equal(frit_stream_enter(rig.dev, a, NULL, NULL), FRIT_OK);
    assert_int_equal(frit_stream_enter(rig.dev, NULL, NULL, NULL), FRIT_OK);
    assert_int_equal(frit_stream_close(a, NULL), FRIT_OK);
    assert_int_equal(frit_stream_close(b, NULL), FRIT_OK);
    assert_int_equal(frit_stream_close(NULL, NULL), FRIT_OK);
    rig_close(&rig);
}

/* An op waits in each stream; nothing runs when the thread goes from one to the other, and a sync
 * runs only the stream that it is in. */
static void test_entering_runs_nothing(void **state)
{
    struct rig rig;
    frit_stream *stream;
    frit_tensor *x, *mine, *there;

    (void)state;
    rig_open(&rig, NULL, 0);
    x = rig_f32(&rig, FRIT_SHAPE(4), four);
    assert_int_equal(frit_stream_open(rig.dev, &stream, NULL), FRIT_OK);
    mine = frit_neg(x);
    enter(&rig, stream);
    there = frit_mul_f(x, 2);
    assert_int_equal(rig_stats(&rig).queued_now, 2);
    enter(&rig, NULL);
    assert_int_equal(rig_stats(&rig).queued_now, 2);
    assert_int_equal(drains(&rig), 0);
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    assert_int_equal(rig_stats(&rig).queued_now, 1);
    expect(frit_take(there), 2);
    expect(frit_take(mine), -1);
    frit_release(x);
    assert_int_equal(frit_stream_close(stream, NULL), FRIT_OK);
    rig_close(&rig);
}

/* The first use elsewhere of what is pending runs its stream, once; later uses find it. */
static void test_values_cross_streams(void **state)
{
    struct rig rig;
    frit_stream *stream;
    frit_tensor *x, *y, *again, *back;

    (void)state;
    rig_open(&rig, NULL, 0);
    assert_int_equal(frit_stream_open(rig.dev, &stream, NULL), FRIT_OK);
    x = frit_mul_f(frit_take(rig_f32(&rig, FRIT_SHAPE(4), four)), 3);
    enter(&rig, stream);
    y = frit_neg(x);
    assert_int_equal(rig_stats(&rig).drains_share, 1);
    again = frit_add(x, x);
    enter(&rig, NULL);
    back = frit_neg(again);
    assert_int_equal(rig_stats(&rig).drains_share, 2);
    assert_int_equal(rig_stats(&rig).bytes_out, 0);
    expect(frit_take(back), -6);
    expect(frit_take(again), 6);
    expect(frit_take(y), -3);
    expect(frit_take(x), 3);
    assert_int_equal(frit_stream_close(stream, NULL), FRIT_OK);
    rig_close(&rig);
}

/* A refused enter leaves the thread where it is. */
static void test_what_cannot_be_entered(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct rig rig, other;
    frit_stream *stream, *foreign, *closed, *before = NULL;

    (void)state;
    rig_open(&rig, NULL, 0);
    rig_open(&other, NULL, 0);
    assert_int_equal(frit_stream_open(rig.dev, &stream, &err), FRIT_OK);
    assert_int_equal(frit_stream_open(rig.dev, &closed, &err), FRIT_OK);
    assert_int_equal(frit_stream_open(other.dev, &foreign, &err), FRIT_OK);
    enter(&rig, stream);
    assert_int_equal(frit_stream_close(closed, &err), FRIT_OK);
    assert_int_equal(frit_stream_enter(rig.dev, foreign, &before, &err), FRIT_INVALID);
    assert_non_null(strstr(err.text, "reference:0"));
    assert_int_equal(frit_stream_enter(rig.dev, closed, &before, &err), FRIT_INVALID);
    assert_int_equal(frit_stream_enter(rig.dev, (frit_stream *)&before, &before, &err),
                     FRIT_INVALID);
    assert_int_equal(frit_stream_enter(NULL, stream, &before, &err), FRIT_INVALID);
    assert_int_equal(frit_stream_open(NULL, &before, NULL), FRIT_INVALID);
    assert_null(before);
    assert_int_equal(frit_stream_close(closed, &err), FRIT_INVALID);
    assert_int_equal(frit_stream_close(stream, &err), FRIT_BUSY);
    assert_non_null(strstr(err.text, "leave it first"));
    assert_ptr_equal(enter(&rig, NULL), stream);
    assert_int_equal(frit_stream_close(stream, &err), FRIT_OK);
    assert_int_equal(frit_stream_close(foreign, &err), FRIT_OK);
    rig_close(&other);
    rig_close(&rig);
}

/* Closing runs what waits, and what was made lives on. */
static void test_values_outlive_their_stream(void **state)
{
    struct rig rig;
    frit_stream *stream;
    frit_tensor *y;

    (void)state;
    rig_open(&rig, NULL, 0);
    assert_int_equal(frit_stream_open(rig.dev, &stream, NULL), FRIT_OK);
    enter(&rig, stream);
    y = frit_neg(frit_take(rig_f32(&rig, FRIT_SHAPE(4), four)));
    enter(&rig, NULL);
    assert_int_equal(rig_stats(&rig).queued_now, 1);
    assert_int_equal(frit_stream_close(stream, NULL), FRIT_OK);
    assert_int_equal(rig_stats(&rig).queued_now, 0);
    expect(frit_take(frit_neg(y)), 1);
    expect(frit_take(y), -1);
    rig_close(&rig);
}

/* As many streams as are open at once. */
static void test_closed_streams_serve_again(void **state)
{
    struct rig rig;
    frit_stream *first, *again;

    (void)state;
    rig_open(&rig, NULL, 0);
    assert_int_equal(frit_stream_open(rig.dev, &first, NULL), FRIT_OK);
    for (int i = 0; i < 100; i++) {
        frit_tensor *wrong;

        enter(&rig, first);
        wrong = frit_reshape(frit_take(rig_f32(&rig, FRIT_SHAPE(4), four)), FRIT_SHAPE(5));
        enter(&rig, NULL);
        frit_release(wrong);
        assert_int_equal(frit_stream_close(first, NULL), FRIT_OK);
        assert_int_equal(frit_stream_open(rig.dev, &again, NULL), FRIT_OK);
        assert_ptr_equal(again, first);
        enter(&rig, first);
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK); /* the error was the old one's */
        enter(&rig, NULL);
    }
    assert_int_equal(frit_stream_close(first, NULL), FRIT_OK);
    rig_close(&rig);
}

/* ---- threads ---- */

struct job {
    struct rig rig;
    frit_stream *stream;
    frit_tensor *value;
    frit_status status;
};

static void *enter_there(void *arg)
{
    struct job *job = arg;

    job->status = frit_stream_enter(job->rig.dev, job->stream, NULL, NULL);
    if (!job->status)
        job->value = frit_neg(frit_take(rig_f32(&job->rig, FRIT_SHAPE(4), four)));
    return NULL;
}

static void in_thread(struct job *job)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, enter_there, job), 0);
    pthread_join(thread, NULL);
}

static void test_one_thread_is_in_a_stream(void **state)
{
    struct job job = {0};

    (void)state;
    rig_open(&job.rig, NULL, 0);
    assert_int_equal(frit_stream_open(job.rig.dev, &job.stream, NULL), FRIT_OK);
    enter(&job.rig, job.stream);
    in_thread(&job);
    assert_int_equal(job.status, FRIT_BUSY);
    enter(&job.rig, NULL);
    in_thread(&job); /* and ends in it */
    assert_int_equal(job.status, FRIT_OK);
    assert_int_equal(rig_stats(&job.rig).queued_now, 1);
    enter(&job.rig, job.stream);
    expect(frit_take(job.value), -1);
    enter(&job.rig, NULL);
    assert_int_equal(frit_stream_close(job.stream, NULL), FRIT_OK);
    rig_close(&job.rig);
}

static void *neg(void *arg)
{
    struct job *job = arg;

    job->value = frit_neg(job->value);
    return NULL;
}

/* [stream] single: both threads record into one queue, and none can be opened. */
static void test_one_stream_for_all(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    const frit_setting single = {"stream", "single", "yes"};
    struct job job = {0};
    pthread_t thread;
    frit_tensor *x;

    (void)state;
    rig_open(&job.rig, &single, 1);
    assert_int_equal(frit_stream_open(job.rig.dev, &job.stream, &err), FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "single"));
    assert_null(enter(&job.rig, NULL));
    x = job.value = frit_mul_f(frit_take(rig_f32(&job.rig, FRIT_SHAPE(4), four)), 2);
    assert_int_equal(pthread_create(&thread, NULL, neg, &job), 0);
    pthread_join(thread, NULL);
    assert_int_equal(drains(&job.rig), 0); /* no value crossed anything */
    assert_int_equal(rig_stats(&job.rig).queued_now, 2);
    assert_int_equal(frit_sync(job.rig.dev, &err), FRIT_OK);
    assert_int_equal(rig_stats(&job.rig).queued_now, 0);
    expect(frit_take(job.value), -2);
    expect(frit_take(x), 2);
    rig_close(&job.rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entering_nests),
        cmocka_unit_test(test_entering_runs_nothing),
        cmocka_unit_test(test_values_cross_streams),
        cmocka_unit_test(test_what_cannot_be_entered),
        cmocka_unit_test(test_values_outlive_their_stream),
        cmocka_unit_test(test_closed_streams_serve_again),
        cmocka_unit_test(test_one_thread_is_in_a_stream),
        cmocka_unit_test(test_one_stream_for_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
