/* SPDX-License-Identifier: Apache-2.0 */
/* From a segment to a graph and a plan: composite ops that the driver does not claim are replaced
 * by their decomposition, values inside it die there, and a plan fits only the ops it was made for.
 */
#include "run/driver.h"

#include <string.h>

#include <frit/frit.h>

#include "base/str.h"
#include "device/device.h"
#include "failing_alloc.h"
#include "record/binding.h"
#include "run/drain.h"
#include "run/explore.h"

static const float six[6] = {1, 2, 3, 4, 5, 6};

struct rig {
    struct driver driver;
    frit_device *device;
    struct stream *stream;
    frit_scope scope; /* so that what is recorded stays */
    struct explorer explorer;
};

static void rig_open(struct rig *rig, bool decompose)
{
    struct binding *binding;

    memset(rig, 0, sizeof(*rig));
    rig->driver.decompose = decompose;
    rig->device = driver_device(&rig->driver, 100);
    assert_int_equal(binding_current(rig->device, &binding, NULL), FRIT_OK);
    rig->stream = binding->stream;
    rig->scope = frit_scope_begin(rig->device);
}

static void rig_close(struct rig *rig)
{
    explorer_fini(&rig->explorer);
    frit_scope_end(rig->scope);
    device_close(rig->device);
    assert_int_equal(rig->driver.programs_alive, 0);
}

static frit_tensor *make(struct rig *rig)
{
    return frit_from_host(rig->device, FRIT_F32, FRIT_SHAPE(6), six, sizeof(six));
}

static const struct segment *segment_of(const struct rig *rig)
{
    return rig->stream->segment;
}

static struct plan *explore(struct rig *rig)
{
    struct plan *plan;

    assert_int_equal(explorer_whole(&rig->explorer, rig->device, segment_of(rig), &plan, NULL),
                     FRIT_OK);
    return plan;
}

/* Checks the relative form of the ops that were explored last, one op per line. */
static void expect_relative(const struct rig *rig, const char *text)
{
    struct str out = {0};

    relative_print(&rig->explorer.relative, &out);
    assert_string_equal(out.text ? out.text : "", text);
    str_fini(&out);
}

/* ---- graphs ---- */

static void test_the_graph_follows_the_segment(void **state)
{
    struct rig rig;
    frit_tensor *x, *y;

    (void)state;
    rig_open(&rig, false);
    x = make(&rig);
    y = frit_neg(x);
    frit_add(y, x);
    assert_int_equal(explorer_graph(&rig.explorer, rig.device, segment_of(&rig), 1, NULL), FRIT_OK);
    assert_int_equal(rig.explorer.graph.n_ops, 1);
    assert_int_equal(explorer_graph(&rig.explorer, rig.device, segment_of(&rig), 2, NULL), FRIT_OK);
    assert_int_equal(rig.explorer.graph.n_ops, 2);
    assert_int_equal(rig.explorer.call_end[1], 2);
    assert_false(rig.explorer.expanded);
    explorer_reset(&rig.explorer);
    assert_int_equal(rig.explorer.graph.n_ops, 0);
    rig_close(&rig);
}

/* The driver claims no softmax. */
static void test_a_composite_is_decomposed(void **state)
{
    struct rig rig;
    struct plan *plan;
    frit_tensor *x;

    (void)state;
    rig_open(&rig, false);
    x = make(&rig);
    frit_neg(frit_softmax(frit_neg(x), 0));
    plan = explore(&rig);
    assert_true(rig.explorer.expanded);
    assert_int_equal(plan->n_calls, 3);
    assert_true(plan->n_ops > 5);
    assert_int_equal(rig.explorer.call_end[0], 1);
    assert_int_equal(rig.explorer.call_end[2], plan->n_ops);
    for (uint32_t i = 0; i < rig.explorer.graph.n_ops; i++)
        assert_int_equal(op_row(rig.explorer.graph.ops[i].op)->level, FRIT_LEVEL_CORE);
    /* once by this explorer, once by the stream's own, which makes the op's key */
    assert_int_equal(atomic_load(&rig.device->count.decomposed), 2);
    plan_unref(plan);
    rig_close(&rig);
}

/* ---- deaths ---- */

