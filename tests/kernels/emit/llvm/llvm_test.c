/* SPDX-License-Identifier: Apache-2.0 */
#include "emit/llvm/llvm.h"

#include <stdio.h>
#include <string.h>

#include "emit/random.h"
#include "ir/half.h"
#include "kernels/emit/llvm/rig.h"
#include "unit.h"

#include "failing_alloc.h"

static const char *const isas[LLVM_ISAS] = {"base", "avx2", "avx512"};

static void run_level(const struct rig *rig, const struct random_case *c, uint64_t number, int isa,
                      void *const *expected)
{
    struct llvm_cpu cpu = {(enum llvm_isa)isa, number & 4, rig->best.dot2 && !(number & 8)};
    const char *forced = getenv("FRIT_TEST_LEVEL");
    int level = forced ? atoi(forced) : number & 1 ? LLVM_GOOD : LLVM_QUICK;
    struct object *object = rig_compile(rig, &c->module, &cpu, level);
    void *got[RANDOM_ARGS];
    char name[64];

    snprintf(name, sizeof(name), "case %llu, %s, level %d", (unsigned long long)number, isas[isa],
             level);
    random_case_fill(c, got);
    for (uint32_t i = 0; i < c->module.n_phases; i++)
        rig_run(object, i, c->grid[i], c->words, got, number & 2);
    random_case_compare(c, name, expected, got);
    random_case_free(c, got);
    object_unload(object);
}

static void run_case(const struct rig *rig, uint64_t number, int isa)
{
    struct random_target target = random_all;
    void *expected[RANDOM_ARGS];
    struct random_case c;

    target.fma = target.dot2 = isa >= LLVM_AVX2;
    random_case_init(&c, number, &target);
    random_case_fill(&c, expected);
    random_case_eval(&c, expected);
    run_level(rig, &c, number, isa, expected);
    random_case_free(&c, expected);
    random_case_fini(&c);
}

