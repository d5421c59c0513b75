/* SPDX-License-Identifier: Apache-2.0 */
/* What the emitter chooses, by the words it writes: accesses, shapes, required capabilities,
 * refusals.  Needs no device. */
#include <string.h>

#include "base/fail.h"
#include "emit/random.h"
#include "emit/spirv/grammar.h"
#include "failing_alloc.h"
#include "ir/verify.h"
#include "kernels/emit/spirv/rig.h"
#include "unit.h"

enum { LANES = 256 };

static uint32_t op2(struct kir_module *m, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(m, op, a, b, KIR_NONE);
}

static uint32_t lane(struct kir_module *m)
{
    return kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
}

static uint32_t load(struct kir_module *m, uint32_t arg, uint32_t at)
{
    return kir_emit_as(m, KIR_load, kir_type_of(m->args[arg].dtype), arg, at, KIR_NONE, KIR_NONE);
}

static void store(struct kir_module *m, uint32_t arg, uint32_t at, uint32_t value)
{
    kir_emit_imm(m, KIR_store, arg, at, value, KIR_NONE);
}

/* Arguments of a dtype, one read and one written. */
static void begin(struct kir_module *m, uint32_t dtype, uint32_t lanes)
{
    kir_init(m, "words");
    kir_arg(m, dtype, KIR_READ);
    kir_arg(m, dtype, KIR_WRITE);
    kir_phase(m, lanes);
}

/* group * `factor` + lane; factor 0: a parameter. */
static uint32_t place(struct kir_module *m, uint32_t factor)
{
    uint32_t group = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    uint32_t by = factor ? kir_const_i(m, KIR_I32, factor) : kir_param(m, KIR_I32);

    return op2(m, KIR_add, op2(m, KIR_mul, group, by), lane(m));
}

static void copy(struct kir_module *m, uint32_t dtype, uint32_t factor)
{
    uint32_t at;

    begin(m, dtype, LANES);
    at = place(m, factor);
    store(m, 1, at, load(m, 0, at));
}

/* Stores of the code, and the lanes of each. */
static void check_copy(uint32_t dtype, uint32_t factor, bool aligned, uint32_t each,
                       uint32_t stores)
{
    struct spirv_code code;
    struct kir_module m;

    copy(&m, dtype, factor);
    spirv_rig_emit(&m, 0, &spirv_rich, aligned, &code);
    assert_int_equal(code.per_thread, each);
    assert_int_equal(code.threads, LANES / each);
    assert_int_equal(spirv_rig_count(&code, SPV_STORE), stores);
    spirv_fini(&code);
    kir_fini(&m);
}

static void wide_accesses(void **state)
{
    (void)state;
    check_copy(FRIT_F32, LANES, true, 4, 1);
    check_copy(FRIT_F64, LANES, true, 2, 1);
    check_copy(FRIT_F16, LANES, true, 8, 1);
    check_copy(FRIT_U8, LANES, true, 8, 1);
    check_copy(FRIT_F32, LANES, false, 4, 4);
    check_copy(FRIT_F32, 0, true, 4, 4);
    check_copy(FRIT_F32, 6, true, 4, 2);
    check_copy(FRIT_F32, 7, true, 4, 4);
}

/* Multiples are followed through loops and conversions. */
static void alignment_in_loops(void **state)
{
    struct spirv_code code;
    struct kir_module m;
    uint32_t eight, from, end, sum, counter, at;

    (void)state;
    begin(&m, FRIT_F32, LANES);
    eight = kir_const_i(&m, KIR_I32, 8);
    from = op2(&m, KIR_mul, kir_param(&m, KIR_I32), eight);
    end = kir_param(&m, KIR_I32);
    counter = kir_for(&m, from, end, LANES);
    sum = kir_phi(&m, eight);
    at = op2(&m, KIR_add, op2(&m, KIR_add, counter, sum), lane(&m));
    store(&m, 1, at, load(&m, 0, at));
    sum = op2(&m, KIR_add, sum, kir_const_i(&m, KIR_I32, 12));
    kir_next(&m, &sum, 1);
    assert_int_equal(kir_verify(&m, NULL, NULL), FRIT_OK);
    spirv_rig_emit(&m, 0, &spirv_rich, true, &code);
    assert_int_equal(spirv_rig_count(&code, SPV_STORE), 1);
    spirv_fini(&code);
    kir_fini(&m);
}

