/* SPDX-License-Identifier: Apache-2.0 */
/* Every view row against an index map written down independently: element by element. */
#include "unit.h"

#include <string.h>

#include "graph/op.h"
#include "tensor/layout.h"

static struct op_type type_of(uint32_t rank, const int64_t *dims)
{
    struct op_type type = {.dtype = FRIT_F32, .rank = rank};

    memcpy(type.dims, dims, rank * sizeof(*dims));
    return type;
}

#define TYPE(...) type_of(sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

static void unravel(const struct op_type *type, int64_t n, int64_t *at)
{
    for (uint32_t i = type->rank; i-- > 0;) {
        at[i] = n % type->dims[i];
        n /= type->dims[i];
    }
}

static int64_t place(const struct op_type *type, const struct layout *layout, const int64_t *at)
{
    int64_t where = layout->offset;

    for (uint32_t i = 0; i < type->rank; i++)
        where += at[i] * layout->strides[i];
    return where;
}

static void test_reshape_keeps_the_order(void **state)
{
    struct op_type in = TYPE(4, 6, 5), out = TYPE(2, 2, 3, 2, 1, 5);
    struct layout from, to;
    int64_t a[8] = {0}, b[8] = {0};

    (void)state;
    layout_dense(&in, &from);
    from.offset = 7;
    assert_true(layout_view(FRIT_OP_reshape, NULL, &in, &from, &out, &to));
    for (int64_t n = 0; n < op_elements(&in); n++) {
        unravel(&in, n, a);
        unravel(&out, n, b);
        assert_int_equal(place(&in, &from, a), place(&out, &to, b));
    }
}

/* Dims with gaps between them cannot merge, those without can; extents 1 never matter. */
static void test_reshape_of_strided(void **state)
{
    struct op_type in = TYPE(4, 1, 6), merged = TYPE(24), split = TYPE(2, 2, 3, 2);
    struct layout from = {.offset = 3, .strides = {10, 999, 1}}, to;
    int64_t a[8] = {0}, b[8] = {0};

    (void)state;
    assert_false(layout_view(FRIT_OP_reshape, NULL, &in, &from, &merged, &to));
    assert_true(layout_view(FRIT_OP_reshape, NULL, &in, &from, &split, &to));
    for (int64_t n = 0; n < 24; n++) {
        unravel(&in, n, a);
        unravel(&split, n, b);
        assert_int_equal(place(&in, &from, a), place(&split, &to, b));
    }
    from.strides[0] = 6;
    assert_true(layout_view(FRIT_OP_reshape, NULL, &in, &from, &merged, &to));
    assert_int_equal(to.strides[0], 1);
    from.strides[0] = -6;
    from.strides[2] = -1;
    assert_true(layout_view(FRIT_OP_reshape, NULL, &in, &from, &merged, &to));
    assert_int_equal(to.strides[0], -1);
}

static void test_reshape_from_and_to_one_element(void **state)
{
    struct op_type scalar = {.dtype = FRIT_F32}, ones = TYPE(1, 1, 1);
    struct layout from = {.offset = 5}, to;

    (void)state;
    assert_true(layout_view(FRIT_OP_reshape, NULL, &scalar, &from, &ones, &to));
    assert_int_equal(to.offset, 5);
    assert_true(layout_view(FRIT_OP_reshape, NULL, &ones, &to, &scalar, &from));
    assert_int_equal(from.offset, 5);
}

static void test_permute(void **state)
{
    struct op_type in = TYPE(2, 3, 4), out = TYPE(4, 2, 3);
    frit_attrs_order attrs = {.order = {3, {2, 0, 1}}};
    struct layout from, to;

    (void)state;
    layout_dense(&in, &from);
    assert_true(layout_view(FRIT_OP_permute, &attrs, &in, &from, &out, &to));
    for (int64_t n = 0; n < 24; n++) {
        int64_t a[8] = {0}, b[3];

        unravel(&in, n, a);
        b[0] = a[2], b[1] = a[0], b[2] = a[1];
        assert_int_equal(place(&out, &to, b), n);
    }
}

static void test_expand_repeats_without_moving(void **state)
{
    struct op_type in = TYPE(3, 1), out = TYPE(2, 3, 4);
    struct layout from, to;

    (void)state;
    layout_dense(&in, &from);
    assert_true(layout_view(FRIT_OP_expand, NULL, &in, &from, &out, &to));
    for (int64_t n = 0; n < 24; n++) {
        int64_t b[8] = {0};

        unravel(&out, n, b);
        assert_int_equal(place(&out, &to, b), b[1]);
    }
}

static void test_slice_steps_both_ways(void **state)
{
    struct op_type in = TYPE(10, 7), out = TYPE(3, 4);
    frit_attrs_slice attrs = {.slices = {2, {{2, 9, 3}, {6, -1, -2}}}};
    struct layout from, to;

    (void)state;
    layout_dense(&in, &from);
    assert_true(layout_view(FRIT_OP_slice, &attrs, &in, &from, &out, &to));
    for (int64_t i = 0; i < 3; i++) {
        for (int64_t j = 0; j < 4; j++)
            assert_int_equal(place(&out, &to, (int64_t[]){i, j}), (2 + 3 * i) * 7 + 6 - 2 * j);
    }
}

static void test_flip(void **state)
{
    struct op_type in = TYPE(3, 4);
    frit_attrs_axes attrs = {.axes = {1, {1}}};
    struct layout from, to;
    int64_t low, high;

    (void)state;
    layout_dense(&in, &from);
    assert_true(layout_view(FRIT_OP_flip, &attrs, &in, &from, &in, &to));
    for (int64_t i = 0; i < 3; i++) {
        for (int64_t j = 0; j < 4; j++)
            assert_int_equal(place(&in, &to, (int64_t[]){i, j}), i * 4 + 3 - j);
    }
    layout_span(&in, &to, &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 11);
    in.dims[1] = 0;
    layout_span(&in, &to, &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 0);
}

static void test_unfold_overlaps(void **state)
{
    struct op_type in = TYPE(2, 9), out = TYPE(2, 3, 5);
    frit_attrs_unfold attrs = {.axis = 1, .size = 5, .step = 2};
    struct layout from, to;

    (void)state;
    layout_dense(&in, &from);
    assert_true(layout_view(FRIT_OP_unfold, &attrs, &in, &from, &out, &to));
    for (int64_t n = 0; n < 30; n++) {
        int64_t b[8] = {0};

        unravel(&out, n, b);
        assert_int_equal(place(&out, &to, b), b[0] * 9 + b[1] * 2 + b[2]);
    }
}

static void test_density(void **state)
{
    struct op_type type = TYPE(3, 1, 4), empty = TYPE(0, 4);
    struct layout layout;

    (void)state;
    layout_dense(&type, &layout);
    assert_true(layout_is_dense(&type, &layout));
    layout.strides[1] = 77; /* of extent 1 */
    assert_true(layout_is_dense(&type, &layout));
    layout.strides[0] = 5;
    assert_false(layout_is_dense(&type, &layout));
    assert_true(layout_is_dense(&empty, &layout));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reshape_keeps_the_order),
        cmocka_unit_test(test_reshape_of_strided),
        cmocka_unit_test(test_reshape_from_and_to_one_element),
        cmocka_unit_test(test_permute),
        cmocka_unit_test(test_expand_repeats_without_moving),
        cmocka_unit_test(test_slice_steps_both_ways),
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_unfold_overlaps),
        cmocka_unit_test(test_density),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
