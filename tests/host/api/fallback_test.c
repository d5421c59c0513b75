/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that a driver refuses run on the device of [frit] fallback. */
#include "api/plugin_rig.h"

#include <frit/inspect.h>

#include "api/host.h"
#include "api/plugin_interface.h"
#include "device/device.h"
#include "fake/null/stats.h"

static const float four[4] = {1, 2, 3, 4};

static void open_null(struct plugin_rig *rig, const char *refused, const char *fallback)
{
    *rig = (struct plugin_rig){0};
    rig_plugin(rig, "plugin.null", RIG_NULL);
    rig_set(rig, "plugin.null", "option.max_fused_ops", "0");
    rig_set(rig, "plugin.null", "option.refuse", refused);
    rig_set(rig, "frit", "fallback", fallback);
}

/* x + x, reshaped, times itself, minus 1: steps that need the one before. */
static void run(frit_device *dev, float out[4])
{
    frit_tensor *x = frit_from_host(dev, FRIT_F32, FRIT_SHAPE(2, 2), four, sizeof(four));
    frit_tensor *a = frit_reshape(frit_take(frit_add(x, frit_take(x))), FRIT_SHAPE(4));
    frit_tensor *b = frit_mul(a, a);
    frit_tensor *c = frit_sub_f(frit_take(b), 1);

    frit_release(a);
    assert_int_equal(frit_read(frit_take(c), out, sizeof(four), NULL), FRIT_OK);
}

static void refused_ops_run_elsewhere(void **state)
{
    static const float right[4] = {3, 15, 35, 63};
    struct plugin_rig rig;
    float out[4] = {0};
    frit_stats stats;

    (void)state;
    open_null(&rig, "add mul sub", "reference:0");
    rig_open(&rig, "null:0");
    for (int i = 0; i < 3; i++) {
        run(rig.dev, out);
        assert_memory_equal(out, right, sizeof(right));
    }
    stats = rig_stats(&rig);
    assert_int_equal(stats.fallbacks_device, 9);
    assert_int_equal(stats.disabled, 0);
    rig_close(&rig);
}

/* How often a slot of the driver was called. */
static uint64_t calls(const struct plugin_rig *rig, const char *slot)
{
    void *instance;
    const null_stats *stats = rig_interface(rig->host, "null", NULL_STATS, &instance);

    return stats->get(instance, (frit_str){slot, strlen(slot)});
}

/* In one plan and in a plan for each op; with memory that has host pointers and without. */
static void a_chain_goes_over_once(void **state)
{
    static const float x0[4] = {-2, 0.5f, 3, 0},
                       right[4] = {-0.78539816f, 0, 0.78539816f, 0.78539816f};

    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct plugin_rig rig;
        float out[4] = {0};
        frit_stats stats;
        frit_tensor *x;

        open_null(&rig, "sign round atan atan2 cumsum", "reference:0");
        rig_set(&rig, "plugin.null", "option.opaque", kind & 2 ? "yes" : "no");
        rig_open(&rig, "null:0");
        for (uint64_t i = 1; i <= 3; i++) {
            frit_scope scope = frit_scope_begin(kind & 1 ? rig.dev : NULL);

            x = frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(4), x0, sizeof(x0));
            x = frit_atan(frit_take(frit_round(frit_take(frit_sign(frit_take(x))))));
            x = frit_cumsum(frit_take(x), 0);
            frit_keep(x);
            frit_scope_end(scope);
            assert_int_equal(frit_read(frit_take(x), out, sizeof(out), NULL), FRIT_OK);
            for (int k = 0; k < 4; k++)
                assert_float_equal(out[k], right[k], 1e-6);
            stats = rig_stats(&rig);
            assert_int_equal(stats.fallbacks_device, 4 * i);
            assert_int_equal(stats.bytes_in, sizeof(x0) * i);
            assert_int_equal(stats.bytes_out, sizeof(x0) * i);
            assert_int_equal(calls(&rig, "write"), i);
            assert_int_equal(calls(&rig, "read"), i);
            assert_int_equal(calls(&rig, "wait"), i);
        }
        rig_close(&rig);
    }
}