static void shapes(void **state)
{
    struct spirv_target target = spirv_rich;
    struct spirv_code code;
    struct kir_module m;

    (void)state;
    begin(&m, FRIT_F32, 4096);
    store(&m, 1, lane(&m), load(&m, 0, lane(&m)));
    spirv_rig_emit(&m, 0, &target, true, &code);
    assert_int_equal(code.threads, 1024);
    spirv_fini(&code);
    target.max_threads = 128;
    spirv_rig_emit(&m, 0, &target, true, &code);
    assert_int_equal(code.threads, 128);
    assert_int_equal(code.per_thread, 32);
    spirv_fini(&code);
    kir_fini(&m);
    begin(&m, FRIT_F32, 32); /* few lanes are a thread each */
    store(&m, 1, lane(&m), load(&m, 0, lane(&m)));
    spirv_rig_emit(&m, 0, &target, true, &code);
    assert_int_equal(code.threads, 32);
    spirv_fini(&code);
    kir_fini(&m);
}

static void nothing_contracts(void **state)
{
    struct spirv_code code;
    struct kir_module m;
    uint32_t x;

    (void)state;
    begin(&m, FRIT_F32, LANES);
    x = load(&m, 0, lane(&m));
    x = op2(&m, KIR_add, op2(&m, KIR_mul, x, x), x);
    store(&m, 1, lane(&m), op2(&m, KIR_sub, x, op2(&m, KIR_div, x, x)));
    spirv_rig_emit(&m, 0, &spirv_rich, true, &code);
    for (uint32_t i = 5, n = 0;; i += code.words[i] >> 16) {
        bool decorates = (code.words[i] & 0xffff) == SPV_DECORATE;

        n += decorates && code.words[i + 2] == SPV_DEC_NO_CONTRACTION;
        if ((code.words[i] & 0xffff) == SPV_FUNCTION) {
            assert_int_equal(n, 16);
            break;
        }
    }
    spirv_fini(&code);
    kir_fini(&m);
}

static void exchanges(struct kir_module *m, uint32_t lanes)
{
    uint32_t x;

    begin(m, FRIT_F32, lanes);
    x = load(m, 0, lane(m));
    for (uint32_t by = 1; by < lanes; by *= 2)
        x = op2(m, KIR_add, x, kir_emit_imm(m, KIR_exchange, by, x, KIR_NONE, KIR_NONE));
    store(m, 1, lane(m), x);
}

static void exchange_by_shuffles(void **state)
{
    struct spirv_target target = spirv_rich;
    struct spirv_code code;
    struct kir_module m;

    (void)state;
    exchanges(&m, LANES);
    /* 64 threads: 2 steps inside, after which its 4 lanes have one value, 5 shuffled, 1 not. */
    spirv_rig_emit(&m, 0, &target, true, &code);
    assert_true(code.subgroups);
    assert_int_equal(spirv_rig_count(&code, SPV_GROUP_SHUFFLE_XOR), 5);
    assert_int_equal(spirv_rig_count(&code, SPV_CONTROL_BARRIER), 2);
    assert_int_equal(code.shared_bytes, LANES * 4);
    spirv_fini(&code);
    target.subgroup = 0;
    spirv_rig_emit(&m, 0, &target, true, &code);
    assert_false(code.subgroups);
    assert_int_equal(spirv_rig_count(&code, SPV_GROUP_SHUFFLE_XOR), 0);
    assert_int_equal(spirv_rig_count(&code, SPV_CONTROL_BARRIER), 6 * 2);
    spirv_fini(&code);
    target.subgroup = 512; /* 256 threads do not fill it */
    spirv_rig_emit(&m, 0, &target, true, &code);
    assert_false(code.subgroups);
    spirv_fini(&code);
    kir_fini(&m);
}

