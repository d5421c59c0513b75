/* SPDX-License-Identifier: Apache-2.0 */
/* [fusion] store: plans with custom ops are kept by their names.  Run with the name of a file it is
 * a process that uses that file; with "shifted" after it, one in which the ops have other numbers.
 */
#include "api/custom_rig.h"

#include <frit/inspect.h>

static const char *program;
static char folder[] = "/tmp/frit-custom-XXXXXX";

/* ---- a process ---- */

/* Two ops of the same form after each other, then with the other one first: a plan that took one
 * for the other would be seen. */
static void run_rounds(struct plugin_rig *rig)
{
    frit_tensor *x = filled(rig->dev, 2), *y = filled(rig->dev, 5);

    for (int i = 0; i < 3; i++) {
        frit_scope scope = frit_scope_begin(rig->dev);
        frit_tensor *a = axpby(rig->dev, 10, x, 1, y);
        frit_tensor *r = frit_keep(frit_neg(axpby(rig->dev, 1, a, 100, x)));
        frit_tensor *s = frit_keep(frit_neg(tick(frit_neg(a))));

        frit_scope_end(scope);
        expect_filled(r, -225);
        expect_filled(s, 25);
    }
    frit_release(x);
    frit_release(y);
}

static int use_file(const char *file, bool shifted)
{
    struct plugin_rig other = {0}, rig = {0};
    frit_custom_desc desc = {.struct_size = sizeof(desc)};
    frit_stats stats;

    if (shifted) {
        rig_plugin(&other, "plugin.fake-badops", RIG_BAD);
        rig_set(&other, "frit", "log", "error");
        rig_open(&other, "reference:0");
    }
    rig_set(&rig, "fusion", "store", file);
    custom_open(&rig, "custom:0", NULL);
    assert_int_equal(frit_custom_at(rig.host, 0, &desc), FRIT_OK);
    run_rounds(&rig);
    stats = rig_stats(&rig);
    printf("%u %u %u %u\n", desc.op, (unsigned)stats.store_loaded, (unsigned)stats.explorations,
           (unsigned)stats.fused);
    rig_close(&rig);
    if (shifted)
        rig_close(&other);
    return 0;
}

/* ---- what the others print ---- */

struct seen {
    unsigned op, loaded, explorations, fused;
};

static struct seen run_process(const char *file, const char *how)
{
    char command[512];
    struct seen seen = {0};
    FILE *out;

    snprintf(command, sizeof(command), "%s %s %s", program, file, how);
    out = popen(command, "r");
    assert_non_null(out);
    assert_int_equal(
        fscanf(out, "%u %u %u %u", &seen.op, &seen.loaded, &seen.explorations, &seen.fused), 4);
    assert_int_equal(pclose(out), 0);
    return seen;
}

static void names_outlive_numbers(void **state)
{
    struct seen first, again, shifted, back;
    char file[64], command[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/plans.db", folder);
    first = run_process(file, "");
    again = run_process(file, "");
    shifted = run_process(file, "shifted");
    back = run_process(file, "");
    assert_int_equal(first.op, FRIT_OP_CUSTOM);
    assert_int_equal(first.loaded, 0);
    assert_true(first.explorations > 0 && first.fused > 0);
    assert_int_equal(again.explorations, 0);
    assert_true(again.loaded > 0);
    assert_int_equal(again.fused, first.fused);
    assert_int_not_equal(shifted.op, first.op);
    assert_int_equal(shifted.loaded, again.loaded);
    assert_int_equal(shifted.explorations, 0);
    assert_int_equal(shifted.fused, first.fused);
    assert_int_equal(back.explorations, 0);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_outlive_numbers)};

    program = argv[0];
    if (argc > 1)
        return use_file(argv[1], argc > 2);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
