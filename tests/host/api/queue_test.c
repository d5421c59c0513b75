/* SPDX-License-Identifier: Apache-2.0 */
/* Streams on queues of their own: what one makes another reads, and memory that one has used
 * another takes, without anybody waiting on the host.
 *
 * On the device of tests/fake/late each queue holds its work back until somebody waits for it, so
 * that what runs in a wrong order computes something else.  Each case runs a second time on queues
 * that do not wait for each other, and has to notice. */
#include "plugin_rig.h"

#include <stdbool.h>

#define RIG_LATE "fake/late/libfrit-reference-late.so"

enum { ROUNDS = 24, ELEMENTS = 96 };

struct queue_rig {
    struct plugin_rig rig;
    frit_stream *makes, *reads;
    int wrong; /* results */
};

static void queue_rig_open(struct queue_rig *b, bool deaf, const char *fail_launch)
{
    *b = (struct queue_rig){0};
    rig_plugin(&b->rig, "plugin.reference", RIG_LATE);
    rig_set(&b->rig, "stream", "queues", "2");
    rig_set(&b->rig, "plugin.reference", "option.hold", "1000");
    rig_set(&b->rig, "plugin.reference", "option.deaf", deaf ? "yes" : "no");
    rig_set(&b->rig, "plugin.reference", "option.fail_launch", fail_launch);
    rig_open(&b->rig, "reference:0");
    assert_int_equal(frit_stream_open(b->rig.dev, &b->makes, NULL), FRIT_OK);
    assert_int_equal(frit_stream_open(b->rig.dev, &b->reads, NULL), FRIT_OK);
    assert_non_null(b->makes);
    assert_non_null(b->reads);
}

static void enter(struct queue_rig *b, frit_stream *stream)
{
    assert_int_equal(frit_stream_enter(b->rig.dev, stream, NULL, NULL), FRIT_OK);
}

static void queue_rig_close(struct queue_rig *b)
{
    enter(b, NULL);
    frit_stream_close(b->makes, NULL);
    frit_stream_close(b->reads, NULL);
    rig_close(&b->rig);
}

static frit_tensor *given(struct queue_rig *b, float value)
{
    float data[ELEMENTS];

    for (int i = 0; i < ELEMENTS; i++)
        data[i] = value + (float)i;
    return frit_from_host(b->rig.dev, FRIT_F32, FRIT_SHAPE(ELEMENTS), data, sizeof(data));
}

/* Negated on the stream, submitted; the operand is released. */
static frit_tensor *negated(struct queue_rig *b, frit_stream *stream, frit_tensor *x)
{
    frit_tensor *y;

    enter(b, stream);
    y = frit_neg(x);
    frit_release(x);
    assert_int_equal(frit_flush(b->rig.dev, NULL), FRIT_OK);
    return y;
}

/* Reads and releases; counts what is not +-(value + i). */
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

/* What one stream made another reads. */
static void consume(struct queue_rig *b, float value)
{
    frit_tensor *y = negated(b, b->makes, given(b, value));

    expect(b, negated(b, b->reads, y), 1, value);
}

/* A stream reads what dies then; its memory gets another stream's result, which is wanted first. */
static void reuse(struct queue_rig *b, float value)
{
    frit_tensor *other = given(b, 1000 + value), *y = negated(b, b->makes, given(b, value)), *z;

    expect(b, frit_ref(y), -1, value);
    z = negated(b, b->reads, y);
    expect(b, negated(b, b->makes, other), -1, 1000 + value);
    expect(b, z, 1, value);
}

/* The same, and the memory gets bytes of the program. */
static void refill(struct queue_rig *b, float value)
{
    frit_tensor *y = negated(b, b->makes, given(b, value)), *z, *other;

    expect(b, frit_ref(y), -1, value);
    z = negated(b, b->reads, y);
    enter(b, b->makes);
    other = given(b, 1000 + value);
    expect(b, other, 1, 1000 + value);
    expect(b, z, 1, value);
}

static int count_wrong(void (*one)(struct queue_rig *b, float value), bool deaf)
{
    struct queue_rig b;

    queue_rig_open(&b, deaf, "0");
    for (int i = 0; i < ROUNDS; i++)
        one(&b, (float)i);
    queue_rig_close(&b);
    return b.wrong;
}

static void test_a_stream_reads_what_another_made(void **state)
{
    (void)state;
    assert_int_equal(count_wrong(consume, false), 0);
    assert_int_not_equal(count_wrong(consume, true), 0);
}

static void test_memory_is_reused_behind_its_last_readers(void **state)
{
    (void)state;
    assert_int_equal(count_wrong(reuse, false), 0);
    assert_int_not_equal(count_wrong(reuse, true), 0);
}

static void test_memory_is_refilled_behind_its_last_readers(void **state)
{
    (void)state;
    assert_int_equal(count_wrong(refill, false), 0);
    assert_int_not_equal(count_wrong(refill, true), 0);
}

/* Who waits for the one queue learns what failed on the other, as far as it comes from there. */
static void test_a_failure_crosses_queues(void **state)
{
    float out[ELEMENTS];
    struct queue_rig b;
    frit_tensor *z;

    (void)state;
    queue_rig_open(&b, false, "1");
    z = negated(&b, b.reads, negated(&b, b.makes, given(&b, 1)));
    assert_int_equal(frit_read(z, out, sizeof(out), NULL), FRIT_IO);
    assert_non_null(strstr(frit_tensor_error(z), "it was to fail"));
    frit_release(z);
    expect(&b, negated(&b, b.reads, given(&b, 2)), -1, 2);
    assert_int_equal(b.wrong, 0);
    queue_rig_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_reads_what_another_made),
        cmocka_unit_test(test_memory_is_reused_behind_its_last_readers),
        cmocka_unit_test(test_memory_is_refilled_behind_its_last_readers),
        cmocka_unit_test(test_a_failure_crosses_queues),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