static void test_deaths_are_reported(void **state)
{
    struct rig rig;
    frit_tensor *x;

    (void)state;
    rig_open(&rig, false);
    x = make(&rig);
    frit_exp(frit_take(frit_neg(x)));
    plan_unref(explore(&rig));
    expect_relative(&rig, "0: neg f32[a] %0 -> %1\n1: exp f32[a] %1 -> %2 | dead %1\n");
    rig_close(&rig);
}

/* Every value inside the decomposition dies there; the operand and the result do not. */
static void test_inner_values_die_inside(void **state)
{
    struct rig rig;
    uint32_t n_dead = 0, n_inner, out;
    frit_tensor *x;

    (void)state;
    rig_open(&rig, false);
    x = make(&rig);
    frit_softmax(x, 0);
    plan_unref(explore(&rig));
    out = rig.explorer.value_of[1];
    n_inner = rig.explorer.graph.n_values - 2; /* all but x and the result */
    for (uint32_t i = 0; i < rig.explorer.relative.n_ops; i++) {
        const frit_op_desc *op = &rig.explorer.relative.ops[i];

        for (uint32_t k = 0; k < op->n_dead; k++) {
            assert_int_not_equal(op->dead[k], out);
            assert_int_not_equal(op->dead[k], rig.explorer.value_of[0]);
        }
        n_dead += op->n_dead;
    }
    assert_true(n_inner > 0);
    assert_int_equal(n_dead, n_inner);
    rig_close(&rig);
}

/* ---- plans ---- */

static void test_each_op_by_itself(void **state)
{
    struct rig rig;
    struct plan *plan;
    frit_tensor *x;

    (void)state;
    rig_open(&rig, false);
    x = make(&rig);
    frit_exp(frit_neg(x));
    assert_int_equal(
        explorer_plan_unfused(&rig.explorer, rig.device, segment_of(&rig), 2, &plan, NULL),
        FRIT_OK);
    assert_int_equal(plan->n_steps, 2);
    assert_null(plan->steps[0].program);
    plan_unref(plan);
    rig_close(&rig);
}

/* A plan fits the ops that it was made for, and no other ops recorded by as many calls. */
static void test_a_plan_must_fit(void **state)
{
    struct rig first, second;
    struct plan *plan;
    bool fits = false;

    (void)state;
    rig_open(&first, false);
    frit_softmax(make(&first), 0);
    plan = explore(&first);
    assert_int_equal(
        explorer_fits(&first.explorer, first.device, segment_of(&first), plan, &fits, NULL),
        FRIT_OK);
    assert_true(fits);
    rig_open(&second, false);
    frit_log_softmax(make(&second), 0);
    assert_int_equal(explorer_graph(&second.explorer, second.device, segment_of(&second), 1, NULL),
                     FRIT_OK);
    assert_int_equal(
        explorer_fits(&second.explorer, second.device, segment_of(&second), plan, &fits, NULL),
        FRIT_OK);
    assert_false(fits);
    plan_unref(plan);
    rig_close(&second);
    rig_close(&first);
}

/* ---- out of memory ---- */

static void test_every_allocation_fails(void **state)
{
    struct rig rig;
    bool hit = true;

    (void)state;
    rig_open(&rig, true);
    frit_exp(frit_softmax(frit_neg(make(&rig)), 0));
    for (long n = 0; hit; n++) {
        struct explorer explorer = {0};
        struct plan *plan;
        frit_status st;

        failing_alloc_arm(n);
        st = explorer_whole(&explorer, rig.device, segment_of(&rig), &plan, NULL);
        hit = failing_alloc_disarm();
        assert_true(hit || st == FRIT_OK);
        assert_true(st == FRIT_OK || st == FRIT_NO_HOST_MEMORY);
        assert_int_equal(plan != NULL, st == FRIT_OK);
        plan_unref(plan);
        explorer_fini(&explorer);
    }
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_graph_follows_the_segment),
        cmocka_unit_test(test_a_composite_is_decomposed),
        cmocka_unit_test(test_deaths_are_reported),
        cmocka_unit_test(test_inner_values_die_inside),
        cmocka_unit_test(test_each_op_by_itself),
        cmocka_unit_test(test_a_plan_must_fit),
        cmocka_unit_test(test_every_allocation_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
