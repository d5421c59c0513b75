/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments: what the evaluator computes, and the accesses that it refuses. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "ir/expand.h"
#include "ir/half.h"
#include "ir/text.h"
#include "kernels/ir/rig.h"

enum { ROWS = 4, COLUMNS = 32, DEPTH = 6, TEAMS = 2, WIDTH = TEAMS * COLUMNS };

/* c = a b for each of two teams of 16 lanes, which have the columns of b of their own; then the
 * sums by columns, and max(2 * sum, 0) + row by each.  @t: the type of sums; @0 and @2: zero and
 * two as constants; @m: the instruction for the maximum. */
static const char product[] = "kernel product\nparams 2\n"
                              "arg a0 @t read\narg a1 @t read\narg a2 @t write\n"
                              "arg a3 @t write\n"
                              "phase 32\nteam 16\n"
                              "fragment f0 sum @t 4 32\nfragment f1 left @t 4 2\n"
                              "fragment f2 right @t 2 32\n"
                              "%0 i32 = lane\n%1 i32 = const 4\n%2 i32 = shr %0 %1\n"
                              "%3 i32 = const 32\n%4 i32 = mul %2 %3\n"
                              "%5 @t = const @0\n%6 @t = const @2\n"
                              "%7 i32 = param 0\n%8 i32 = param 1\n%9 i32 = const 0\n"
                              "mfill f0 %5\n"
                              "%11 i32 = for %9 to %7 step 2\n"
                              "%12 i32 = mul %11 %8\n%13 i32 = add %12 %4\n"
                              "mload f1 a0 rows %11 %7\nmload f2 a1 rows %13 %8\n"
                              "mma f0 f1 f2\nnext\n"
                              "%18 i32 = mul %4 %1\n"
                              "mstore f0 a2 columns %18 %1\n"
                              "%20 @t = each f0\n"
                              "%21 i32 = row\n%22 i32 = column\n"
                              "%23 @t = mul %20 %6\n%24 @t = @m %23 %5\n"
                              "%25 i32 = mul %21 %8\n%26 i32 = add %25 %22\n"
                              "%27 i32 = add %26 %4\n%28 b = lt %5 %24\n"
                              "store_if a3 %27 %24 %28\n"
                              "done %24\n"
                              "mstore f0 a3 rows %4 %8\n";

/* Replaces @t, @0, @2 and @m. */
static void substitute(const char *from, const char *const with[4], char *to)
{
    for (; *from; from++) {
        static const char keys[] = "t02m";

        if (*from == '@')
            to = stpcpy(to, with[strchr(keys, *++from) - keys]);
        else
            *to++ = *from;
    }
    *to = '\0';
}

static void parse(struct kir_module *m, const char *text)
{
    frit_err err = ERR_INIT;

    if (kir_parse(text, strlen(text), m, &err))
        fail_msg("%s", err.text);
}

