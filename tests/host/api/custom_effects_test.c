/* SPDX-License-Identifier: Apache-2.0 */
/* Custom ops with effects, from the call to the driver: never dropped, doubled or reordered. */
#include <math.h>
#include <pthread.h>

#include "api/custom_rig.h"

static struct logged logged;

static void open_saying(struct plugin_rig *rig, const char *device)
{
    logged = (struct logged){.effects = ""};
    custom_open(rig, device, &logged);
}

static void expect_said(const char *text)
{
    assert_string_equal(logged.effects, text);
    logged.effects[0] = '\0';
}

static void unread_ones_run(void **state)
{
    struct plugin_rig rig = {0};
    frit_tensor *x;

    (void)state;
    open_saying(&rig, "custom:0");
    x = filled(rig.dev, 3);
    frit_release(frit_neg(x));
    frit_release(tick(x));
    note(x);
    frit_release(axpby(rig.dev, 1, x, 1, x));
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    expect_said("tick 3\nnote 3\n");
    assert_true(rig_stats(&rig).skipped > 0);
    frit_release(x);
    rig_close(&rig);
}

static void the_end_of_a_device_runs_them(void **state)
{
    struct plugin_rig rig = {0};

    (void)state;
    open_saying(&rig, "custom:0");
    note(frit_take(filled(rig.dev, 5)));
    expect_said("");
    frit_device_close(rig.dev);
    expect_said("note 5\n");
    frit_host_close(rig.host);
}

/* With and without fusers, again and again: the first run is searched, later ones are played. */
static void they_stay_in_order(void **state)
{
    static const char *const enabled[] = {"yes", "no"};
    static const char *const devices[] = {"custom:0", "reference:0"};

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct plugin_rig rig = {0};
        frit_tensor *x, *y;

        rig_set(&rig, "fusion", "enabled", enabled[i % 2]);
        rig_set(&rig, "frit", "fallback", "custom:0");
        open_saying(&rig, devices[i / 2]);
        x = filled(rig.dev, 1), y = filled(rig.dev, 2);
        for (int k = 0; k < 5; k++) {
            frit_scope scope = frit_scope_begin(rig.dev);
            frit_tensor *a = tick(axpby(rig.dev, 2, x, 1, y));
            frit_tensor *r;

            note(y);
            r = tick(frit_add(a, y));
            tick(x);
            r = frit_keep(frit_neg(r));
            frit_scope_end(scope);
            assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
            expect_said("tick 4\nnote 2\ntick 6\ntick 1\n");
            expect_filled(r, -6);
        }
        frit_release(x);
        frit_release(y);
        rig_close(&rig);
    }
}

/* An op with the same operands and results, none of them an attribute, is another op all the same.
 */
static void others_of_their_form_have_no_effects(void **state)
{
    struct plugin_rig rig = {0};
    frit_tensor *x;

    (void)state;
    open_saying(&rig, "custom:0");
    x = filled(rig.dev, 1);
    for (int i = 0; i < 6; i++) {
        expect_filled(i % 2 ? call_op(rig.dev, "org.frit.test.fold/1", x, NULL, NULL, 0) : tick(x),
                      1);
        expect_said(i % 2 ? "" : "tick 1\n");
    }
    frit_release(x);
    rig_close(&rig);
}

/* A fuser that knows them takes them into a block. */
static void blocks_hold_them(void **state)
{
    struct plugin_rig rig = {0};
    frit_tensor *x;

    (void)state;
    open_saying(&rig, "custom:0");
    x = filled(rig.dev, 1);
    for (int k = 0; k < 3; k++) {
        frit_scope scope = frit_scope_begin(rig.dev);

        tick(frit_neg(tick(frit_neg(frit_neg(x)))));
        frit_scope_end(scope);
        assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
        expect_said("tick 1\ntick -1\n");
    }
    assert_int_equal(rig_stats(&rig).fused, 3);
    assert_int_equal(rig_stats(&rig).launches, 3);
    frit_release(x);
    rig_close(&rig);
}

static void a_failed_one_is_reported_at_sync(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    static const char *const devices[] = {"custom:0", "reference:0"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct plugin_rig rig = {0};

        if (i == 1)
            rig_set(&rig, "frit", "fallback", "custom:0");
        else
            rig_set(&rig, "frit", "fallback", "none");
        open_saying(&rig, devices[i]);
        note(frit_take(filled(rig.dev, 1)));
        note(frit_take(filled(rig.dev, NAN)));
        note(frit_take(filled(rig.dev, 2)));
        assert_int_equal(frit_sync(rig.dev, &err), FRIT_IO);
        assert_non_null(strstr(err.text, NOTE ": "));
        assert_non_null(strstr(err.text, "a NaN is nothing to note"));
        expect_said("note 1\nnote 2\n");
        assert_int_equal(frit_sync(rig.dev, &err), FRIT_OK);
        rig_close(&rig);
    }
}

static void one_without_elements_does_not_run(void **state)
{
    struct plugin_rig rig = {0};
    frit_tensor *x;

    (void)state;
    open_saying(&rig, "custom:0");
    x = frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(0), NULL, 0);
    frit_release(tick(frit_take(x)));
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_OK);
    expect_said("");
    rig_close(&rig);
}

static void *record_one(void *ctx)
{
    note(frit_take(filled(ctx, 9)));
    return NULL;
}

static void another_threads_run_with_all(void **state)
{
    struct plugin_rig rig = {0};
    pthread_t thread;

    (void)state;
    open_saying(&rig, "custom:0");
    assert_int_equal(pthread_create(&thread, NULL, record_one, rig.dev), 0);
    pthread_join(thread, NULL);
    assert_int_equal(frit_sync_all(rig.dev, NULL), FRIT_OK);
    expect_said("note 9\n");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unread_ones_run),
        cmocka_unit_test(the_end_of_a_device_runs_them),
        cmocka_unit_test(they_stay_in_order),
        cmocka_unit_test(others_of_their_form_have_no_effects),
        cmocka_unit_test(blocks_hold_them),
        cmocka_unit_test(a_failed_one_is_reported_at_sync),
        cmocka_unit_test(one_without_elements_does_not_run),
        cmocka_unit_test(another_threads_run_with_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
