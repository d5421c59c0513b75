/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as bytes comes back as it was, or not at all. */
#include "unit.h"

#include "base/str.h"
#include "host/plan/rig.h"
#include "plan/blob.h"
#include "plan/plan.h"
#include "plan/program.h"

/* Bytes that are not as they were written are refused, whichever. */
static void test_blob(void **state)
{
    struct store_fuser fuser;
    const struct store_context context = rig_context(&fuser, NULL);
    struct program *program = rig_program(5, 9, true);
    struct plan *plan = rig_plan(4, 5, program), *again;
    struct str bytes = {0}, second = {0};

    (void)state;
    assert_int_equal(blob_write(plan, &context, &bytes, NULL), FRIT_OK);
    assert_int_equal(blob_read(bytes.text, bytes.length, &context, &again, NULL), FRIT_OK);
    assert_int_equal(blob_write(again, &context, &second, NULL), FRIT_OK);
    assert_int_equal(bytes.length, second.length);
    assert_memory_equal(bytes.text, second.text, bytes.length);
    plan_unref(again);
    for (size_t i = 0; i < bytes.length; i++) {
        assert_int_equal(blob_read(bytes.text, i, &context, &again, NULL), FRIT_INCOMPATIBLE);
        bytes.text[i] = (char)(bytes.text[i] ^ 1);
        assert_int_equal(blob_read(bytes.text, bytes.length, &context, &again, NULL),
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
        cmocka_unit_test(test_a_passing_plan_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