/* The numbers of `random` come from elsewhere: nobody waits for the device. */
static void random_numbers_do_not_wait(void **state)
{
    struct plugin_rig rig;
    frit_tensor *x[2];

    (void)state;
    open_null(&rig, "random_raw random_uniform", "reference:0");
    rig_open(&rig, "null:0");
    for (int i = 0; i < 2; i++)
        x[i] = frit_random_uniform(rig.dev, FRIT_F32, FRIT_SHAPE(64), 0, 1);
    assert_int_equal(frit_flush(rig.dev, NULL), FRIT_OK);
    assert_int_equal(rig_stats(&rig).fallbacks_device, 2);
    assert_int_equal(calls(&rig, "wait"), 0);
    assert_int_equal(calls(&rig, "read"), 0);
    assert_int_equal(calls(&rig, "write"), 2);
    for (int i = 0; i < 2; i++)
        frit_release(x[i]);
    rig_close(&rig);
}

/* A device of type software, of the driver with the least priority; not the device itself. */
static void auto_is_a_software_device(void **state)
{
    static const char *const priorities[] = {"5", "-5"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct plugin_rig rig;

        open_null(&rig, "add", "auto");
        rig_set(&rig, "plugin.null", "priority", priorities[i]);
        rig_open(&rig, "null:0");
        if (i == 0)
            assert_string_equal(rig.dev->fallback->entry->name, "reference:0");
        else
            assert_null(rig.dev->fallback);
        rig_close(&rig);
    }
}

static void what_ran_elsewhere_is_seen(void **state)
{
    frit_inspection *seen;
    struct plugin_rig rig;
    float out[4];
    char *text;

    (void)state;
    open_null(&rig, "mul", "reference:0");
    rig_open(&rig, "null:0");
    run(rig.dev, out);
    assert_int_equal(frit_inspect_start(rig.dev, NULL), FRIT_OK);
    run(rig.dev, out);
    assert_int_equal(frit_inspect_stop(rig.dev, &seen, NULL), FRIT_OK);
    text = frit_inspection_text(seen);
    assert_non_null(text);
    assert_non_null(strstr(text, "mul | ran on another device (the driver of null:0 has no such op "
                                 "for these types) | reads"));
    assert_null(strstr(strstr(text, "ran on") + 1, "ran on"));
    frit_free(text);
    frit_inspection_free(seen);
    rig_close(&rig);
}

/* Its ops run by themselves, also where it ran the short way before. */
static void a_block_that_failed_late_runs_no_more(void **state)
{
    struct plugin_rig rig = {0};
    frit_stats stats;

    (void)state;
    rig_plugin(&rig, "plugin.null", RIG_NULL);
    rig_set(&rig, "plugin.null", "option.fail_launch", "5:io");
    rig_open(&rig, "null:0");
    for (int i = 1; i <= 8; i++) {
        frit_tensor *x = frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(4), four, sizeof(four));
        frit_tensor *y = frit_exp(frit_take(frit_neg(frit_take(x))));

        assert_int_equal(frit_sync(rig.dev, NULL), i == 5 ? FRIT_IO : FRIT_OK);
        frit_release(y);
    }
    stats = rig_stats(&rig);
    assert_int_equal(stats.fused, 5);
    assert_int_equal(stats.disabled, 1);
    assert_int_equal(stats.launches, 5 + 3 * 2);
    rig_close(&rig);
}

/* The others stay where they are: the driver that computes nothing has launches of its own. */
static void only_refused_ops_run_elsewhere(void **state)
{
    struct plugin_rig rig;
    float out[4] = {0};
    frit_stats stats;

    (void)state;
    open_null(&rig, "mul", "reference:0");
    rig_open(&rig, "null:0");
    run(rig.dev, out);
    stats = rig_stats(&rig);
    assert_int_equal(stats.fallbacks_device, 1);
    assert_int_equal(stats.views, 1);
    assert_true(stats.launches >= 2);
    rig_close(&rig);
}

