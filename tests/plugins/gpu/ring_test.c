/* SPDX-License-Identifier: Apache-2.0 */
/* The ring allocator: offsets, order of freeing, the end of the ring, open spans. */
#include "unit.h"

#include "gpu/ring.h"

static int destination;

static void spans_are_freed_in_order(void **state)
{
    static struct ring ring;
    struct ring_span span;

    (void)state;
    ring_init(&ring, 1024);
    assert_int_equal(ring_take(&ring, 100, 64, &destination), 0);
    assert_int_equal(ring_take(&ring, 100, 64, NULL), 128);
    assert_int_equal(ring_oldest_value(&ring), 0);
    assert_false(ring_pop(&ring, 100, &span));
    ring_seal(&ring, 5);
    assert_int_equal(ring_take(&ring, 8, 64, NULL), 256);
    ring_seal(&ring, 6);
    assert_int_equal(ring_oldest_value(&ring), 5);
    assert_false(ring_pop(&ring, 4, &span));
    assert_true(ring_pop(&ring, 5, &span));
    assert_ptr_equal(span.copy_to, &destination);
    assert_int_equal(span.offset, 0);
    assert_int_equal(span.bytes, 100);
    assert_true(ring_pop(&ring, 5, &span));
    assert_null(span.copy_to);
    assert_false(ring_pop(&ring, 5, &span));
    assert_true(ring_pop(&ring, 6, &span));
    assert_int_equal(ring_oldest_value(&ring), 0);
}

/* Bytes at the end of the ring that are too few for a span are skipped, and count as in use. */
static void a_span_never_wraps(void **state)
{
    static struct ring ring;
    struct ring_span span;

    (void)state;
    ring_init(&ring, 1024);
    assert_int_equal(ring_take(&ring, 500, 4, &destination), 0);
    ring_seal(&ring, 1);
    assert_int_equal(ring_take(&ring, 200, 4, &destination), 500);
    ring_seal(&ring, 2);
    assert_int_equal(ring_take(&ring, 400, 4, &destination), RING_FULL);
    assert_true(ring_pop(&ring, 1, &span));
    assert_int_equal(ring_take(&ring, 504, 4, &destination), RING_FULL);
    assert_int_equal(ring_take(&ring, 400, 4, &destination), 0);
    ring_seal(&ring, 3);
    assert_int_equal(ring_take(&ring, 104, 4, &destination), RING_FULL);
    assert_int_equal(ring_take(&ring, 100, 4, &destination), 400);
    ring_seal(&ring, 4);
    assert_true(ring_pop(&ring, 2, &span));
    assert_int_equal(ring_take(&ring, 201, 4, &destination), RING_FULL);
    assert_int_equal(ring_take(&ring, 200, 4, &destination), 500);
}

/* Small allocations for one batch share a span, so that spans do not run out before bytes do. */
static void open_spans_grow(void **state)
{
    static struct ring ring;
    struct ring_span span;

    (void)state;
    ring_init(&ring, 1 << 16);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(ring_take(&ring, 16, 16, NULL), 16 * i);
    ring_seal(&ring, 1);
    for (uint64_t i = 0; i < RING_SPANS - 1; i++) {
        assert_true(ring_take(&ring, 16, 16, NULL) != RING_FULL);
        ring_seal(&ring, 2 + i);
    }
    assert_int_equal(ring_take(&ring, 16, 16, NULL), RING_FULL);
    assert_true(ring_pop(&ring, 1, &span));
    assert_true(ring_take(&ring, 16, 16, NULL) != RING_FULL);
}

static void spans_are_cancelled(void **state)
{
    static struct ring ring;
    struct ring_span span;

    (void)state;
    ring_init(&ring, 1024);
    (void)ring_take(&ring, 64, 64, &destination);
    ring_seal(&ring, 1);
    (void)ring_take(&ring, 512, 64, NULL);
    ring_cancel(&ring);
    assert_int_equal(ring_take(&ring, 960, 64, NULL), 64);
    ring_cancel(&ring);
    ring_drop_copies(&ring, &destination, sizeof destination);
    assert_true(ring_pop(&ring, 1, &span));
    assert_null(span.copy_to);
    ring_cancel(&ring);
    assert_int_equal(ring_take(&ring, 1024, 64, NULL), 0); /* an empty ring restarts at 0 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_freed_in_order),
        cmocka_unit_test(a_span_never_wraps),
        cmocka_unit_test(open_spans_grow),
        cmocka_unit_test(spans_are_cancelled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
