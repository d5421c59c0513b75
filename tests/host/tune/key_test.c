/* SPDX-License-Identifier: Apache-2.0 */
/* Which launches share a key, and which do not. */
#include "tune/key.h"

#include "unit.h"

#include <string.h>

#include "base/str.h"

static const uint8_t digest[TUNE_DIGEST] = {1, 2, 3};

/* A matrix and its sum over rows. */
struct call {
    frit_arg_sig args[2];
    frit_signature sig;
};

static void make(struct call *call, int64_t rows, int64_t columns)
{
    *call = (struct call){
        .args = {{.dtype = FRIT_F32,
                  .rank = 2,
                  .align_log2 = 6,
                  .flags = FRIT_ARG_READ,
                  .dims = {rows, columns},
                  .strides = {columns, 1}},
                 {.dtype = FRIT_F32,
                  .rank = 1,
                  .align_log2 = 6,
                  .flags = FRIT_ARG_WRITE,
                  .dims = {rows},
                  .strides = {1}}},
        .sig = {.n_in = 1, .n_out = 1, .arg_stride = sizeof(frit_arg_sig), .index_width = 32}};
    call->sig.args = call->args;
}

static bool share(const struct call *a, const struct call *b, enum tune_level level)
{
    struct str x = {0}, y = {0};
    bool same;

    tune_key(digest, &a->sig, level, FRIT_NUMERIC_REORDERED, &x);
    tune_key(digest, &b->sig, level, FRIT_NUMERIC_REORDERED, &y);
    same = x.length == y.length && memcmp(x.text, y.text, x.length) == 0;
    str_fini(&x);
    str_fini(&y);
    return same;
}

static void sizes_of_a_bucket_share(void **state)
{
    struct call a, b;

    (void)state;
    make(&a, 80, 112);
    make(&b, 112, 80);
    assert_true(share(&a, &b, TUNE_BALANCED)); /* 65..128, multiples of 16 */
    assert_false(share(&a, &b, TUNE_FULL));
    make(&b, 112, 48);
    assert_false(share(&a, &b, TUNE_BALANCED));
    make(&b, 256, 240);
    assert_false(share(&a, &b, TUNE_BALANCED));
    assert_true(share(&a, &b, TUNE_MINIMAL)); /* 65..256 */
}

static void what_divides_sizes_matters(void **state)
{
    struct call a, b;

    (void)state;
    make(&a, 80, 112);
    for (int64_t less = 1; less < 16; less *= 2) {
        make(&b, 80, 112 - less);
        assert_false(share(&a, &b, TUNE_BALANCED));
        make(&b, 80 - less, 112);
        assert_false(share(&a, &b, TUNE_BALANCED));
    }
}

static void layouts_matter(void **state)
{
    struct call a, b;

    (void)state;
    make(&a, 80, 112);
    make(&b, 80, 112);
    assert_true(share(&a, &b, TUNE_BALANCED));
    b.args[0].strides[0] = 1;
    b.args[0].strides[1] = 80;
    assert_false(share(&a, &b, TUNE_BALANCED));
    make(&b, 80, 112);
    b.args[0].strides[0] = 0;
    assert_false(share(&a, &b, TUNE_BALANCED));
    b.args[0].strides[0] = -112;
    assert_false(share(&a, &b, TUNE_BALANCED));
    make(&b, 80, 112);
    b.args[0].align_log2 = 2;
    assert_false(share(&a, &b, TUNE_BALANCED));
    b.args[0].align_log2 = 6;
    b.args[0].dtype = FRIT_F16;
    assert_false(share(&a, &b, TUNE_BALANCED));
}

/* Where memory begins, and whose an output's is. */
static void the_moment_does_not_matter(void **state)
{
    struct call a, b;

    (void)state;
    make(&a, 80, 112);
    make(&b, 80, 112);
    b.args[0].flags |= FRIT_ARG_START;
    b.args[1].flags |= FRIT_ARG_PREASSIGNED;
    assert_true(share(&a, &b, TUNE_FULL));
}

static void programs_have_keys_of_their_own(void **state)
{
    static const uint8_t other[TUNE_DIGEST] = {1, 2, 4};
    struct str a = {0}, b = {0}, text = {0};
    struct call call;

    (void)state;
    tune_key_program(digest, &a);
    tune_key_program(other, &b);
    assert_int_equal(a.length, b.length);
    assert_memory_not_equal(a.text, b.text, a.length);
    make(&call, 80, 112);
    tune_key_print(&call.sig, &text);
    assert_string_equal(text.text, "f32[80, 112] -> f32[80]");
    str_fini(&a);
    str_fini(&b);
    str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_a_bucket_share),
        cmocka_unit_test(what_divides_sizes_matters),
        cmocka_unit_test(layouts_matter),
        cmocka_unit_test(the_moment_does_not_matter),
        cmocka_unit_test(programs_have_keys_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
