/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver on the kit does otherwise: hooks of the instance, devices that are found at run
 * time, memory of its own, and the loss of its device in a row. */
#include "steps.h"

#include <string.h>

#include "plugins/rig.h"

/* ---- the driver ---- */

/* What an instance has of its own. */
struct found {
    frit_device_info devices[3];
};

static struct {
    char calls[64]; /* a letter each, in order */
    uint32_t n_devices;
    frit_status init, configure, enumerate;
    bool own_memory;
    uint64_t heap_bytes;
} script;

static void note(const char *call)
{
    strncat(script.calls, call, sizeof script.calls - strlen(script.calls) - 1);
}

static void own_free(void *self, frit_memory *memory)
{
    hosted_free(self, memory);
}

static frit_status own_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                             frit_err *err)
{
    return hosted_alloc(self, desc, out, err);
}

static frit_status init(struct kit_instance *instance, frit_err *err)
{
    note("i");
    if (script.init)
        return plug_fail(&instance->plug, err, script.init, "the runtime does not start");
    instance->own = plug_zalloc(&instance->plug, sizeof(struct found));
    assert_non_null(instance->own);
    if (script.own_memory) {
        instance->backend.alloc = own_alloc;
        instance->backend.free = own_free;
        instance->heap.bytes = script.heap_bytes;
        instance->heap.granularity = 4096;
    }
    return FRIT_OK;
}

static frit_status configure(struct kit_instance *instance, const frit_host_options *options,
                             frit_err *err)
{
    note("c");
    assert_non_null(instance->own);
    if (script.configure)
        return plug_fail(&instance->plug, err, script.configure, "an option nobody can mean");
    return options->get_i64(instance->plug.host->self, FRIT_STR("memory_bytes"),
                            &instance->memory_bytes, err);
}

static frit_status enumerate(struct kit_instance *instance, frit_driver_info *out, frit_err *err)
{
    static const frit_str ids[] = {FRIT_STR_INIT("first"), FRIT_STR_INIT("second"),
                                   FRIT_STR_INIT("third")};
    struct found *found = instance->own;

    note("e");
    if (script.enumerate)
        return plug_fail(&instance->plug, err, script.enumerate, "the bus is in use");
    for (uint32_t i = 0; i < script.n_devices; i++)
        found->devices[i] = (frit_device_info){
            .type = FRIT_DEVICE_ACCELERATOR, .stable_id = ids[i], .name = ids[i]};
    instance->devices = found->devices;
    instance->n_devices = script.n_devices;
    if (!script.n_devices) {
        out->reason = FRIT_REASON_NO_DEVICE;
        out->detail = FRIT_STR("nothing is plugged in");
    }
    return FRIT_OK;
}

static frit_status device_open(struct kit_device *device, frit_err *err)
{
    (void)device;
    (void)err;
    note("o");
    return FRIT_OK;
}

static void device_close(struct kit_device *device)
{
    (void)device;
    note("x");
}

static void fini(struct kit_instance *instance)
{
    note("f");
    plug_free(&instance->plug, instance->own);
}

static frit_status lose(const struct kit_call *call, frit_err *err)
{
    note("r");
    return plug_fail(call->plug, err, FRIT_DEVICE_LOST, "the cable is out");
}

static const struct kit_row rows[] = {{FRIT_OP_exp, KIT_TYPE(FRIT_F32), 0, lose, NULL}};

static const struct kit_driver driver = {
    .name = FRIT_STR_INIT("found"),
    .version = FRIT_STR_INIT("1"),
    .rows = rows,
    .n_rows = 1,
    .init = init,
    .configure = configure,
    .enumerate = enumerate,
    .open = device_open,
    .close = device_close,
    .fini = fini,
};

/* ---- tests ---- */

static int begin(void **state)
{
    memset(&script, 0, sizeof script);
    script.n_devices = 1;
    return steps_open(state);
}

