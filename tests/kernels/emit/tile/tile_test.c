/* SPDX-License-Identifier: Apache-2.0 */
#include "emit/tile/tile.h"

#include <stdio.h>
#include <string.h>

#include "ir/eval.h"
#include "ir/half.h"
#include "ir/text.h"

#include "emit/random.h"
#include "unit.h"

#include "failing_alloc.h"

static struct tile_code *compile(const struct kir_module *m, uint32_t phase, int level)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct tile_code *code;

    if (tile_compile(m, phase, (enum tile_level)level, &code, &err))
        fail_msg("%s", err.text);
    return code;
}

static void run_phase(const struct random_case *c, uint32_t phase, int level, void *const *memory)
{
    const uint32_t *grid = c->grid[phase];
    struct tile_code *code = compile(&c->module, phase, level);
    void *scratch;

    scratch = aligned_alloc(TILE_ALIGN, tile_scratch(code));
    assert_non_null(scratch);
    for (uint32_t z = 0; z < grid[2]; z++) {
        for (uint32_t y = 0; y < grid[1]; y++) {
            for (uint32_t x = 0; x < grid[0]; x++)
                tile_run(code, c->words, memory, (const uint32_t[3]){x, y, z}, scratch);
        }
    }
    free(scratch);
    tile_destroy(code);
}

static void run_case(uint64_t number)
{
    void *expected[RANDOM_ARGS], *got[RANDOM_ARGS];
    struct random_case c;
    char name[64];

    random_case_init(&c, number, &random_all);
    random_case_fill(&c, expected);
    random_case_eval(&c, expected);
    for (int level = 0; level <= (int)tile_level_best(); level++) {
        snprintf(name, sizeof(name), "case %llu, level %d", (unsigned long long)number, level);
        random_case_fill(&c, got);
        for (uint32_t i = 0; i < c.module.n_phases; i++)
            run_phase(&c, i, level, got);
        random_case_compare(&c, name, expected, got);
        random_case_free(&c, got);
    }
    random_case_free(&c, expected);
    random_case_fini(&c);
}

#ifdef __SANITIZE_ADDRESS__
enum { USUAL = 300 };
#else
enum { USUAL = 1500 };
#endif

static void random_modules_run_as_by_eval(void **state)
{
    const char *first = getenv("FRIT_TEST_CASE"), *many = getenv("FRIT_TEST_CASES");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0;
    uint64_t n = many ? strtoull(many, NULL, 10) : first ? 1 : USUAL;

    (void)state;
    for (uint64_t i = 0; i < n; i++)
        run_case(from + i);
}

/* One group of a module of one phase that stores an I32 per lane, 8 of them, as by eval. */
static void check_text(const char *text)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct random_case c = {.grid = {{1, 1, 1}}};
    uint32_t got[8] = {0}, expected[8] = {0};
    struct eval_arg arg = {expected, 0, sizeof(expected)};

    if (kir_parse(text, strlen(text), &c.module, &err) ||
        eval_run(&c.module, NULL, &arg, (const uint32_t(*)[3])c.grid, &err))
        fail_msg("%s", err.text);
    for (int level = 0; level <= (int)tile_level_best(); level++) {
        run_phase(&c, 0, level, (void *[]){got});
        assert_memory_equal(got, expected, sizeof(got));
    }
    kir_fini(&c.module);
}

static const char head[] = "kernel k\narg a0 i32 write\nphase 8\n";

/* %10 is made in the register of the outer phi %5, and copied to the inner one. */
static void a_value_is_carried_by_two_loops(void **state)
{
    char text[1024];

    (void)state;
    snprintf(text, sizeof(text), "%s%s", head,
             "%0 i32 = lane\n"
             "%1 i32 = mul %0 %0\n"
             "%2 i32 = const 0\n"
             "%3 i32 = const 3\n"
             "%4 i32 = for %2 to %3 step 1\n"
             "%5 i32 = phi 0 %1\n"
             "%6 i32 = phi 1 %1\n"
             "%7 i32 = add %6 %5\n"
             "%8 i32 = add %5 %7\n"
             "%9 i32 = for %2 to %3 step 1\n"
             "%10 i32 = phi 0 %0\n"
             "%11 i32 = phi 1 %0\n"
             "%12 i32 = mul %11 %10\n"
             "next %8 %12\n"
             "next %8 %11\n"
             "%15 i32 = sub %5 %6\n"
             "store a0 %0 %15\n");
    check_text(text);
}

/* Values that change places, and one for two phis. */
static void carried_values_change_places(void **state)
{
    char text[1024];

    (void)state;
    snprintf(text, sizeof(text), "%s%s", head,
             "%0 i32 = lane\n"
             "%1 i32 = mul %0 %0\n"
             "%2 i32 = const 0\n"
             "%3 i32 = const 3\n"
             "%4 i32 = for %2 to %3 step 1\n"
             "%5 i32 = phi 0 %1\n"
             "%6 i32 = phi 1 %0\n"
             "%7 i32 = phi 2 %2\n"
             "%8 i32 = phi 3 %0\n"
             "%9 i32 = add %7 %8\n"
             "%10 i32 = xor %9 %0\n"
             "next %6 %5 %10 %10\n"
             "%12 i32 = shl %7 %3\n"
             "%13 i32 = add %12 %8\n"
             "%14 i32 = mul %5 %13\n"
             "%15 i32 = sub %14 %6\n"
             "store a0 %0 %15\n");
    check_text(text);
}