/* A driver that cannot copy: what lies otherwise than densely goes elsewhere as it lies, to be
 * read, laid out anew, written into, and moved by the program. */
static void strided_values_get_there_without_a_copy(void **state)
{
    static const float turned[6] = {6, 4, 2, 5, 3, 1}, six[6] = {1, 2, 3, 4, 5, 6};
    frit_tensor *x, *y, *moved;
    frit_device *reference;
    struct plugin_rig rig;
    float out[6];

    (void)state;
    open_null(&rig, "copy", "reference:0");
    rig_open(&rig, "null:0");
    assert_int_equal(frit_device_open(rig.host, "reference:0", &reference, NULL), FRIT_OK);
    x = frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(3, 2), six, sizeof(six));
    y = frit_flip(frit_take(frit_transpose(x, 0, 1)), .axes = FRIT_AXES(0, 1));
    assert_int_equal(frit_read(y, out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, turned, sizeof(turned));
    moved = frit_to_device(y, reference);
    assert_int_equal(frit_read(frit_take(moved), out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, turned, sizeof(turned));
    assert_int_equal(frit_read(frit_take(frit_reshape(y, FRIT_SHAPE(6))), out, sizeof(out), NULL),
                     FRIT_OK);
    assert_memory_equal(out, turned, sizeof(turned));
    assert_int_equal(frit_write(y, six, sizeof(six), NULL), FRIT_OK);
    assert_int_equal(frit_read(frit_take(y), out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, six, sizeof(six));
    assert_int_equal(frit_read(frit_take(x), out, sizeof(out), NULL), FRIT_OK);
    assert_memory_equal(out, six, sizeof(six));
    frit_device_close(reference);
    rig_close(&rig);
}

/* ---- what would happen ---- */

static uint32_t support(frit_device *dev, const char *op)
{
    const frit_port port = {.struct_size = sizeof(port), .dtype = FRIT_F32, .dims = FRIT_SHAPE(4)};
    frit_err err = {.struct_size = sizeof(err)};
    frit_graph *graph;
    char text[256];
    uint32_t how;

    snprintf(text, sizeof(text), "input x : f32[4]\n%s\noutput y\n", op);
    if (frit_graph_parse("test", text, strlen(text), &graph, &err))
        fail_msg("%s", err.text);
    assert_int_equal(frit_graph_support(graph, dev), FRIT_SUPPORT_NONE); /* no dims yet */
    if (frit_graph_bind(graph, &port, 1, &err))
        fail_msg("%s", err.text);
    how = frit_graph_support(graph, dev);
    assert_int_equal(frit_graph_support(graph, NULL), FRIT_SUPPORT_NONE);
    frit_graph_free(graph);
    return how;
}

static void the_least_direct_way_is_reported(void **state)
{
    struct plugin_rig rig;

    (void)state;
    for (int with = 0; with < 2; with++) {
        uint32_t elsewhere = with ? FRIT_SUPPORT_FALLBACK : FRIT_SUPPORT_NONE;

        open_null(&rig, "sqrt rsqrt square layer_norm", with ? "reference:0" : "none");
        rig_open(&rig, "null:0");
        assert_int_equal(support(rig.dev, "y = exp x"), FRIT_SUPPORT_NATIVE);
        assert_int_equal(support(rig.dev, "y = flip x, axes=[0]"), FRIT_SUPPORT_HOST);
        assert_int_equal(support(rig.dev, "y = square x"), FRIT_SUPPORT_DECOMPOSED);
        assert_int_equal(support(rig.dev, "y = sqrt x"), elsewhere);
        assert_int_equal(support(rig.dev, "y = rsqrt x"), elsewhere);      /* by way of sqrt */
        assert_int_equal(support(rig.dev, "y = layer_norm x"), elsewhere); /* two levels down */
        assert_int_equal(support(rig.dev, "a = exp x\nb = flip a, axes=[0]\ny = sqrt b"),
                         elsewhere);
        assert_int_equal(support(rig.dev, "a = square x\ny = exp a"), FRIT_SUPPORT_DECOMPOSED);
        assert_int_equal(rig_stats(&rig).ops, 0);
        rig_close(&rig);
    }
}

static void without_one_they_fail(void **state)
{
    frit_tensor *x, *y;
    struct plugin_rig rig;

    (void)state;
    open_null(&rig, "add", "none");
    rig_open(&rig, "null:0");
    x = frit_from_host(rig.dev, FRIT_F32, FRIT_SHAPE(4), four, sizeof(four));
    y = frit_add(x, frit_take(x));
    assert_int_equal(frit_sync(rig.dev, NULL), FRIT_UNSUPPORTED);
    assert_int_equal(frit_tensor_status(y), FRIT_UNSUPPORTED);
    assert_non_null(strstr(frit_tensor_error(y), "add"));
    frit_release(y);
    assert_int_equal(rig_stats(&rig).fallbacks_device, 0);
    rig_close(&rig);
}

/* Opened and closed by itself meanwhile, in either order; by itself it is like any other. */
static void it_is_open_as_long_as_it_is_needed(void **state)
{
    frit_device *own = NULL, *again = NULL;
    struct plugin_rig rig;
    float out[4] = {0};

    (void)state;
    open_null(&rig, "add mul sub", "reference");
    rig_open(&rig, "null:0");
    assert_int_equal(frit_device_open(rig.host, "reference:0", &own, NULL), FRIT_OK);
    run(own, out);
    assert_int_equal((int)out[3], 63);
    frit_device_close(own);
    memset(out, 0, sizeof(out));
    run(rig.dev, out);
    assert_int_equal((int)out[3], 63);
    assert_int_equal(frit_device_open(rig.host, "reference:0", &own, NULL), FRIT_OK);
    assert_int_equal(frit_device_open(rig.host, "null:0", &again, NULL), FRIT_OK);
    assert_ptr_equal(again, rig.dev);
    frit_device_close(again);
    rig_close(&rig);

    open_null(&rig, "add mul sub", "reference");
    rig_open(&rig, "null:0");
    assert_non_null(rig.host->devices->next);
    frit_device_close(rig.dev);
    assert_null(rig.host->devices);
    assert_int_equal(frit_device_open(rig.host, "reference:0", &rig.dev, NULL), FRIT_OK);
    memset(out, 0, sizeof(out));
    run(rig.dev, out);
    assert_int_equal((int)out[3], 63);
    rig_close(&rig);
}

static void a_bad_name_is_reported(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    static const char *const names[] = {"nowhere", "reference:9", "::"};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct plugin_rig rig;

        open_null(&rig, "add", names[i]);
        rig_set(&rig, "frit", "log", "off");
        rig_host(&rig);
        assert_true(frit_device_open(rig.host, "null:0", &rig.dev, &err) < 0);
        assert_null(rig.dev);
        if (!strstr(err.text, "program: [frit] fallback"))
            fail_msg("%s", err.text);
        frit_host_close(rig.host);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_ops_run_elsewhere),
        cmocka_unit_test(a_chain_goes_over_once),
        cmocka_unit_test(random_numbers_do_not_wait),
        cmocka_unit_test(auto_is_a_software_device),
        cmocka_unit_test(what_ran_elsewhere_is_seen),
        cmocka_unit_test(a_block_that_failed_late_runs_no_more),
        cmocka_unit_test(only_refused_ops_run_elsewhere),
        cmocka_unit_test(strided_values_get_there_without_a_copy),
        cmocka_unit_test(the_least_direct_way_is_reported),
        cmocka_unit_test(without_one_they_fail),
        cmocka_unit_test(it_is_open_as_long_as_it_is_needed),
        cmocka_unit_test(a_bad_name_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
