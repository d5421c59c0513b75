/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as bytes comes back as it was, or not at all. */
#include "unit.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/str.h"
#include "host/plan/rig.h"
#include "plan/blob.h"
#include "plan/plan.h"
#include "plan/program.h"
#include "plan/relative.h"
#include "plan/verify.h"

enum { OPS = 4, ROWS = 5 };

/* The plan over the first `n_ops` of the ops that bytes were saved of; NULL: they are refused. */
static struct plan *rebuild(const struct store_context *context, const struct str *bytes,
                            uint32_t n_ops)
{
    struct plan *saved, *plan = NULL;
    struct relative relative;

    if (blob_load(bytes->text, bytes->length, context, &saved, NULL)) {
        assert_null(saved);
        return NULL;
    }
    rig_relative(OPS, ROWS, &relative);
    if (blob_rebuild(saved, context, &relative, n_ops, &plan, NULL))
        assert_null(plan);
    relative_fini(&relative);
    plan_unref(saved);
    return plan;
}

/* Bytes that are not as they were written are refused, whichever. */
static void test_blob(void **state)
{
    struct store_fuser fuser;
    const struct store_context context = rig_context(&fuser, NULL);
    struct program *program = rig_program(5, 9, true);
    struct plan *plan = rig_plan(OPS, ROWS, program), *again, *saved;
    struct str bytes = {0}, second = {0};

    (void)state;
    assert_int_equal(blob_write(plan, &context, &bytes, NULL), FRIT_OK);
    assert_null(rebuild(&context, &bytes, OPS - 1));
    again = rebuild(&context, &bytes, OPS);
    assert_non_null(again);
    assert_int_equal(blob_write(again, &context, &second, NULL), FRIT_OK);
    assert_int_equal(bytes.length, second.length);
    assert_memory_equal(bytes.text, second.text, bytes.length);
    plan_unref(again);
    second.length = 0;
    assert_int_equal(blob_load(bytes.text, bytes.length, &context, &saved, NULL), FRIT_OK);
    assert_int_equal(blob_write(saved, &context, &second, NULL), FRIT_OK);
    assert_memory_equal(bytes.text, second.text, bytes.length);
    plan_unref(saved);
    for (size_t i = 0; i < bytes.length; i++) {
        assert_int_equal(blob_load(bytes.text, i, &context, &again, NULL), FRIT_INCOMPATIBLE);
        bytes.text[i] = (char)(bytes.text[i] ^ 1);
        assert_int_equal(blob_load(bytes.text, bytes.length, &context, &again, NULL),
                         FRIT_INCOMPATIBLE);
        bytes.text[i] = (char)(bytes.text[i] ^ 1);
        assert_null(again);
    }
    str_fini(&bytes);
    str_fini(&second);
    plan_unref(plan);
    program_unref(program);
    assert_int_equal(atomic_load(&rig_live_programs), 0);
}

/* Fuser programs get the ops that were looked for, with the deaths of those. */
static void test_the_ops_are_not_from_the_bytes(void **state)
{
    struct store_fuser fuser;
    const struct store_context context = rig_context(&fuser, NULL);
    struct program *program = rig_program(5, 9, true);
    struct plan *plan = rig_plan(OPS, ~(uint32_t)ROWS, program), *of = rig_plan(OPS, ROWS, NULL),
                *again;
    struct str bytes = {0};

    (void)state;
    assert_int_equal(blob_write(plan, &context, &bytes, NULL), FRIT_OK);
    again = rebuild(&context, &bytes, OPS);
    assert_non_null(again);
    for (uint32_t i = 0; i < OPS; i++) {
        assert_true(relative_same_op(&again->ops[i], &of->ops[i]));
        assert_false(relative_same_op(&again->ops[i], &plan->ops[i]));
    }
    plan_unref(again);
    plan_unref(of);
    plan_unref(plan);
    program_unref(program);
    str_fini(&bytes);
}

/* Words with any bit changed, the digest put right: a plan that is made runs each op once. */
static void test_forged(void **state)
{
    struct store_fuser fuser;
    const struct store_context context = rig_context(&fuser, NULL);
    struct program *program = rig_program(5, 9, true);
    struct plan *plan = rig_plan(OPS, ROWS, program);
    struct str bytes = {0};

    (void)state;
    assert_int_equal(blob_write(plan, &context, &bytes, NULL), FRIT_OK);
    for (size_t bit = 0; bit < (bytes.length - sizeof(uint64_t)) * 8; bit++) {
        struct plan *forged;
        uint64_t digest;

        bytes.text[bit / 8] = (char)(bytes.text[bit / 8] ^ 1 << bit % 8);
        digest = XXH3_64bits(bytes.text, bytes.length - sizeof(digest));
        memcpy(bytes.text + bytes.length - sizeof(digest), &digest, sizeof(digest));
        forged = rebuild(&context, &bytes, OPS);
        if (forged)
            assert_int_equal(plan_verify(forged, NULL), FRIT_OK);
        plan_unref(forged);
        bytes.text[bit / 8] = (char)(bytes.text[bit / 8] ^ 1 << bit % 8);
    }
    plan_unref(plan);
    program_unref(program);
    str_fini(&bytes);
    assert_int_equal(atomic_load(&rig_live_programs), 0);
}

/* The program of another plugin than the driver's must record, also if it was saved. */
static void test_a_program_that_cannot_run(void **state)
{
    static const frit_fuser_device foreign = {.struct_size = sizeof(foreign)};
    struct store_fuser fuser;
    const struct store_context context = rig_context(&fuser, NULL);
    struct program *program = rig_program(5, 9, true);
    struct plan *plan = rig_plan(OPS, ROWS, program);
    struct str bytes = {0};

    (void)state;
    assert_int_equal(blob_write(plan, &context, &bytes, NULL), FRIT_OK);
    fuser.device = &foreign;
    assert_null(rebuild(&context, &bytes, OPS));
    plan_unref(plan);
    program_unref(program);
    str_fini(&bytes);
    assert_int_equal(atomic_load(&rig_live_programs), 0);
}

/* What a fuser that failed did not find is for this process alone. */
static void test_a_passing_plan_is_not_written(void **state)
{
    struct store_fuser fuser;
    const struct store_context context = rig_context(&fuser, NULL);
    struct plan *plan = rig_plan(2, 0, NULL);
    struct str bytes = {0};

    (void)state;
    plan->passing = true;
    assert_int_equal(blob_write(plan, &context, &bytes, NULL), FRIT_UNSUPPORTED);
    assert_int_equal(bytes.length, 0);
    plan->passing = false;
    assert_int_equal(blob_write(plan, &context, &bytes, NULL), FRIT_OK);
    str_fini(&bytes);
    plan_unref(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blob),
        cmocka_unit_test(test_the_ops_are_not_from_the_bytes),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_a_program_that_cannot_run),
        cmocka_unit_test(test_a_passing_plan_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
