/* SPDX-License-Identifier: Apache-2.0 */
/* Texts compile: those of random modules, and one with every row, by HIPRTC for three
 * architectures where it is installed (it needs no device), and by NVRTC where FRIT_TEST_NVRTC
 * names its library.  FRIT_TEST_LONG=1: more modules; FRIT_TEST_CASE is the number of the first. */
#include <stdio.h>
#include <stdlib.h>

#include "emit/c/ctext.h"
#include "emit/random.h"
#include "ir/verify.h"
#include "kernels/emit/c/rtc.h"
#include "kernels/emit/row_types.h"
#include "unit.h"

#ifdef __SANITIZE_ADDRESS__
enum { CASES = 1 }; /* what is slow is the compiler, and it is not sanitized */
#else
enum { CASES = 3 };
#endif
enum { LONG_CASES = 150, LANES = 256, SIZE_OF_LIST = 3 };
enum { SHARED_BYTES = 48 << 10, PARAMS_BYTES = 4000 };

#define SIZE(array) (sizeof(array) / sizeof(*(array)))

struct compiler {
    enum ctext_dialect dialect;
    const char *prefix, *libraries[SIZE_OF_LIST];
    const char *contraction;
    struct {
        const char *option;
        uint32_t warp;
    } archs[SIZE_OF_LIST];
};

/* Not gfx1100: HIPRTC 5.2 ends the process. */
static const struct compiler hiprtc = {
    CTEXT_HIP,
    "hiprtc",
    {"libamdhip64.so.5", "libhiprtc.so.6", "libhiprtc.so.7"},
    "-ffp-contract=off",
    {{"--gpu-architecture=gfx906", 64},
     {"--gpu-architecture=gfx90a", 64},
     {"--gpu-architecture=gfx1030", 32}},
};

/* With and without conversions to BF16. */
static const struct compiler nvrtc = {
    CTEXT_CUDA,
    "nvrtc",
    {NULL},
    "-fmad=false",
    {{"--gpu-architecture=sm_90", 32}, {"--gpu-architecture=sm_75", 32}},
};

static void compile(const struct compiler *c, const struct rtc *rtc, const struct kir_module *m,
                    bool aligned, const char *name)
{
    for (uint32_t i = 0; i < SIZE(c->archs) && c->archs[i].option; i++) {
        const struct ctext_target target = {c->dialect, 1024, c->archs[i].warp, SHARED_BYTES,
                                            PARAMS_BYTES};
        const char *const options[] = {c->archs[i].option, c->contraction};
        frit_err err = {.struct_size = sizeof(err)};
        struct ctext_phase phases[KIR_PHASES];
        struct ctext_kernels kernels;
        struct str text = {0};

        if (ctext_emit_gpu(m, &target, aligned, &text, phases, &kernels, &err))
            fail_msg("%s", err.text);
        rtc_compile(rtc, name, text.text, SIZE(options), options);
        str_fini(&text);
    }
}

/* ---- all rows ---- */

static const uint32_t dtypes[KIR_TYPES] = {0, FRIT_BOOL, FRIT_I32, FRIT_I64, FRIT_F32, FRIT_F64};

/* Of loaded values, stored to the argument of the result's type: those of operands are the first,
 * by type. */
static void add_row(struct kir_module *m, uint32_t op, uint32_t type, uint64_t imm, uint32_t *place)
{
    uint32_t v[3] = {KIR_NONE, KIR_NONE, KIR_NONE}, result = row_result(op, type);

    for (uint32_t i = 0; i < kir_op_info(op)->n; i++) {
        uint32_t of = row_operand(op, type, i);

        v[i] = kir_emit_as(m, KIR_load, (enum kir_type)of, of - KIR_B, *place, KIR_NONE, KIR_NONE);
        *place = kir_binary(m, KIR_add, *place, kir_const_i(m, KIR_I32, LANES));
    }
    kir_emit_imm(m, KIR_store, result - KIR_B, *place,
                 kir_emit_as(m, (enum kir_op)op, (enum kir_type)result, imm, v[0], v[1], v[2]),
                 KIR_NONE);
}