/* To lanes' values; with fma. */
static void expand(struct kir_module *m, bool fma)
{
    frit_err err = ERR_INIT;
    struct kir_module out;

    if (kir_expand(m, fma, &out, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < out.n_phases; i++)
        assert_int_equal(out.phases[i].n_fragments, 0);
    kir_fini(m);
    *m = out;
}

static int number_at(int i, int seed)
{
    return (i * 5 + seed) % 7 - 3;
}

#define CHECK(form, type, name, zero, two, max)                                            \
    do {                                                                                   \
        type a[ROWS * DEPTH], b[DEPTH * WIDTH], c[ROWS * WIDTH], d[ROWS * WIDTH];          \
        struct eval_arg args[] = {RIG_ARRAY(a), RIG_ARRAY(b), RIG_ARRAY(c), RIG_ARRAY(d)}; \
        const uint64_t words[] = {DEPTH, WIDTH};                                           \
        struct kir_module m;                                                               \
        char text[2048];                                                                   \
                                                                                           \
        substitute(product, (const char *const[]){name, zero, two, max}, text);            \
        parse(&m, text);                                                                   \
        if (form)                                                                          \
            expand(&m, form == 2);                                                         \
        for (int i = 0; i < ROWS * DEPTH; i++)                                             \
            a[i] = (type)number_at(i, 1);                                                  \
        for (int i = 0; i < DEPTH * WIDTH; i++)                                            \
            b[i] = (type)number_at(i, 2);                                                  \
        rig_run(&m, words, args, 1);                                                       \
        for (int r = 0; r < ROWS; r++)                                                     \
            for (int k = 0; k < WIDTH; k++) {                                              \
                int sum = 0;                                                               \
                                                                                           \
                for (int i = 0; i < DEPTH; i++)                                            \
                    sum += number_at(r * DEPTH + i, 1) * number_at(i * WIDTH + k, 2);      \
                assert_true(c[k * ROWS + r] == (type)sum);                                 \
                assert_true(d[r * WIDTH + k] == (type)(sum > 0 ? 2 * sum : 0));            \
            }                                                                              \
        kir_fini(&m);                                                                      \
    } while (0)

static void test_product(void **state)
{
    (void)state;
    for (int form = 0; form < 3; form++) {
        CHECK(form, float, "f32", "0x00000000", "0x40000000", "fmax");
        CHECK(form, double, "f64", "0x0000000000000000", "0x4000000000000000", "fmax");
        CHECK(form, int32_t, "i32", "0", "2", "smax");
    }
}

/* Elements of 16 bits are products of F32; those that are not rounded to them are kept. */
static void test_narrow(void **state)
{
    static const char text[] =
        "kernel narrow\narg a0 bf16 read\narg a1 bf16 read\narg a2 f32 write\n"
        "phase 1\nteam 1\nfragment f0 sum f32 1 1\n"
        "fragment f1 left bf16 1 2\nfragment f2 right bf16 2 1\n"
        "%0 i32 = const 0\n%1 i32 = const 1\n%2 f32 = const 0x3b800000\n"
        "mfill f0 %2\nmload f1 a0 rows %0 %1\nmload f2 a1 columns %0 %1\n"
        "mma f0 f1 f2\nmstore f0 a2 rows %0 %1\n";
    uint16_t a[] = {0x3fc0, 0xc000}, b[] = {0x4040, 0x3f80}; /* 1.5, -2; 3, 1 */
    float out[1];
    struct eval_arg args[] = {RIG_ARRAY(a), RIG_ARRAY(b), RIG_ARRAY(out)};
    struct kir_module m;

    (void)state;
    parse(&m, text);
    rig_run(&m, NULL, args, 1);
    assert_true(out[0] == 1.5f * 3 - 2 + 0x1p-8f);
    kir_fini(&m);
}

/* Rows are folded to all of their elements; what is narrowed is a factor. */
static void test_rows(void **state)
{
    static const char text[] =
        "kernel rows\nparams 0\narg a0 f32 read\narg a1 f32 write\narg a2 f32 write\n"
        "arg a3 f32 write\narg a4 f32 write\nphase 2\nteam 2\n"
        "fragment f0 sum f32 2 2\nfragment f1 sum f32 2 2\nfragment f2 left bf16 2 2\n"
        "fragment f3 right bf16 2 2\nfragment f4 sum f32 2 2\ntile t0 group bf16 4\n"
        "%0 i32 = const 0\n%1 i32 = const 2\n%2 f32 = const 0x00000000\n%3 i32 = lane\n"
        "%4 i32 = const 3\n%5 i32 = mul %3 %4\n%6 f32 = const 0x3f800000\n"
        "%7 i32 = const 1\n%8 i32 = xor %3 %7\n%9 i32 = mul %3 %7\n%10 i32 = add %8 %9\n"
        "tstore t0 %5 %6\n%12 i32 = add %3 %7\ntstore t0 %12 %2\nbarrier\n"
        "mload f0 a0 rows %0 %1\nmload f3 t0 rows %0 %1\n"
        "mlargest f1 f0\nmstore f1 a1 rows %0 %1\n"
        "mtotal f1 f0\n"
        "%20 f32 = each f0\n%21 f32 = peer f1\n%22 f32 = add %20 %21\ndone %22\n"
        "mstore f0 a2 rows %0 %1\nmscale f1 f0\nmstore f1 a4 rows %0 %1\n"
        "mfill f4 %2\nmnarrow f2 f0\nmma f4 f2 f3\nmstore f4 a3 rows %0 %1\n";
    float in[] = {1, 2, -3, 0x1.01p-3f}, largest[4], more[4], product_of[4], scaled[4];
    struct eval_arg args[] = {RIG_ARRAY(in), RIG_ARRAY(largest), RIG_ARRAY(more),
                              RIG_ARRAY(product_of), RIG_ARRAY(scaled)};
    struct kir_module m;

    (void)state;
    parse(&m, text);
    rig_run(&m, NULL, args, 1);
    for (int i = 0; i < 4; i++) {
        const float row = in[i & 2] + in[(i & 2) + 1];

        assert_true(largest[i] == in[(i & 2) + 1]);
        assert_true(more[i] == in[i] + row);
        assert_true(scaled[i] == row * more[i]);
        assert_true(product_of[i] == half_load(half_store(more[i], 7), 7));
    }
    kir_fini(&m);
}

/* Sums loaded from swizzled blocks, of rows and of columns: 2 lines of 128 elements, in two blocks.
 */
static void from_blocks(const char *layout, bool expands)
{
    static const char format[] =
        "kernel blocks\narg a0 f32 read\narg a1 f32 write\nphase 4\ntile t0 group f32 256\nteam 4\n"
        "fragment f0 sum f32 %d %d\n"
        "%%0 i32 = lane\n%%1 i32 = const 0\n%%2 i32 = const 256\n%%3 i32 = const 128\n"
        "%%4 i32 = for %%1 to %%2 step 4\n%%5 i32 = add %%4 %%0\n%%6 f32 = load a0 %%5\n"
        "tstore t0 %%5 %%6\nnext\nbarrier\nmload f0 t0 %s %%1 %%3\nmstore f0 a1 rows %%1 %%%d\n";
    const bool by_columns = strcmp(layout, "column-blocks") == 0;
    float in[256], out[256] = {0};
    struct eval_arg args[] = {RIG_ARRAY(in), RIG_ARRAY(out)};
    struct kir_module m;
    char text[1024];

    snprintf(text, sizeof(text), format, by_columns ? 64 : 2, by_columns ? 4 : 128, layout, 3);
    if (by_columns)
        strcpy(strstr(text, "mload"),
               "%10 i32 = const 4\n"
               "mload f0 t0 column-blocks %1 %3\nmstore f0 a1 rows %1 %10\n");
    for (int i = 0; i < 256; i++)
        in[i] = (float)i;
    parse(&m, text);
    if (expands)
        expand(&m, true);
    rig_run(&m, NULL, args, 1);
    for (int64_t i = 0; i < 256; i++) {
        int64_t line = by_columns ? i % 4 : i / 128, at = by_columns ? i / 4 : i % 128;

        assert_true(out[i] == (float)kir_swizzled(at / 64 * 128 + line * 64 + at % 64));
    }
    kir_fini(&m);
}

static void test_blocks(void **state)
{
    (void)state;
    for (int expands = 0; expands < 2; expands++) {
        from_blocks("row-blocks", expands);
        from_blocks("column-blocks", expands);
    }
}

/* Through a tile of the group, with a barrier between who writes it and who reads it. */
static void through_tile(const char *barrier, const char *error)
{
    static const char format[] =
        "kernel staged\narg a0 f32 read\narg a1 f32 write\nphase 4\ntile t0 group f32 4\nteam 2\n"
        "fragment f0 sum f32 1 2\n"
        "%%0 i32 = lane\n%%1 f32 = load a0 %%0\ntstore t0 %%0 %%1\n%s"
        "%%4 i32 = const 1\n%%5 i32 = shr %%0 %%4\n%%6 i32 = shl %%5 %%4\n"
        "mload f0 t0 rows %%6 %%4\nmstore f0 a1 rows %%6 %%4\n";
    float in[] = {1, 2, 3, 4}, out[4] = {0};
    struct eval_arg args[] = {RIG_ARRAY(in), RIG_ARRAY(out)};
    struct kir_module m;
    char text[1024];

    snprintf(text, sizeof(text), format, barrier);
    parse(&m, text);
    if (error) {
        rig_run_bad(&m, NULL, args, 1, error);
    } else {
        rig_run(&m, NULL, args, 1);
        assert_memory_equal(in, out, sizeof(in));
    }
    kir_fini(&m);
}

static void test_tile(void **state)
{
    (void)state;
    through_tile("barrier\n", NULL);
    through_tile("%3 i32 = const 0\n",
                 "phase 0, group (0, 0, 0), %7 mload: lane 0 reads element 1 of tile 0, which lane "
                 "1 wrote, with no barrier");
}

static void test_outside(void **state)
{
    static const char text[] = "kernel outside\narg a0 f32 read\nphase 2\nteam 2\n"
                               "fragment f0 left f32 2 3\n"
                               "%0 i32 = const 0\n%1 i32 = const 4\nmload f0 a0 rows %0 %1\n";
    float in[6] = {0};
    struct eval_arg args[] = {RIG_ARRAY(in)};
    struct kir_module m;

    (void)state;
    parse(&m, text);
    rig_run_bad(&m, NULL, args, 1,
                "phase 0, group (0, 0, 0), %2 mload: lane 0 is at element 6 of argument 0, which "
                "has -0 up to 6");
    kir_fini(&m);
}

static void refused(const char *text, const char *error)
{
    frit_err err = ERR_INIT;
    struct kir_module m, out;

    parse(&m, text);
    assert_int_equal(kir_expand(&m, true, &out, &err), FRIT_UNSUPPORTED);
    assert_string_equal(err.text, error);
    kir_fini(&m);
}

static void test_not_expanded(void **state)
{
    (void)state;
    refused("kernel k\nphase 4\nteam 4\nfragment f0 sum f32 2 6\n",
            "kernel k: 6 columns among 4 lanes");
    refused("kernel k\nphase 4\nteam 4\nfragment f0 sum f32 2 4\n%0 b = const 1\n"
            "%1 f32 = const 0x00000000\nif %0\nmfill f0 %1\nend\n",
            "kernel k: an if changes fragment 0");
    refused("kernel k\nphase 4\nteam 4\nfragment f0 sum f32 2 4\nfragment f1 sum f32 2 4\n"
            "mtotal f0 f1\n",
            "kernel k: folds rows of fragments");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product),      cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_tile),         cmocka_unit_test(test_outside),
        cmocka_unit_test(test_not_expanded), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