static struct kit_instance *open_instance(struct rig *rig)
{
    void *instance;

    assert_int_equal(kit_open(&driver, &rig->root, &instance, &rig->err), FRIT_OK);
    return instance;
}

/* Up to two devices. */
static uint32_t enumerated(struct rig *rig, struct kit_instance *instance,
                           frit_device_info infos[2], frit_driver_info *info)
{
    const frit_backend *backend = kit_interface(instance, FRIT_STR(FRIT_BACKEND));
    uint32_t count = 0;

    *info = (frit_driver_info){.struct_size = sizeof *info};
    for (int i = 0; i < 2; i++)
        infos[i] = (frit_device_info){.struct_size = sizeof infos[i]};
    assert_int_equal(
        backend->enumerate(instance, infos, sizeof infos[0], 2, &count, info, &rig->err), FRIT_OK);
    return count;
}

static void hooks_come_in_order(void **state)
{
    struct rig *rig = *state;
    struct kit_instance *instance = open_instance(rig);
    frit_device_info infos[2];
    frit_driver_info info;
    void *device;

    assert_int_equal(enumerated(rig, instance, infos, &info), 1);
    assert_int_equal(instance->backend.device_open(instance, 0, &rig_params, &device, &rig->err),
                     FRIT_OK);
    instance->backend.device_close(device);
    kit_close(instance);
    assert_string_equal(script.calls, "iceoxf");
}

static void what_begins_is_ended_once(void **state)
{
    struct rig *rig = *state;
    const int64_t live = rig->live;
    void *instance;

    script.init = FRIT_IO;
    assert_int_equal(kit_open(&driver, &rig->root, &instance, &rig->err), FRIT_IO);
    assert_string_equal(rig->err.text, "found: the runtime does not start");
    assert_null(instance);
    assert_string_equal(script.calls, "i");
    script.init = FRIT_OK;
    script.configure = FRIT_INVALID;
    assert_int_equal(kit_open(&driver, &rig->root, &instance, &rig->err), FRIT_INVALID);
    assert_string_equal(rig->err.text, "found: an option nobody can mean");
    assert_null(instance);
    assert_string_equal(script.calls, "iicf");
    assert_int_equal(rig->live, live);
}

static void devices_come_and_go(void **state)
{
    struct rig *rig = *state;
    struct kit_instance *instance = open_instance(rig);
    frit_device_info infos[2];
    frit_driver_info info;
    uint32_t count;
    void *device;

    script.n_devices = 3;
    assert_int_equal(enumerated(rig, instance, infos, &info), 3); /* two of which fit */
    assert_memory_equal(infos[1].stable_id.ptr, "second", 6);
    assert_int_equal(infos[1].index, 1);
    assert_int_equal(infos[1].caps, FRIT_CAP_INLINE_QUEUE | FRIT_CAP_HOST_VISIBLE);
    assert_int_equal(infos[1].dtype_use[FRIT_F32], FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC);
    assert_int_equal(info.reason, 0);
    script.n_devices = 0;
    assert_int_equal(enumerated(rig, instance, infos, &info), 0);
    assert_int_equal(info.reason, FRIT_REASON_NO_DEVICE);
    assert_memory_equal(info.detail.ptr, "nothing is plugged in", info.detail.len);
    assert_int_equal(instance->backend.device_open(instance, 0, &rig_params, &device, &rig->err),
                     FRIT_INVALID);
    script.enumerate = FRIT_BUSY;
    assert_int_equal(
        instance->backend.enumerate(instance, infos, sizeof infos[0], 2, &count, &info, &rig->err),
        FRIT_BUSY);
    assert_string_equal(rig->err.text, "found: the bus is in use");
    kit_close(instance);
}