static void block_of_launch(void **state)
{
    struct spirv_target target = spirv_rich;
    struct spirv_code code;
    struct kir_module m;

    (void)state;
    copy(&m, FRIT_F32, 0);
    spirv_rig_emit(&m, 0, &target, true, &code);
    assert_true(code.block_is_pushed);
    assert_int_equal(code.push_bytes, SPIRV_HEAD + 3 * 8);
    spirv_fini(&code);
    target.push_bytes = SPIRV_HEAD + 3 * 8 - 1;
    spirv_rig_emit(&m, 0, &target, true, &code);
    assert_false(code.block_is_pushed);
    assert_int_equal(code.push_bytes, SPIRV_LEAST_PUSH);
    spirv_fini(&code);
    target.split_block = true; /* one address for those of two arguments */
    spirv_rig_emit(&m, 0, &target, true, &code);
    assert_true(code.block_is_pushed);
    assert_int_equal(code.push_bytes, SPIRV_HEAD + 2 * 8);
    spirv_fini(&code);
    kir_fini(&m);
}

/* ---- refusals ---- */

static void check_refused(const struct kir_module *m, const struct spirv_target *target,
                          const char *part)
{
    frit_err err = ERR_INIT;
    struct spirv_code code;

    assert_int_equal(spirv_emit(m, 0, target, false, &code, &err), FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, part));
    assert_null(code.words);
    spirv_fini(&code);
}

static void what_is_lacking(void **state)
{
    struct spirv_target target = spirv_rich;
    struct spirv_code code;
    struct kir_module m;

    (void)state;
    copy(&m, FRIT_F64, LANES);
    target.float64 = false;
    check_refused(&m, &target, "64-bit floats");
    kir_fini(&m);
    target = spirv_rich;
    target.store8 = target.store16 = false;
    copy(&m, FRIT_U8, LANES);
    check_refused(&m, &target, "8 bits");
    spirv_rig_emit(&m, 0, &target, true, &code); /* in words */
    spirv_fini(&code);
    kir_fini(&m);
    copy(&m, FRIT_F16, LANES);
    check_refused(&m, &target, "16 bits");
    kir_fini(&m);
    target = spirv_rich;
    target.shared_bytes = LANES * 4 - 1;
    exchanges(&m, LANES);
    check_refused(&m, &target, "1024 bytes of memory");
    kir_fini(&m);
    target = spirv_rich;
    target.atomic_i64 = false;
    begin(&m, FRIT_I64, LANES);
    kir_emit_imm(&m, KIR_atomic_add, 1, lane(&m), load(&m, 0, lane(&m)), kir_const_b(&m, true));
    check_refused(&m, &target, "64-bit atomics");
    kir_fini(&m);
    begin(&m, FRIT_F32, LANES);
    kir_emit(&m, KIR_scale, load(&m, 0, lane(&m)), kir_const_f(&m, KIR_F32, 3), KIR_NONE);
    check_refused(&m, &spirv_rich, "power of 2");
    kir_fini(&m);
}

static void no_memory(void **state)
{
    frit_err err = ERR_INIT;
    struct spirv_code code;
    struct kir_module m;
    bool hit = true;

    (void)state;
    exchanges(&m, LANES);
    for (long n = 0; hit; n++) {
        frit_status status;

        failing_alloc_arm(n);
        status = spirv_emit(&m, 0, &spirv_rich, true, &code, &err);
        hit = failing_alloc_disarm();
        assert_int_equal(status, hit ? FRIT_NO_HOST_MEMORY : FRIT_OK);
        assert_int_equal(code.words == NULL, hit);
        spirv_fini(&code);
    }
    kir_fini(&m);
}

/* Modules of everything, as a device with everything gets them. */
static void random_modules_are_valid(void **state)
{
    struct random_target target = random_all;
    struct spirv_code code;
    struct random_case c;

    (void)state;
    target.scale = target.halves = target.dot2 = false;
    for (uint64_t i = 0; i < 200; i++) {
        random_case_init(&c, i, &target);
        for (uint32_t phase = 0; phase < c.module.n_phases; phase++) {
            spirv_rig_emit(&c.module, phase, &spirv_rich, i % 2, &code);
            spirv_fini(&code);
        }
        random_case_fini(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_accesses),
        cmocka_unit_test(alignment_in_loops),
        cmocka_unit_test(shapes),
        cmocka_unit_test(nothing_contracts),
        cmocka_unit_test(exchange_by_shuffles),
        cmocka_unit_test(block_of_launch),
        cmocka_unit_test(what_is_lacking),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(random_modules_are_valid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