static void random_modules_run_as_by_eval(void **state)
{
    const char *first = getenv("FRIT_TEST_CASE"), *many = getenv("FRIT_TEST_CASES");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0;
    uint64_t n = many ? strtoull(many, NULL, 10) : first ? 1 : getenv("FRIT_TEST_LONG") ? 500 : 40;
    const struct rig *rig = rig_of(state);

    for (uint64_t i = 0; i < n; i++) {
        for (int isa = 0; isa <= (int)rig->best.isa; isa++)
            run_case(rig, from + i, isa);
    }
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

static void copy_all(const struct rig *rig, int isa, uint32_t from, uint32_t to, void *in,
                     void *out)
{
    struct kir_module m;
    struct object *object;

    make_copy(&m, from, to);
    object = rig_compile(rig, &m, &(struct llvm_cpu){(enum llvm_isa)isa, false, false}, LLVM_QUICK);
    rig_run(object, 0, (const uint32_t[3]){1, 1, 1}, NULL, (void *[]){in, out}, true);
    object_unload(object);
    kir_fini(&m);
}

/* A line of 64 lanes to a group: its sum, then, where `again`, over the same elements that of the
 * square roots. */
static void make_lines(struct kir_module *m, bool again)
{
    uint32_t lane, line, begin, sum;

    kir_init(m, "lines");
    kir_arg(m, FRIT_F32, KIR_READ);
    kir_arg(m, FRIT_F32, KIR_WRITE);
    kir_phase(m, 64);
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    line = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    begin = kir_emit(m, KIR_mul, line, kir_const_i(m, KIR_I32, 4096), KIR_NONE);
    begin = kir_emit(m, KIR_add, begin, lane, KIR_NONE);
    sum = kir_const_f(m, KIR_F32, 0);
    for (int pass = 0; pass <= again; pass++) {
        uint32_t at = kir_for(m, kir_const_i(m, KIR_I32, 0), kir_const_i(m, KIR_I32, 4096), 64);
        uint32_t value;

        sum = kir_phi(m, sum);
        at = kir_emit(m, KIR_add, begin, at, KIR_NONE);
        value = kir_emit_as(m, KIR_load, KIR_F32, 0, at, KIR_NONE, KIR_NONE);
        if (pass)
            value = kir_emit(m, KIR_sqrt, value, KIR_NONE, KIR_NONE);
        value = kir_emit(m, KIR_add, sum, value, KIR_NONE);
        kir_next(m, &value, 1);
    }
    line = kir_emit(m, KIR_mul, line, kir_const_i(m, KIR_I32, 64), KIR_NONE);
    kir_emit_imm(m, KIR_store, 1, kir_emit(m, KIR_add, line, lane, KIR_NONE), sum, KIR_NONE);
}

/* The root of the root.. of each element, without loops. */
static void make_roots(struct kir_module *m, int many)
{
    uint32_t lane, at, value;

    kir_init(m, "roots");
    kir_arg(m, FRIT_F32, KIR_READ);
    kir_arg(m, FRIT_F32, KIR_WRITE);
    kir_phase(m, 64);
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    at = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    at = kir_emit(m, KIR_mul, at, kir_const_i(m, KIR_I32, 64), KIR_NONE);
    at = kir_emit(m, KIR_add, at, lane, KIR_NONE);
    value = kir_emit_as(m, KIR_load, KIR_F32, 0, at, KIR_NONE, KIR_NONE);
    for (int i = 0; i < many; i++)
        value = kir_emit(m, KIR_sqrt, value, KIR_NONE, KIR_NONE);
    kir_emit_imm(m, KIR_store, 1, at, value, KIR_NONE);
}

/* Prefetch instructions: bytes 0f 18, then a byte that names the cache. */
static uint32_t count_prefetches(const struct rig *rig, const struct kir_module *m)
{
    frit_err err = {.struct_size = sizeof(err)};
    uint32_t count = 0;
    unsigned char *code;
    void *bytes;
    size_t n;

    if (llvm_compile(rig->llvm, m, &rig->best, LLVM_GOOD, &bytes, &n, &err))
        fail_msg("%s", err.text);
    code = bytes;
    for (size_t i = 0; i + 2 < n; i++)
        count += code[i] == 0x0f && code[i + 1] == 0x18;
    free(bytes);
    return count;
}

/* Loads of lines that are in a cache already, or beside much arithmetic, leave memory idle: there
 * each line of the next group is prefetched, once. */
static void the_next_group_is_prefetched(void **state)
{
    enum { LINES = 64 * sizeof(float) / 64 };
    const struct rig *rig = rig_of(state);
    struct kir_module m;

    make_lines(&m, false);
    assert_int_equal(count_prefetches(rig, &m), 0);
    kir_fini(&m);
    make_lines(&m, true);
    assert_in_range(count_prefetches(rig, &m), 1, LINES);
    kir_fini(&m);
    make_roots(&m, 1);
    assert_int_equal(count_prefetches(rig, &m), 0);
    kir_fini(&m);
    make_roots(&m, 8);
    assert_in_range(count_prefetches(rig, &m), 1, LINES);
    kir_fini(&m);
}

enum { STRIPES = 8, STRIPE = 8, STRIPE_PITCH = 13 };

/* out[stripe * STRIPE_PITCH + i] = i + 1, of STRIPES of as many lanes each, at places from `low` up
 * to `high`, but `hole`. */
static void make_stripes(struct kir_module *m, uint32_t dtype, int low, int high, int hole)
{
    uint32_t lane, i, at, mask;

    kir_init(m, "stripes");
    kir_arg(m, dtype, KIR_WRITE);
    kir_phase(m, STRIPES * STRIPE);
    lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    i = kir_emit(m, KIR_and, lane, kir_const_i(m, KIR_I32, STRIPE - 1), KIR_NONE);
    at = kir_emit(m, KIR_shr, lane, kir_const_i(m, KIR_I32, 3), KIR_NONE);
    at = kir_emit(m, KIR_mul, at, kir_const_i(m, KIR_I32, STRIPE_PITCH), KIR_NONE);
    at = kir_emit(m, KIR_add, at, i, KIR_NONE);
    mask = kir_emit(m, KIR_le, kir_const_i(m, KIR_I32, low), i, KIR_NONE);
    mask = kir_emit(m, KIR_and, mask,
                    kir_emit(m, KIR_lt, i, kir_const_i(m, KIR_I32, high), KIR_NONE), KIR_NONE);
    mask = kir_emit(m, KIR_and, mask,
                    kir_emit(m, KIR_ne, i, kir_const_i(m, KIR_I32, hole), KIR_NONE), KIR_NONE);
    i = kir_emit(m, KIR_add, i, kir_const_i(m, KIR_I32, 1), KIR_NONE);
    kir_emit_imm(m, KIR_store_if, 0, at, kir_emit_as(m, KIR_f32, KIR_F32, 0, i, KIR_NONE, KIR_NONE),
                 mask);
}

static void check_stripes(const struct rig *rig, int isa, int low, int high, int hole)
{
    enum { N = STRIPES * STRIPE_PITCH };
    const uint32_t dtype = (low + high) & 1 ? FRIT_F16 : FRIT_F32;
    struct kir_module m;
    struct object *object;
    float reals[N] = {0};
    uint16_t halves[N] = {0};

    make_stripes(&m, dtype, low, high, hole);
    object = rig_compile(rig, &m, &(struct llvm_cpu){(enum llvm_isa)isa, false, false}, LLVM_GOOD);
    rig_run(object, 0, (const uint32_t[3]){1, 1, 1}, NULL,
            (void *[]){dtype == FRIT_F16 ? (void *)halves : reals}, true);
    for (int at = 0; at < N; at++) {
        int i = at % STRIPE_PITCH, stored = i >= low && i < high && i != hole;
        double got = dtype == FRIT_F16 ? half_load(halves[at], 10) : (double)reals[at];

        if (got != (stored ? i + 1 : 0))
            fail_msg("isa %d, %d .. %d but %d: %g at %d", isa, low, high, hole, got, at);
    }
    object_unload(object);
    kir_fini(&m);
}

/* Under masks that are the same in all chunks of lanes pieces of vectors are stored. */
static void known_masks_store_their_lanes(void **state)
{
    const struct rig *rig = rig_of(state);

    for (int isa = 0; isa <= (int)rig->best.isa; isa++)
        for (int low = 0; low < STRIPE; low += 3)
            for (int high = low + 1; high <= STRIPE; high += 2)
                check_stripes(rig, isa, low, high, high % 3 ? -1 : low + 1);
}

static void halves_are_loaded_and_rounded(void **state)
{
    const struct rig *rig = rig_of(state);
    uint16_t *halves = aligned_alloc(64, 65536 * sizeof(*halves));
    float *reals = aligned_alloc(64, 65536 * sizeof(*reals));

    for (int isa = 0; isa <= (int)rig->best.isa; isa++) {
        for (uint32_t i = 0; i < 65536; i++)
            halves[i] = (uint16_t)i;
        copy_all(rig, isa, FRIT_F16, FRIT_F32, halves, reals);
        for (uint32_t i = 0; i < 65536; i++) {
            if ((i & 0x7fff) <= 0x7c00)
                assert_int_equal(half_bits_of(reals[i]), half_bits_of(half_load(halves[i], 10)));
            else
                assert_true(reals[i] != reals[i]);
            reals[i] = half_real_of((i >> 7) << 23 | (i & 7) * 0x7ff | (i >> 3 & 15) << 13);
        }
        copy_all(rig, isa, FRIT_F32, FRIT_F16, reals, halves);
        for (uint32_t i = 0; i < 65536; i++)
            if (reals[i] == reals[i])
                assert_int_equal(halves[i], half_store(reals[i], 10));
    }
    free(halves);
    free(reals);
}

static void what_the_set_lacks_is_unsupported(void **state)
{
    const struct rig *rig = rig_of(state);
    frit_err err = {.struct_size = sizeof(err)};
    struct kir_module m;
    uint32_t one;
    void *bytes;
    size_t n;

    kir_init(&m, "thirds");
    kir_phase(&m, 8);
    one = kir_const_f(&m, KIR_F32, 1);
    kir_emit(&m, KIR_fma, one, one, one);
    assert_int_equal(llvm_compile(rig->llvm, &m, &(struct llvm_cpu){LLVM_BASE, false, false},
                                  LLVM_QUICK, &bytes, &n, &err),
                     FRIT_UNSUPPORTED);
    assert_null(bytes);
    assert_string_equal(err.text, "kernel thirds: x86-64-v2 has no fma");
    kir_fini(&m);
}

static void damaged_bytes_are_not_loaded(void **state)
{
    uint64_t whole[] = {BLOB_MAGIC, 56, 16, 1, 0, 0, BLOB_NOWHERE, 0xc3, 0};
    struct object *object;

    (void)state;
    assert_int_equal(object_load(whole, sizeof(whole), &object, NULL), FRIT_OK);
    assert_int_equal(object->n_phases, 1);
    object_unload(object);
    for (size_t n = 0; n < sizeof(whole); n++)
        assert_int_equal(object_load(whole, n, &object, NULL), FRIT_INVALID);
    whole[4] = 16;
    assert_int_equal(object_load(whole, sizeof(whole), &object, NULL), FRIT_INVALID);
    whole[4] = 0;
    whole[5] = sizeof(struct blob_deferred) + BLOB_HELD + 63;
    whole[6] = 64;
    assert_int_equal(object_load(whole, sizeof(whole), &object, NULL), FRIT_INVALID);
    whole[5]++;
    assert_int_equal(object_load(whole, sizeof(whole), &object, NULL), FRIT_OK);
    object_unload(object);
    whole[6] = 8;
    assert_int_equal(object_load(whole, sizeof(whole), &object, NULL), FRIT_INVALID);
    whole[5] = 64;
    whole[6] = 0;
    assert_int_equal(object_load(whole, sizeof(whole), &object, NULL), FRIT_INVALID);
    whole[6] = BLOB_NOWHERE;
    whole[3] = 3;
    assert_int_equal(object_load(whole, sizeof(whole), &object, NULL), FRIT_INVALID);
    whole[3] = 1;
    whole[0]++;
    assert_int_equal(object_load(whole, sizeof(whole), &object, NULL), FRIT_INVALID);
    assert_null(object);
}

static void a_missing_library_is_reported(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct llvm *llvm;

    (void)state;
    assert_int_equal(llvm_open("libLLVM-none.so", &llvm, &err), FRIT_UNSUPPORTED);
    assert_null(llvm);
    assert_non_null(strstr(err.text, "libLLVM-none.so"));
    assert_int_equal(llvm_open("libc.so.6", &llvm, &err), FRIT_UNSUPPORTED);
    assert_string_equal(err.text, "libc.so.6 has no LLVMContextCreate");
}

static void without_memory_nothing_is_left(void **state)
{
    struct object *object;
    uint64_t whole[] = {BLOB_MAGIC, 56, 16, 1, 0, 0, BLOB_NOWHERE, 0xc3, 0};

    (void)state;
    failing_alloc_arm(0);
    assert_int_equal(object_load(whole, sizeof(whole), &object, NULL), FRIT_NO_HOST_MEMORY);
    assert_int_not_equal(failing_alloc_disarm(), 0);
    assert_null(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_modules_run_as_by_eval),
        cmocka_unit_test(the_next_group_is_prefetched),
        cmocka_unit_test(known_masks_store_their_lanes),
        cmocka_unit_test(halves_are_loaded_and_rounded),
        cmocka_unit_test(what_the_set_lacks_is_unsupported),
        cmocka_unit_test(damaged_bytes_are_not_loaded),
        cmocka_unit_test(a_missing_library_is_reported),
        cmocka_unit_test(without_memory_nothing_is_left),
    };

    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