static void heaps_are_those_of_the_memory(void **state)
{
    const struct {
        bool own_memory;
        uint64_t heap_bytes, memory_bytes;
        uint64_t bytes, granularity;
    } cases[] = {{false, 0, 1000, 1000, 0},
                 {true, 0, 1000, 1000, 4096},
                 {true, 77, 1000, 77, 4096},
                 {true, 0, 0, 0, 4096}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig *rig = *state;
        struct kit_instance *instance;
        frit_device_info infos[2];
        frit_driver_info info;

        script.own_memory = cases[i].own_memory;
        script.heap_bytes = cases[i].heap_bytes;
        rig->memory_bytes = (int64_t)cases[i].memory_bytes;
        instance = open_instance(rig);
        assert_int_equal(enumerated(rig, instance, infos, &info), 1);
        assert_int_equal(infos[0].n_heaps, 1);
        assert_int_equal(infos[0].heaps->kind, FRIT_HEAP_DEVICE);
        assert_int_equal(infos[0].heaps->bytes, cases[i].bytes);
        assert_int_equal(infos[0].heaps->granularity, cases[i].granularity);
        kit_close(instance);
    }
}

/* The kit does not look into memory that is the driver's. */
static void memory_of_its_own_has_no_host_pointer(void **state)
{
    struct rig *rig = *state;
    struct kit_instance *instance = open_instance(rig);

    assert_non_null(kit_interface(instance, FRIT_STR(FRIT_NATIVE_TABLE)));
    kit_close(instance);
    script.own_memory = true;
    instance = open_instance(rig);
    assert_null(kit_interface(instance, FRIT_STR(FRIT_NATIVE_TABLE)));
    kit_close(instance);
}

/* A row that finds the device lost: everything after it fails for its reason, and nothing runs. */
static void a_row_may_lose_the_device(void **state)
{
    const frit_transfer at = {.struct_size = sizeof at, .bytes = 4};
    struct rig *rig = *state, own = {.root = rig->root};
    struct kit_instance *instance = open_instance(rig);
    frit_transfer transfer = at;
    frit_device_info infos[2];
    frit_driver_info info;
    frit_failure failure;
    frit_program program;
    uint64_t value;
    float number = 1;
    struct launch l;
    struct op op;

    assert_int_equal(enumerated(rig, instance, infos, &info), 1);
    own.backend = &instance->backend;
    assert_int_equal(own.backend->device_open(instance, 0, &rig_params, &own.device, &rig->err),
                     FRIT_OK);
    op_of(&op, FRIT_OP_exp, 1, 0, 3, 0);
    program = program_for(&own, &op);
    launch_of(&own, &l, &program, 2);
    l.launch.cookie = 5;
    assert_int_equal(submit_and_wait(&own, &l, &failure), FRIT_DEVICE_LOST);
    assert_int_equal(failure.status, FRIT_DEVICE_LOST);
    assert_int_equal(failure.cookie, 5);
    assert_string_equal(own.err.text, "found: the cable is out");
    own.err = (frit_err){.struct_size = sizeof own.err};
    assert_int_equal(submit_and_wait(&own, &l, &failure), FRIT_DEVICE_LOST);
    assert_string_equal(own.err.text, "found: the cable is out");
    own.err = (frit_err){.struct_size = sizeof own.err};
    transfer.memory = l.memory.memory;
    assert_int_equal(own.backend->write(own.device, &transfer, &number, &value, &own.err),
                     FRIT_DEVICE_LOST);
    assert_string_equal(own.err.text, "found: the cable is out");
    assert_string_equal(script.calls, "iceor");
    own.backend->free(own.device, l.memory.memory);
    program.table->destroy(program.self);
    own.backend->device_close(own.device);
    kit_close(instance);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, steps_close)
    const struct CMUnitTest tests[] = {
        CASE(hooks_come_in_order),
        CASE(what_begins_is_ended_once),
        CASE(devices_come_and_go),
        CASE(heaps_are_those_of_the_memory),
        CASE(memory_of_its_own_has_no_host_pointer),
        CASE(a_row_may_lose_the_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
