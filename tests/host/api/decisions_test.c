/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions of a device as programs see them: listed, forgotten, and taken to another machine of
 * the same kind with what the driver keeps. */
#include "host/api/plugin_rig.h"

#include <unistd.h>

#include <frit/tune.h>

#include "device/device.h"
#include "host/tune/record_rig.h"
#include "load/artefact.h"
#include "load/registry.h"
#include "load/service.h"
#include "tune/store.h"

static char scratch[] = "/tmp/frit-api-tune-XXXXXX";

enum { LIMIT = 1 << 20 };

/* A path in the folder of the test, until the next but three. */
static const char *in_scratch(const char *name)
{
    static char paths[4][128];
    static int n;
    char *path = paths[n++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", scratch, name);
    return path;
}

/* A device whose machine keeps things in folder `machine` of the test. */
static void open_machine(struct plugin_rig *rig, const char *machine, const char *fingerprint)
{
    static char paths[2][128];

    *rig = (struct plugin_rig){0};
    snprintf(paths[0], sizeof(paths[0]), "%s/%s/tune.db", scratch, machine);
    snprintf(paths[1], sizeof(paths[1]), "%s/%s/artefacts", scratch, machine);
    rig_plugin(rig, "plugin.fake-candidates", "fake/candidates/libfrit-fake-candidates.so");
    rig_set(rig, "plugin.fake-candidates", "option.fingerprint", fingerprint);
    rig_set(rig, "tune", "store", paths[0]);
    rig_set(rig, "frit", "artefacts", paths[1]);
    rig_open(rig, "candidates");
}

static void add(frit_device *device, uint64_t key, uint64_t ns)
{
    struct tune_record *record = record_rig_small(key, ns);

    assert_int_equal(tune_store_add(device_tune_store(device), record, NULL), FRIT_OK);
    tune_record_destroy(record);
}

static uint64_t count(frit_device *device)
{
    frit_decision_desc desc = {.struct_size = sizeof(desc)};
    frit_decisions *list;
    uint64_t n = 0;

    assert_int_equal(frit_decisions_read(device, &list, NULL), FRIT_OK);
    while (frit_decision_at(list, n, &desc) == FRIT_OK)
        n++;
    frit_decisions_free(list);
    return n;
}

static void test_list(void **state)
{
    frit_decision_desc desc = {.struct_size = sizeof(desc)};
    frit_tried_desc tried = {.struct_size = sizeof(tried)};
    struct plugin_rig rig;
    frit_decisions *list;

    (void)state;
    open_machine(&rig, "list", "f");
    assert_int_equal(count(rig.dev), 0);
    add(rig.dev, 1, 500);
    assert_int_equal(frit_decisions_read(rig.dev, &list, NULL), FRIT_OK);
    rig_close(&rig);
    assert_int_equal(frit_decision_at(list, 0, &desc), FRIT_OK);
    assert_string_equal(desc.what, "matmul 128x128 f32");
    assert_string_equal(desc.clock, "device");
    assert_string_equal(desc.reason, "measured");
    assert_int_equal(desc.n_candidates, 3);
    assert_int_equal(frit_decision_candidate_at(list, 0, 1, &tried), FRIT_OK);
    assert_string_equal(tried.identity, "plain");
    assert_string_equal(tried.state, "right");
    assert_int_equal(tried.best_ns, 1000);
    assert_int_equal(tried.median_ns, 1000);
    assert_int_equal(tried.n_samples, 2);
    assert_int_equal(tried.samples_ns[1], 1001);
    assert_false(tried.is_quarantined);
    assert_int_equal(frit_decision_candidate_at(list, 0, 2, &tried), FRIT_OK);
    assert_string_equal(tried.numeric_class, "reduced");
    assert_string_equal(tried.evidence, "output 0 differs by 2.0 at 17");
    assert_true(tried.is_quarantined);
    assert_int_equal(tried.median_ns, 0);
    assert_int_equal(frit_decision_candidate_at(list, 0, 3, &tried), FRIT_INVALID);
    assert_int_equal(frit_decision_at(list, 1, &desc), FRIT_INVALID);
    desc.struct_size = 0;
    assert_int_equal(frit_decision_at(list, 0, &desc), FRIT_INVALID);
    frit_decisions_free(list);
    frit_decisions_free(NULL);
    open_machine(&rig, "list", "f");
    assert_int_equal(count(rig.dev), 1); /* from the file */
    rig_close(&rig);
    open_machine(&rig, "list", "g");
    assert_int_equal(count(rig.dev), 0);
    rig_close(&rig);
}

/* What the file has for the open device, as everybody sees it. */
static uint64_t count_in_file(const struct plugin_rig *rig)
{
    frit_device_desc device = {.struct_size = sizeof(device)};
    uint64_t index = 0, n = 99;
    frit_err err = {.struct_size = sizeof(err)};

    while (frit_device_info_at(rig->host, index, &device) == FRIT_OK &&
           strcmp(device.name, frit_device_name(rig->dev)) != 0)
        index++;
    assert_int_equal(frit_decisions_count(rig->host, index, &n, &err), FRIT_OK);
    return n;
}

static void test_count(void **state)
{
    struct plugin_rig rig;
    uint64_t n = 99;

    (void)state;
    open_machine(&rig, "count", "f");
    assert_int_equal(count_in_file(&rig), 0);
    add(rig.dev, 1, 500);
    add(rig.dev, 2, 500);
    add(rig.dev, 1, 600);
    assert_int_equal(count_in_file(&rig), 2);
    assert_int_equal(frit_decisions_count(rig.host, 99, &n, NULL), FRIT_INVALID);
    assert_int_equal(n, 0);
    assert_int_equal(frit_decisions_count(rig.host, 0, NULL, NULL), FRIT_INVALID);
    assert_int_equal(frit_decisions_count(NULL, 0, &n, NULL), FRIT_INVALID);
    rig_close(&rig);
    open_machine(&rig, "count", "g");
    assert_int_equal(count_in_file(&rig), 0);
    rig_close(&rig);
    open_machine(&rig, "count", "f");
    assert_int_equal(count_in_file(&rig), 2);
    rig_close(&rig);
}

static void test_forget(void **state)
{
    struct plugin_rig rig;
    uint64_t n;

    (void)state;
    open_machine(&rig, "forget", "f");
    add(rig.dev, 1, 500);
    add(rig.dev, 2, 600);
    assert_int_equal(frit_decisions_forget(rig.dev, "conv", &n, NULL), FRIT_OK);
    assert_int_equal(n, 0);
    assert_int_equal(count(rig.dev), 2);
    assert_int_equal(frit_decisions_forget(rig.dev, "128", &n, NULL), FRIT_OK);
    assert_int_equal(n, 2);
    assert_int_equal(count(rig.dev), 0);
    add(rig.dev, 3, 700);
    assert_int_equal(frit_decisions_forget(rig.dev, NULL, NULL, NULL), FRIT_OK);
    rig_close(&rig);
    open_machine(&rig, "forget", "f");
    assert_int_equal(count(rig.dev), 0);
    assert_int_equal(frit_decisions_forget(NULL, NULL, NULL, NULL), FRIT_INVALID);
    rig_close(&rig);
}

/* ---- bundles ---- */

static const char *space_of(const frit_device *device)
{
    const char *space = service_space(device->entry->plugin->service);

    assert_non_null(space);
    return space;
}

static struct artefact_name name_of(const char *space)
{
    return (struct artefact_name){space, FRIT_STR("kernels"), "key", 3};
}

static void test_bundle(void **state)
{
    frit_bundle_desc bundle = {.struct_size = sizeof(bundle)};
    frit_err err = {.struct_size = sizeof(err)};
    struct artefact_name name;
    struct plugin_rig rig;
    char kernel[4];

    (void)state;
    open_machine(&rig, "first", "f");
    add(rig.dev, 1, 500);
    add(rig.dev, 2, 600);
    name = name_of(space_of(rig.dev));
    assert_int_equal(artefact_put(in_scratch("first/artefacts"), LIMIT, &name, "code", 4, NULL),
                     FRIT_OK);
    name = name_of("another plugin");
    assert_int_equal(artefact_put(in_scratch("first/artefacts"), LIMIT, &name, "other", 5, NULL),
                     FRIT_OK);
    assert_int_equal(frit_decisions_export(rig.dev, in_scratch("bundle"), &bundle, &err), FRIT_OK);
    assert_int_equal(bundle.n_decisions, 2);
    assert_int_equal(bundle.n_artefacts, 1);
    rig_close(&rig);

    open_machine(&rig, "second", "f");
    add(rig.dev, 2, 700);
    assert_int_equal(frit_decisions_import(rig.dev, in_scratch("bundle"), &bundle, &err), FRIT_OK);
    assert_int_equal(bundle.n_decisions, 2);
    assert_int_equal(bundle.n_known, 1);
    assert_int_equal(bundle.n_artefacts, 1);
    assert_int_equal(count(rig.dev), 2);
    name = name_of(space_of(rig.dev));
    assert_true(artefact_get_record(in_scratch("second/artefacts"), &name, kernel, 4));
    assert_memory_equal(kernel, "code", 4);
    rig_close(&rig);
    open_machine(&rig, "second", "f");
    assert_int_equal(count(rig.dev), 2);
    rig_close(&rig);

    open_machine(&rig, "third", "g");
    assert_int_equal(frit_decisions_import(rig.dev, in_scratch("bundle"), &bundle, &err),
                     FRIT_INCOMPATIBLE);
    assert_non_null(strstr(err.text, "another kind of device"));
    assert_int_equal(count(rig.dev), 0);
    rig_close(&rig);
}

static void test_bad_bundles(void **state)
{
    frit_bundle_desc unsized = {.struct_size = 0};
    frit_err err = {.struct_size = sizeof(err)};
    struct plugin_rig rig;
    FILE *file;

    (void)state;
    open_machine(&rig, "bad", "f");
    assert_int_equal(frit_decisions_import(rig.dev, in_scratch("nothing"), NULL, &err), FRIT_IO);
    assert_int_equal(frit_decisions_export(rig.dev, in_scratch("no/folder"), NULL, &err), FRIT_IO);
    assert_int_equal(frit_decisions_export(rig.dev, in_scratch("x"), &unsized, &err), FRIT_INVALID);
    assert_int_equal(frit_decisions_export(rig.dev, NULL, NULL, &err), FRIT_INVALID);
    assert_int_equal(frit_decisions_import(NULL, "x", NULL, &err), FRIT_INVALID);
    file = fopen(in_scratch("text"), "w");
    assert_non_null(file);
    fputs("hello\n", file);
    fclose(file);
    assert_int_equal(frit_decisions_import(rig.dev, in_scratch("text"), NULL, &err), FRIT_INVALID);
    assert_non_null(strstr(err.text, "text: it is no bundle"));
    rig_close(&rig);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(scratch) ? 0 : 1;
}

static int teardown(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", scratch);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),        cmocka_unit_test(test_count),
        cmocka_unit_test(test_forget),      cmocka_unit_test(test_bundle),
        cmocka_unit_test(test_bad_bundles),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