/* 0 <= lane - 3 < 4, and <= 1, as unsigned comparisons. */
static void unsigned_ranges_begin_below_0(void **state)
{
    char text[1024];

    (void)state;
    snprintf(text, sizeof(text), "%s%s", head,
             "%0 i32 = lane\n"
             "%1 i32 = const 3\n"
             "%2 i32 = sub %0 %1\n"
             "%3 i32 = const 4\n"
             "%4 b = ult %2 %3\n"
             "%5 i32 = const 1\n"
             "%6 b = ule %2 %5\n"
             "%7 i32 = const 100\n"
             "store a0 %0 %7\n"
             "store_if a0 %0 %0 %4\n"
             "store_if a0 %0 %1 %6\n");
    check_text(text);
}

/* One group; arguments only. */
static void run_once(const struct kir_module *m, int level, void *const *args)
{
    struct tile_code *code = compile(m, 0, level);
    void *scratch = aligned_alloc(TILE_ALIGN, tile_scratch(code));

    assert_non_null(scratch);
    tile_run(code, NULL, args, (const uint32_t[3]){0, 0, 0}, scratch);
    free(scratch);
    tile_destroy(code);
}

/* out[lane] = in[lane], over 65536 lanes. */
static void make_copy(struct kir_module *m, uint32_t from, uint32_t to)
{
    uint32_t lane, value;

    kir_init(m, "copy");
    kir_arg(m, from, KIR_READ);
    kir_arg(m, to, KIR_WRITE);
    kir_phase(m, 65536);
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    value = kir_emit_as(m, KIR_load, KIR_F32, 0, lane, KIR_NONE, KIR_NONE);
    kir_emit_imm(m, KIR_store, 1, lane, value, KIR_NONE);
}

static bool same_float(float a, float b)
{
    return half_bits_of(a) == half_bits_of(b) || (a != a && b != b);
}

static void every_half_is_loaded(void **state)
{
    uint16_t *in = malloc(65536 * sizeof(*in));
    float *out = malloc(65536 * sizeof(*out));

    (void)state;
    for (uint32_t i = 0; i < 65536; i++)
        in[i] = (uint16_t)i;
    for (int level = 0; level <= (int)tile_level_best(); level++) {
        for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
            struct kir_module m;

            make_copy(&m, is_bf16 ? FRIT_BF16 : FRIT_F16, FRIT_F32);
            run_once(&m, level, (void *[]){in, out});
            for (uint32_t i = 0; i < 65536; i++)
                assert_true(same_float(out[i], half_load(in[i], is_bf16 ? 7 : 10)));
            kir_fini(&m);
        }
    }
    free(in);
    free(out);
}

/* Floats of every exponent with fractions around what halves round at. */
static void halves_are_rounded(void **state)
{
    float *in = malloc(65536 * sizeof(*in));
    uint16_t *out = malloc(65536 * sizeof(*out));

    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        static const uint32_t fractions[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x7fff, 0x8000};
        uint32_t low = fractions[i & 7] ^ (i >> 3 & 3) << 13 ^ (i >> 5 & 3) << 21;

        in[i] = half_real_of((i >> 7) << 23 | low);
    }
    for (int level = 0; level <= (int)tile_level_best(); level++) {
        for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
            struct kir_module m;

            make_copy(&m, FRIT_F32, is_bf16 ? FRIT_BF16 : FRIT_F16);
            run_once(&m, level, (void *[]){in, out});
            for (uint32_t i = 0; i < 65536; i++) {
                uint16_t right = half_store(in[i], is_bf16 ? 7 : 10);

                if (in[i] == in[i] || (out[i] & 0x7fff) <= (is_bf16 ? 0x7f80 : 0x7c00))
                    assert_int_equal(out[i], right);
            }
            kir_fini(&m);
        }
    }
    free(in);
    free(out);
}

static void too_large_a_group_is_unsupported(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct tile_code *code;
    struct kir_module m;

    (void)state;
    make_copy(&m, FRIT_F32, FRIT_F32);
    kir_tile(&m, KIR_LANE, KIR_I64, 1u << 20);
    assert_int_equal(tile_compile(&m, 0, TILE_BASE, &code, &err), FRIT_UNSUPPORTED);
    assert_null(code);
    assert_string_equal(
        err.text,
        "kernel copy: a group of 65536 lanes needs too much memory in the tile interpreter");
    kir_fini(&m);
}

static void without_memory_nothing_is_left(void **state)
{
    struct random_case c;

    (void)state;
    random_case_init(&c, 3, &random_all);
    for (long n = 0, hit = 1; hit; n++) {
        frit_err err = {.struct_size = sizeof(err)};
        struct tile_code *code;
        frit_status status;

        failing_alloc_arm(n);
        status = tile_compile(&c.module, 0, TILE_BASE, &code, &err);
        hit = failing_alloc_disarm();
        assert_int_equal(status, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        assert_true(hit ? !code : !!code);
        tile_destroy(code);
    }
    random_case_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_modules_run_as_by_eval),
        cmocka_unit_test(a_value_is_carried_by_two_loops),
        cmocka_unit_test(carried_values_change_places),
        cmocka_unit_test(unsigned_ranges_begin_below_0),
        cmocka_unit_test(every_half_is_loaded),
        cmocka_unit_test(halves_are_rounded),
        cmocka_unit_test(too_large_a_group_is_unsupported),
        cmocka_unit_test(without_memory_nothing_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
