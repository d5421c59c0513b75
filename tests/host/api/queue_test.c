/* SPDX-License-Identifier: Apache-2.0 */
/* Streams on queues of their own: one stream reads the results of another, and reuses the memory of
 * another, without any wait on the host.
 *
 * On the device of tests/fake/late each queue holds its work back until somebody waits for it, so
 * that a missing wait gives wrong results.  Each case runs a second time on queues that do not wait
 * for each other, and its results must be wrong then. */
#include "plugin_rig.h"

#include <stdbool.h>

#define RIG_LATE "fake/late/libfrit-reference-late.so"

enum { ROUNDS = 24, ELEMENTS = 96 };

struct queue_rig {
    struct plugin_rig rig;
    frit_stream *producer, *consumer;
    int wrong; /* number of wrong results */
};

static void queue_rig_open(struct queue_rig *b, bool ignore_waits, const char *fail_launch)
{
    *b = (struct queue_rig){0};
    rig_plugin(&b->rig, "plugin.reference", RIG_LATE);
    rig_set(&b->rig, "stream", "queues", "2");
    rig_set(&b->rig, "plugin.reference", "option.hold", "1000");
    rig_set(&b->rig, "plugin.reference", "option.ignore_waits", ignore_waits ? "yes" : "no");
    rig_set(&b->rig, "plugin.reference", "option.fail_launch", fail_launch);
    rig_open(&b->rig, "reference:0");
    assert_int_equal(frit_stream_open(b->rig.dev, &b->producer, NULL), FRIT_OK);
    assert_int_equal(frit_stream_open(b->rig.dev, &b->consumer, NULL), FRIT_OK);
    assert_non_null(b->producer);
    assert_non_null(b->consumer);
}

static void enter(struct queue_rig *b, frit_stream *stream)
{
    assert_int_equal(frit_stream_enter(b->rig.dev, stream, NULL, NULL), FRIT_OK);
}

static void queue_rig_close(struct queue_rig *b)
{
    enter(b, NULL);
    frit_stream_close(b->producer, NULL);
    frit_stream_close(b->consumer, NULL);
    rig_close(&b->rig);
}

static frit_tensor *make_input(struct queue_rig *b, float value)
{
    float data[ELEMENTS];

    for (int i = 0; i < ELEMENTS; i++)
        data[i] = value + (float)i;
    return frit_from_host(b->rig.dev, FRIT_F32, FRIT_SHAPE(ELEMENTS), data, sizeof(data));
}

/* Submits a negation on the stream and releases the operand. */
static frit_tensor *negate_on(struct queue_rig *b, frit_stream *stream, frit_tensor *x)
{
    frit_tensor *y;

    enter(b, stream);
    y = frit_neg(x);
    frit_release(x);
    assert_int_equal(frit_flush(b->rig.dev, NULL), FRIT_OK);
    return y;
}

/* Reads and releases a tensor; counts it as wrong unless element i is sign * (value + i). */
static void expect(struct queue_rig *b, frit_tensor *tensor, float sign, float value)
{
    float out[ELEMENTS] = {0};

    if (frit_read(tensor, out, sizeof(out), NULL))
        fail_msg("%s", frit_tensor_error(tensor));
    frit_release(tensor);
    for (int i = 0; i < ELEMENTS; i++) {
        if (out[i] != sign * (value + (float)i)) {
            b->wrong++;
            return;
        }
    }
}

/* ---- cases ---- */

/* The consumer reads a result of the producer. */
static void consume(struct queue_rig *b, float value)
{
    frit_tensor *y = negate_on(b, b->producer, make_input(b, value));

    expect(b, negate_on(b, b->consumer, y), 1, value);
}

/* The consumer is the last to read a tensor.  The producer's next result gets its memory and is
 * read back before the consumer's. */
static void reuse(struct queue_rig *b, float value)
{
    frit_tensor *other = make_input(b, 1000 + value),
                *y = negate_on(b, b->producer, make_input(b, value)), *z;

    expect(b, frit_ref(y), -1, value);
    z = negate_on(b, b->consumer, y);
    expect(b, negate_on(b, b->producer, other), -1, 1000 + value);
    expect(b, z, 1, value);
}

/* The same, but the memory is filled from the host. */
static void refill(struct queue_rig *b, float value)
{
    frit_tensor *y = negate_on(b, b->producer, make_input(b, value)), *z, *other;

    expect(b, frit_ref(y), -1, value);
    z = negate_on(b, b->consumer, y);
    enter(b, b->producer);
    other = make_input(b, 1000 + value);
    expect(b, other, 1, 1000 + value);
    expect(b, z, 1, value);
}

static int count_wrong(void (*run_case)(struct queue_rig *b, float value), bool ignore_waits)
{
    struct queue_rig b;

    queue_rig_open(&b, ignore_waits, "0");
    for (int i = 0; i < ROUNDS; i++)
        run_case(&b, (float)i);
    queue_rig_close(&b);
    return b.wrong;
}

static void test_a_stream_reads_what_another_made(void **state)
{
    (void)state;
    assert_int_equal(count_wrong(consume, false), 0);
    assert_int_not_equal(count_wrong(consume, true), 0);
}

static void test_memory_is_reused_after_its_last_readers(void **state)
{
    (void)state;
    assert_int_equal(count_wrong(reuse, false), 0);
    assert_int_not_equal(count_wrong(reuse, true), 0);
}

static void test_memory_is_refilled_after_its_last_readers(void **state)
{
    (void)state;
    assert_int_equal(count_wrong(refill, false), 0);
    assert_int_not_equal(count_wrong(refill, true), 0);
}

/* Waiting for one queue reports a failure on another one if the awaited result depends on it. */
static void test_a_failure_crosses_queues(void **state)
{
    float out[ELEMENTS];
    struct queue_rig b;
    frit_tensor *z;

    (void)state;
    queue_rig_open(&b, false, "1");
    z = negate_on(&b, b.consumer, negate_on(&b, b.producer, make_input(&b, 1)));
    assert_int_equal(frit_read(z, out, sizeof(out), NULL), FRIT_IO);
    assert_non_null(strstr(frit_tensor_error(z), "it was to fail"));
    frit_release(z);
    expect(&b, negate_on(&b, b.consumer, make_input(&b, 2)), -1, 2);
    assert_int_equal(b.wrong, 0);
    queue_rig_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_reads_what_another_made),
        cmocka_unit_test(test_memory_is_reused_after_its_last_readers),
        cmocka_unit_test(test_memory_is_refilled_after_its_last_readers),
        cmocka_unit_test(test_a_failure_crosses_queues),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