static void add_rows(struct kir_module *m, uint32_t op, uint32_t type, uint32_t *place)
{
    static const int64_t wraps[] = {8, 16, -8, -16}, halves[] = {FRIT_F16, FRIT_BF16};
    const int64_t *list = op == KIR_wrap ? wraps : halves;
    size_t n = op == KIR_wrap ? SIZE(wraps) : op == KIR_round ? SIZE(halves) : 0;

    if (!n)
        add_row(m, op, type, 0, place);
    for (size_t i = 0; i < n; i++)
        add_row(m, op, type, (uint64_t)list[i], place);
}

static void add_copies(struct kir_module *m, uint32_t place)
{
    static const uint32_t small[] = {FRIT_I8, FRIT_U8, FRIT_I16, FRIT_U16, FRIT_F16, FRIT_BF16};

    for (uint32_t i = 0; i < SIZE(small); i++) {
        uint32_t arg = kir_arg(m, small[i], KIR_READ | KIR_WRITE);
        uint32_t value =
            kir_emit_as(m, KIR_load, kir_type_of(small[i]), arg, place, KIR_NONE, KIR_NONE);

        kir_emit_imm(m, KIR_store, arg, place, value, KIR_NONE);
    }
}

static void check_rows(const struct compiler *c, const struct rtc *rtc)
{
    struct kir_module m;
    uint32_t place;

    kir_init(&m, "rows");
    kir_phase(&m, LANES);
    for (uint32_t type = KIR_B; type < KIR_TYPES; type++)
        kir_arg(&m, dtypes[type], KIR_READ | KIR_WRITE);
    place = kir_emit(&m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    add_copies(&m, place);
    for (uint32_t op = 0; op < KIR_OPS; op++) {
        for (uint32_t type = KIR_B; type < KIR_TYPES; type++) {
            if (row_result(op, type) != KIR_VOID)
                add_rows(&m, op, type, &place);
        }
    }
    assert_int_equal(kir_verify(&m, NULL, NULL), FRIT_OK);
    compile(c, rtc, &m, true, "rows");
    kir_fini(&m);
}

/* ---- tests ---- */

static void check_random(const struct compiler *c, const struct rtc *rtc)
{
    const char *first = getenv("FRIT_TEST_CASE");
    uint64_t from = first ? strtoull(first, NULL, 10) : 0;
    uint64_t n = first ? 1 : getenv("FRIT_TEST_LONG") ? LONG_CASES : CASES;

    for (uint64_t i = from; i < from + n; i++) {
        struct random_case r;
        char name[32];

        snprintf(name, sizeof(name), "case %llu", (unsigned long long)i);
        random_case_init(&r, i, &random_all);
        compile(c, rtc, &r.module, i % 2 == 0, name);
        random_case_fini(&r);
    }
}

static void texts_compile_by_hiprtc(void **state)
{
    struct rtc rtc = {0};

    (void)state;
    for (uint32_t i = 0; i < SIZE(hiprtc.libraries) && !rtc.library; i++)
        rtc_open(&rtc, hiprtc.libraries[i], hiprtc.prefix);
    if (!rtc.library) {
        print_message("HIPRTC is not installed (libamdhip64-5)\n");
        skip();
    }
    check_rows(&hiprtc, &rtc);
    check_random(&hiprtc, &rtc);
    /* Not closed: its threads outlive it. */
}

static void texts_compile_by_nvrtc(void **state)
{
    const char *library = getenv("FRIT_TEST_NVRTC");
    struct rtc rtc;

    (void)state;
    if (!library) {
        print_message("FRIT_TEST_NVRTC does not name a library\n");
        skip();
    }
    if (!rtc_open(&rtc, library, nvrtc.prefix))
        fail_msg("cannot open %s", library);
    check_rows(&nvrtc, &rtc);
    check_random(&nvrtc, &rtc);
    rtc_close(&rtc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_compile_by_hiprtc),
        cmocka_unit_test(texts_compile_by_nvrtc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
