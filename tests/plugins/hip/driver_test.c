/* SPDX-License-Identifier: Apache-2.0 */
/* What the drivers hip and cuda have of their own, on a fake runtime: why there are no devices,
 * copies between kinds of memory, queues, the loss of a device, the calling thread's device,
 * objects of the application, kept code. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <frit/native.h>
#include <frit/profile.h>

#include "add.h"
#include "fake.h"
#include "hip/plugin.h"

static struct fake_gpu *fake;

/* Of kernels of other plugins. */
static frit_str format(void)
{
    return fake_is_cuda() ? FRIT_STR(FRIT_FORMAT_PTX) : FRIT_STR(FRIT_FORMAT_HSACO);
}

static int open_rig(void **state)
{
    static struct rig rig;

    fake->reset();
    rig = (struct rig){0};
    rig_open(&rig);
    *state = &rig;
    return 0;
}

static int close_rig(void **state)
{
    fake->hold(false);
    rig_close(*state);
    fake_expect_nothing_alive();
    return 0;
}

/* ---- why there are no devices ---- */

static int access_result; /* of the device file: 0, or what access() sets errno to */

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

/* The device file is there; whether it may be used is access_result. */
int __wrap_access(const char *path, int mode)
{
    if (strncmp(path, "/dev/", 5) != 0)
        return __real_access(path, mode);
    if (!access_result || (mode == F_OK && access_result != ENOENT))
        return 0;
    errno = access_result;
    return -1;
}

/* The driver must have no device, for this reason, with these words. */
static void expect_none(struct rig *rig, uint32_t reason, const char *words)
{
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 7;

    rig_open_plugin(rig);
    for (int i = 0; i < 2; i++) { /* the same when it is called again */
        assert_int_equal(
            rig->backend->enumerate(rig->instance, NULL, 0, 0, &count, &driver, &rig->err),
            FRIT_OK);
        assert_int_equal(count, 0);
        if (driver.reason != reason || !strstr(driver.detail.ptr, words))
            fail_msg("reason %u instead of %u, '%s'", driver.reason, reason, driver.detail.ptr);
        assert_true(strlen(driver.detail.ptr) == driver.detail.len && driver.detail.len > 20);
    }
    rig_close(rig);
}

static void no_library(void **state)
{
    (void)state;
    expect_none(&(struct rig){.library = "libnothing.so.3"}, FRIT_REASON_NO_RUNTIME,
                "libnothing.so.3");
    expect_none(&(struct rig){.library = "libnothing.so.3"}, FRIT_REASON_NO_RUNTIME, "install");
    expect_none(&(struct rig){.compiler = "libnothing.so.4"}, FRIT_REASON_NO_RUNTIME,
                "run-time compiler is missing");
}

static void libraries_without_functions(void **state)
{
    (void)state;
    expect_none(&(struct rig){.library = "libc.so.6"}, FRIT_REASON_RUNTIME_TOO_OLD,
                fake_is_cuda() ? "has no cuInit" : "has no hipInit");
    expect_none(&(struct rig){.compiler = "libc.so.6"}, FRIT_REASON_RUNTIME_TOO_OLD,
                fake_is_cuda() ? "has no nvrtcVersion" : "has no hiprtcVersion");
}

/* Where the kernel has none, ROCm's runtime is not opened. */
static void no_kernel_driver(void **state)
{
    (void)state;
    if (fake_is_cuda())
        skip();
    access_result = ENOENT;
    expect_none(&(struct rig){.library = ""}, FRIT_REASON_NO_DEVICE, "there is no /dev/kfd");
    access_result = 0;
}

static void no_device(void **state)
{
    const char *variable = fake_is_cuda() ? "CUDA_VISIBLE_DEVICES" : "HIP_VISIBLE_DEVICES";

    (void)state;
    fake->reset();
    access_result = ENOENT;
    fake->n_devices = 0;
    expect_none(&(struct rig){0}, FRIT_REASON_NO_DEVICE, "finds no device");
    fake->init_result = 101; /* as HIP */
    expect_none(&(struct rig){0}, FRIT_REASON_NO_DEVICE, "finds no device");
    setenv(variable, "7", 1);
    expect_none(&(struct rig){0}, FRIT_REASON_NO_DEVICE, variable);
    unsetenv(variable);
    access_result = EACCES;
    expect_none(&(struct rig){0}, FRIT_REASON_NO_PERMISSION, "may not open /dev/");
    access_result = 0;
}

static void versions_that_do_not_match(void **state)
{
    static const struct {
        int result;
        const char *words;
    } rows[] = {{34, "stub"},
                {35, "older than the runtime"},
                {803, "does not match the kernel driver's version"},
                {804, "does not support this library's version"}};

    (void)state;
    access_result = ENOENT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake->reset();
        fake->init_result = rows[i].result;
        expect_none(&(struct rig){0}, FRIT_REASON_RUNTIME_TOO_OLD, rows[i].words);
    }
    fake->reset();
    access_result = 0;
}

static frit_device_info info_of(struct rig *rig, uint32_t index)
{
    frit_device_info infos[FAKE_DEVICES] = {{.struct_size = sizeof *infos},
                                            {.struct_size = sizeof *infos}};
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 0;

    assert_int_equal(rig->backend->enumerate(rig->instance, infos, sizeof *infos, FAKE_DEVICES,
                                             &count, &driver, &rig->err),
                     FRIT_OK);
    assert_int_equal(count, FAKE_DEVICES);
    return infos[index];
}

static void a_device_that_prohibits_use(void **state)
{
    struct rig rig = {0};
    void *device;

    (void)state;
    fake->reset();
    fake->compute_mode = 2;
    rig_open_plugin(&rig);
    assert_int_equal(info_of(&rig, 0).reason, FRIT_REASON_NO_PERMISSION);
    assert_non_null(strstr(info_of(&rig, 0).name.ptr, "prohibits"));
    assert_int_equal(info_of(&rig, 1).reason, 0);
    assert_int_equal(rig.backend->device_open(rig.instance, 0, &rig_params, &device, &rig.err),
                     FRIT_INVALID);
    assert_null(device);
    rig_close(&rig);
    fake->reset();
}

static void expect_arch(const char *library, const char *arch)
{
    struct rig rig = {.library = library};

    rig_open_plugin(&rig);
    if (info_of(&rig, 0).reason || !strstr(info_of(&rig, 0).fingerprint.ptr, arch))
        fail_msg("%s: '%s'", library ? library : "", info_of(&rig, 0).fingerprint.ptr);
    rig_close(&rig);
}

/* The name of the architecture lies elsewhere in the properties of HIP 5 and of HIP 6. */
static void architectures(void **state)
{
    char older[512];

    (void)state;
    expect_arch(NULL, fake_is_cuda() ? "sm_90a" : "gfx90a:sramecc+:xnack-");
    if (fake_is_cuda())
        return;
    snprintf(older, sizeof older, "%s/tests/fake/libfake-amdhip64-5.so", getenv("FRIT_TEST_BUILD"));
    expect_arch(older, "gfx90a:sramecc+:xnack-");
}

/* ---- memory ---- */

static uint8_t byte_at(uint32_t place, uint32_t i)
{
    return (uint8_t)(i * 7 + place * 31 + (i >> 8));
}

/* Device memory and pinned memory, each with itself and the other. */
static void copies_between_kinds_of_memory(void **state)
{
    enum { BYTES = 5000, PLACES = 4 };
    struct rig *rig = *state;
    frit_allocation places[PLACES];
    uint8_t data[BYTES], got[BYTES];

    for (uint32_t i = 0; i < PLACES; i++)
        places[i] = rig_alloc_in(rig, i / 2, BYTES);
    for (uint32_t from = 0; from < PLACES; from++)
        for (uint32_t to = 0; to < PLACES; to++) {
            const frit_cmd copy = {.struct_size = sizeof copy,
                                   .kind = FRIT_CMD_COPY,
                                   .dst = places[to].memory,
                                   .dst_offset = 3,
                                   .src = places[from].memory,
                                   .src_offset = 17,
                                   .bytes = BYTES - 17};

            if (to == from)
                continue;
            for (uint32_t i = 0; i < BYTES; i++)
                data[i] = byte_at(from * PLACES + to, i);
            rig_write(rig, places[from].memory, 0, data, BYTES);
            rig_run(rig, &copy, 1);
            rig_read(rig, places[to].memory, 3, got, BYTES - 17);
            assert_memory_equal(got, data + 17, BYTES - 17);
        }
    for (uint32_t i = 0; i < PLACES; i++) {
        assert_int_equal(places[i].host_pointer != NULL, i / 2);
        rig->backend->free(rig->device, places[i].memory);
    }
}

static void alignments(void **state)
{
    struct rig *rig = *state;

    for (uint32_t heap = 0; heap < 2; heap++)
        for (uint64_t align = 256; align <= 1 << 16; align *= 2) {
            const frit_alloc_desc desc = {sizeof desc, heap, 3 * align + 1, align};
            frit_allocation out = {.struct_size = sizeof out};
            const uint64_t before = rig->backend->heap_budget(rig->device, 0);
            uint8_t got = 1;

            assert_int_equal(rig->backend->alloc(rig->device, &desc, &out, &rig->err), FRIT_OK);
            assert_int_equal(out.address % align, 0);
            rig_write(rig, out.memory, 3 * align, &got, 1);
            rig_read(rig, out.memory, 3 * align, &got, 1);
            assert_int_equal(got, 1);
            rig->backend->free(rig->device, out.memory);
            assert_int_equal(rig->backend->heap_budget(rig->device, 0), before);
        }
}

/* ---- queues ---- */

static frit_status submit_fill(struct rig *rig, frit_queue *queue, void *memory, uint64_t pattern,
                               const frit_point *waits, uint32_t n, uint64_t *value)
{
    const frit_cmd fill = {.struct_size = sizeof fill,
                           .kind = FRIT_CMD_FILL,
                           .dst = memory,
                           .bytes = 64,
                           .pattern = pattern,
                           .pattern_bytes = 8};

    return rig->backend->submit(rig->device, queue, &fill, 1, sizeof fill, waits, n, value,
                                &rig->err);
}

static uint64_t fill_on(struct rig *rig, frit_queue *queue, void *memory, uint64_t pattern,
                        const frit_point *waits, uint32_t n)
{
    uint64_t value = 0;

    if (submit_fill(rig, queue, memory, pattern, waits, n, &value))
        fail_msg("%s", rig->err.text);
    return value;
}

/* Fills of one buffer by several queues, each of which waits for the one before. */
static void queues_wait_for_each_other(void **state)
{
    enum { QUEUES = 5, ROUNDS = 40 };
    const frit_queue_desc desc = {.struct_size = sizeof desc};
    struct rig *rig = *state;
    frit_queue *queues[QUEUES] = {NULL};
    frit_allocation memory = rig_alloc(rig, 64);
    frit_point last = {NULL, 0};
    uint64_t got[8];

    for (int i = 1; i < QUEUES; i++)
        assert_int_equal(rig->backend->queue_create(rig->device, &desc, &queues[i], &rig->err),
                         FRIT_OK);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        for (uint64_t i = 0; i < QUEUES; i++) {
            const frit_point next = {queues[i], fill_on(rig, queues[i], memory.memory,
                                                        round << 32 | i, &last, last.value > 0)};

            last = next;
        }
        {
            const frit_transfer from = {.struct_size = sizeof from,
                                        .memory = memory.memory,
                                        .bytes = 64,
                                        .waits = &last,
                                        .n_waits = 1};
            uint64_t value;

            assert_int_equal(rig->backend->read(rig->device, &from, got, &value, &rig->err),
                             FRIT_OK);
            rig_wait(rig, value);
            last = (frit_point){NULL, value};
        }
        assert_true(got[0] == (round << 32 | (QUEUES - 1)) && got[7] == got[0]);
    }
    for (int i = 1; i < QUEUES; i++)
        rig->backend->queue_destroy(rig->device, queues[i]);
    rig->backend->free(rig->device, memory.memory);
}

static void as_many_queues_as_there_are(void **state)
{
    enum { MOST = 64 };
    const frit_queue_desc desc = {.struct_size = sizeof desc};
    struct rig *rig = *state;
    frit_queue *queues[MOST];
    int n = 0;

    while (n < MOST && !rig->backend->queue_create(rig->device, &desc, &queues[n], &rig->err))
        n++;
    assert_in_range(n, 8, MOST - 1);
    assert_non_null(strstr(rig->err.text, "queues already"));
    while (n-- > 0)
        rig->backend->queue_destroy(rig->device, queues[n]);
}

/* A queue that is destroyed, and a device that is closed, end their work first: its data come from
 * memory of the queue. */
static void queues_end_with_work(void **state)
{
    enum { BYTES = 1 << 20, LATE_NS = 20000000 };
    const frit_queue_desc desc = {.struct_size = sizeof desc};
    struct rig *rig = *state;
    frit_allocation memory = rig_alloc(rig, BYTES);
    char *data = calloc(1, BYTES);
    uint64_t value;

    assert_non_null(data);
    fake->late_ns = LATE_NS;
    for (int i = 0; i < 5; i++) {
        frit_transfer to = {.struct_size = sizeof to, .memory = memory.memory, .bytes = BYTES};

        assert_int_equal(rig->backend->queue_create(rig->device, &desc, &to.queue, &rig->err),
                         FRIT_OK);
        data[BYTES - 1] = (char)(i + 1);
        assert_int_equal(rig->backend->write(rig->device, &to, data, &value, &rig->err), FRIT_OK);
        rig->backend->queue_destroy(rig->device, to.queue);
        rig_read(rig, memory.memory, BYTES - 1, data, 1);
        assert_int_equal(data[0], i + 1);
    }
    free(data);
    rig->backend->free(rig->device, memory.memory);
}

/* Nothing runs while the streams are held: waits time out, and submissions do not block. */
static void late_work(void **state)
{
    struct rig *rig = *state;
    frit_allocation memory = rig_alloc(rig, 64);
    frit_failure failure = {.struct_size = sizeof failure};
    const uint64_t ms = 1000000;
    uint64_t value, got[8] = {0};
    const frit_transfer from = {.struct_size = sizeof from, .memory = memory.memory, .bytes = 64};

    rig_wait(rig, fill_on(rig, NULL, memory.memory, 1, NULL, 0));
    fake->hold(true);
    (void)fill_on(rig, NULL, memory.memory, 2, NULL, 0);
    assert_int_equal(rig->backend->read(rig->device, &from, got, &value, &rig->err), FRIT_OK);
    assert_int_equal(rig->backend->wait(rig->device, NULL, value, 0, &failure, &rig->err),
                     FRIT_TIMEOUT);
    assert_int_equal(rig->backend->wait(rig->device, NULL, value, 2 * ms, &failure, &rig->err),
                     FRIT_TIMEOUT);
    assert_int_equal(got[0], 0);
    fake->hold(false);
    rig_wait(rig, value);
    assert_int_equal(got[0], 2);
    rig->backend->free(rig->device, memory.memory);
}

/* ---- loss ---- */

struct loss {
    _Atomic int calls;
    frit_err err;
};

static void on_lost(void *ctx, const frit_err *err)
{
    struct loss *loss = ctx;

    loss->err = *err;
    loss->calls++;
}

static void expect_lost(struct rig *rig, void *memory)
{
    const frit_transfer at = {.struct_size = sizeof at, .memory = memory, .bytes = 8};
    const frit_cmd fill = {.struct_size = sizeof fill,
                           .kind = FRIT_CMD_FILL,
                           .dst = memory,
                           .bytes = 8,
                           .pattern_bytes = 1};
    uint64_t value, data = 0;

    assert_int_equal(
        rig->backend->submit(rig->device, NULL, &fill, 1, sizeof fill, NULL, 0, &value, &rig->err),
        FRIT_DEVICE_LOST);
    assert_non_null(strstr(rig->err.text, "illegal address"));
    assert_int_equal(rig->backend->write(rig->device, &at, &data, &value, &rig->err),
                     FRIT_DEVICE_LOST);
    assert_int_equal(rig->backend->read(rig->device, &at, &data, &value, &rig->err),
                     FRIT_DEVICE_LOST);
}

/* An error that appears when an operation runs: the call that enqueued it or wait reports it, the
 * host is notified once, and the device can be opened again. */
static void lost_when_it_runs(void **state)
{
    struct rig rig = {0};
    struct loss loss = {.calls = 0};
    const frit_open_params params = {.struct_size = sizeof params, .lost = on_lost, .ctx = &loss};
    frit_failure failure = {.struct_size = sizeof failure};
    frit_status status;
    void *memory;
    uint64_t value;

    (void)state;
    fake->reset();
    rig_open_plugin(&rig);
    (void)info_of(&rig, 0);
    assert_int_equal(rig.backend->device_open(rig.instance, 0, &params, &rig.device, &rig.err),
                     FRIT_OK);
    memory = rig_alloc(&rig, 64).memory;
    rig_wait(&rig, fill_on(&rig, NULL, memory, 1, NULL, 0));
    fake->failing_operation_result = 700;
    fake->failing_operation = fake->n_operations + 1;
    status = submit_fill(&rig, NULL, memory, 2, NULL, 0, &value);
    if (!status) {
        status = rig.backend->wait(rig.device, NULL, value, UINT64_MAX, &failure, &rig.err);
        assert_int_equal(failure.status, FRIT_DEVICE_LOST);
    }
    assert_int_equal(status, FRIT_DEVICE_LOST);
    assert_non_null(strstr(rig.err.text, "illegal address"));
    expect_lost(&rig, memory);
    rig.backend->free(rig.device, memory);
    rig.backend->device_close(rig.device);
    assert_int_equal(loss.calls, 1);
    assert_non_null(strstr(loss.err.text, "illegal address"));
    fake_expect_nothing_alive();
    fake->reset(); /* HIP has no way to make a device well again */
    rig_open_device(&rig);
    memory = rig_alloc(&rig, 64).memory;
    rig_wait(&rig, fill_on(&rig, NULL, memory, 1, NULL, 0));
    rig.backend->free(rig.device, memory);
    rig_close(&rig);
    fake_expect_nothing_alive();
}

/* ---- the calling thread ---- */

static void *current_before;
static uint32_t depth_before;

static void note_current(void)
{
    current_before = fake->current();
    depth_before = fake->depth();
}

#define EXPECT_SAME_CURRENT(call)                          \
    do {                                                   \
        call;                                              \
        assert_ptr_equal(fake->current(), current_before); \
        assert_int_equal(fake->depth(), depth_before);     \
    } while (0)

static void use_memory(struct rig *rig)
{
    const frit_backend *backend = rig->backend;
    const frit_alloc_desc desc = {sizeof desc, 0, 64, 256},
                          huge = {sizeof huge, 0, UINT64_MAX, 256};
    frit_allocation memory = {.struct_size = sizeof memory}, none = {.struct_size = sizeof none};
    frit_transfer at = {.struct_size = sizeof at, .bytes = 64};
    frit_failure failure = {.struct_size = sizeof failure};
    uint64_t value, data[8];

    EXPECT_SAME_CURRENT(backend->alloc(rig->device, &desc, &memory, &rig->err));
    EXPECT_SAME_CURRENT(backend->alloc(rig->device, &huge, &none, &rig->err));
    at.memory = memory.memory;
    EXPECT_SAME_CURRENT((void)backend->heap_budget(rig->device, 0));
    EXPECT_SAME_CURRENT(backend->write(rig->device, &at, data, &value, &rig->err));
    EXPECT_SAME_CURRENT(backend->read(rig->device, &at, data, &value, &rig->err));
    EXPECT_SAME_CURRENT(backend->wait(rig->device, NULL, value, UINT64_MAX, &failure, &rig->err));
    at.offset = 1;
    EXPECT_SAME_CURRENT(backend->read(rig->device, &at, data, &value, &rig->err));
    EXPECT_SAME_CURRENT(backend->free(rig->device, memory.memory));
}

static void use_kernels(struct rig *rig)
{
    const frit_backend *backend = rig->backend;
    const frit_profile_table *profile =
        rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_PROFILE_TABLE));
    const frit_allocation memory = rig_alloc(rig, 64);
    const struct vector vectors[3] = {{memory.memory, 0}, {memory.memory, 0}, {memory.memory, 0}};
    frit_clock clock = {.struct_size = sizeof clock};
    struct add add;
    uint64_t value;

    EXPECT_SAME_CURRENT(add_open(rig, &add, vectors, 8));
    EXPECT_SAME_CURRENT(backend->submit(rig->device, NULL, &add.cmd, 1, sizeof add.cmd, NULL, 0,
                                        &value, &rig->err));
    EXPECT_SAME_CURRENT(profile->clock(rig->device, &clock, &rig->err));
    rig_wait(rig, value);
    EXPECT_SAME_CURRENT(add_close(&add));
    backend->free(rig->device, memory.memory);
}

static void use_all_slots(struct rig *rig)
{
    const frit_backend *backend = rig->backend;
    const frit_queue_desc desc = {.struct_size = sizeof desc};
    frit_kernel *kernel;
    frit_queue *queue;

    note_current();
    EXPECT_SAME_CURRENT(rig_open_device(rig));
    use_memory(rig);
    use_kernels(rig);
    EXPECT_SAME_CURRENT(backend->queue_create(rig->device, &desc, &queue, &rig->err));
    EXPECT_SAME_CURRENT(backend->queue_destroy(rig->device, queue));
    EXPECT_SAME_CURRENT(backend->kernel_load(rig->device, format(), "+", 1, &kernel, &rig->err));
    assert_null(kernel);
    EXPECT_SAME_CURRENT(backend->device_close(rig->device));
    rig->device = NULL;
}

/* In a thread that uses no device, and in one that uses the other. */
static void the_calling_threads_device_stays(void **state)
{
    (void)state;
    fake->reset();
    for (int i = 0; i < 2; i++) {
        struct rig rig = {0};

        if (i)
            (void)fake->use_device(1);
        rig_open_plugin(&rig);
        use_all_slots(&rig);
        rig_close(&rig);
        if (i)
            fake->unuse_device();
    }
    fake_expect_nothing_alive();
}

/* ---- objects of the application ---- */

typedef int (*create_stream)(void **stream, unsigned flags);
typedef int (*on_stream)(void *stream);

static const frit_native_table *native_of(struct rig *rig)
{
    return rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_NATIVE_TABLE));
}

static void the_drivers_objects(void **state)
{
    struct rig *rig = *state;
    const frit_native_table *native = native_of(rig);
    frit_allocation memory = rig_alloc(rig, 64);
    const bool cuda = fake_is_cuda();

    assert_non_null(
        native->get(rig->device, NULL, cuda ? FRIT_STR("cuda.stream") : FRIT_STR("hip.stream")));
    assert_int_equal(native->get(rig->device, NULL, FRIT_STR("cuda.context")) != NULL, cuda);
    assert_ptr_equal(
        native->get(rig->device, memory.memory, cuda ? FRIT_STR("cuda.ptr") : FRIT_STR("hip.ptr")),
        (void *)(uintptr_t)memory.address);
    assert_null(native->get(rig->device, NULL, FRIT_STR("vk.device")));
    assert_null(native->get(rig->device, memory.memory, FRIT_STR("vk.buffer")));
    rig->backend->free(rig->device, memory.memory);
}

/* A stream, and where there are such a context, of the application: used, and left to it. */
static void adoption(void **state)
{
    create_stream create;
    on_stream synchronize, destroy;
    struct rig rig = {0};
    void *context = fake->use_device(0), *stream = NULL;
    const bool cuda = fake_is_cuda();
    frit_native_object natives[2] = {
        {.name = cuda ? FRIT_STR("cuda.stream") : FRIT_STR("hip.stream")},
        {.name = FRIT_STR("cuda.context"), .object = context}};
    const frit_open_params params = {
        .struct_size = sizeof params, .n_natives = cuda ? 2 : 1, .natives = natives};
    void *memory;

    (void)state;
    fake->reset();
    rig_open_plugin(&rig);
    (void)info_of(&rig, 0);
    *(void **)&create = fake_find("hipStreamCreateWithFlags", "cuStreamCreate");
    *(void **)&synchronize = fake_find("hipStreamSynchronize", "cuStreamSynchronize");
    *(void **)&destroy = fake_find("hipStreamDestroy", "cuStreamDestroy_v2");
    assert_int_equal(create(&stream, 0), 0);
    natives[0].object = stream;
    if (rig.backend->device_open(rig.instance, 0, &params, &rig.device, &rig.err))
        fail_msg("%s", rig.err.text);
    assert_ptr_equal(native_of(&rig)->get(rig.device, NULL, natives[0].name), stream);
    if (cuda) {
        assert_ptr_equal(native_of(&rig)->get(rig.device, NULL, natives[1].name), context);
        assert_int_equal(fake->alive[FAKE_CONTEXT], 0);
    }
    memory = rig_alloc(&rig, 64).memory;
    (void)fill_on(&rig, NULL, memory, 5, NULL, 0);
    assert_int_equal(synchronize(stream), 0);
    rig.backend->free(rig.device, memory);
    rig.backend->device_close(rig.device);
    rig.device = NULL;
    assert_int_equal(synchronize(stream), 0); /* it is still there */
    assert_int_equal(destroy(stream), 0);
    fake->unuse_device();
    rig_close(&rig);
    fake_expect_nothing_alive();
}

static void unknown_objects_are_refused(void **state)
{
    struct rig rig = {0};
    const frit_native_object native = {.name = FRIT_STR("vk.device"), .object = &rig};
    const frit_open_params params = {
        .struct_size = sizeof params, .n_natives = 1, .natives = &native};

    (void)state;
    rig_open_plugin(&rig);
    (void)info_of(&rig, 0);
    assert_int_equal(rig.backend->device_open(rig.instance, 0, &params, &rig.device, &rig.err),
                     FRIT_UNSUPPORTED);
    assert_null(rig.device);
    assert_non_null(strstr(rig.err.text, "vk.device"));
    rig_close(&rig);
    fake_expect_nothing_alive();
}

/* ---- kernels of other plugins ---- */

/* Code objects of the fake are C: each block adds its number to one element. */
static const char adder[] = "void frit_kernel(const u64 *params, const u32 *group, void *shared)\n"
                            "{\n"
                            "    const u32 *base = (const u32 *)params;\n"
                            "    const u64 *words = (const u64 *)params[1];\n"
                            "    u32 y = group[1] + base[0], z = group[2] + base[1];\n"
                            "    u64 at = group[0] + words[0] * (y + words[1] * z);\n"
                            "    ((u32 *)words[5])[at] += (u32)at;\n"
                            "}\n";

static void run_adder(struct rig *rig, frit_kernel *kernel, const uint32_t grid[3])
{
    const uint64_t n = (uint64_t)grid[0] * grid[1] * grid[2];
    frit_allocation memory = rig_alloc(rig, n * 4);
    frit_launch_spec spec = {.struct_size = sizeof spec, .driver = {grid[0], grid[1]}};
    frit_arg arg = {.memory = memory.memory,
                    .extent = n * 4,
                    .dtype = FRIT_U32,
                    .flags = FRIT_ARG_READ | FRIT_ARG_WRITE,
                    .rank = 1,
                    .dims = {(int64_t)n},
                    .strides = {1}};
    const frit_launch launch = {.struct_size = sizeof launch,
                                .n_args = 1,
                                .arg_stride = sizeof arg,
                                .spec = &spec,
                                .args = &arg};
    const frit_cmd cmds[2] = {{.struct_size = sizeof *cmds,
                               .kind = FRIT_CMD_FILL,
                               .dst = memory.memory,
                               .bytes = n * 4,
                               .pattern = 1,
                               .pattern_bytes = 4},
                              {.struct_size = sizeof *cmds,
                               .kind = FRIT_CMD_DISPATCH,
                               .launch = &launch,
                               .kernel = kernel,
                               .grid = {grid[0], grid[1], grid[2]},
                               .group = {1, 1, 1}}};
    uint32_t *got = malloc(n * 4);

    assert_non_null(got);
    rig_run(rig, cmds, 2);
    rig_read(rig, memory.memory, 0, got, n * 4);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(got[i], i + 1);
    free(got);
    rig->backend->free(rig->device, memory.memory);
}

/* Also grids beyond the device's limits along y and z. */
static void kernels_of_other_plugins(void **state)
{
    struct rig *rig = *state;
    frit_kernel *kernel = NULL;

    if (rig->backend->kernel_load(rig->device, format(), adder, sizeof adder - 1, &kernel,
                                  &rig->err))
        fail_msg("%s", rig->err.text);
    run_adder(rig, kernel, (const uint32_t[3]){5, 3, 2});
    run_adder(rig, kernel, (const uint32_t[3]){1, 70001, 1});
    run_adder(rig, kernel, (const uint32_t[3]){1, 2, 65537});
    rig->backend->kernel_unload(rig->device, kernel);
    rig->backend->kernel_unload(rig->device, NULL);
}

static void kernels_that_are_refused(void **state)
{
    static const char other_name[] = "void kernel(void)\n{\n}\n", no_code[] = "+";
    struct rig *rig = *state;
    frit_kernel *kernel = NULL;

    assert_int_equal(rig->backend->kernel_load(rig->device, FRIT_STR(FRIT_FORMAT_SPIRV), adder,
                                               sizeof adder - 1, &kernel, &rig->err),
                     FRIT_UNSUPPORTED);
    assert_non_null(strstr(rig->err.text, FRIT_FORMAT_SPIRV));
    assert_int_equal(rig->backend->kernel_load(rig->device, format(), NULL, 0, &kernel, &rig->err),
                     FRIT_INVALID);
    assert_true(rig->backend->kernel_load(rig->device, format(), other_name, sizeof other_name - 1,
                                          &kernel, &rig->err) < 0);
    assert_non_null(strstr(rig->err.text, "no such kernel"));
    assert_true(rig->backend->kernel_load(rig->device, format(), no_code, sizeof no_code - 1,
                                          &kernel, &rig->err) < 0);
    assert_null(kernel);
}

/* ---- kept code ---- */

static void reopen(struct rig *rig)
{
    rig->backend->device_close(rig->device);
    rig_open_device(rig);
}

/* Code is compiled once and found in the cache afterwards; bytes that are no code are made anew. */
static void code_is_kept(void **state)
{
    struct rig *rig = *state;

    add_run(rig, 4);
    assert_int_equal(rig->puts, 1);
    reopen(rig);
    add_run(rig, 4);
    assert_int_equal(rig->puts, 1);
    memset((char *)rig->cached + 20, 0x5a, rig->n_cached - 20);
    reopen(rig);
    add_run(rig, 4);
    assert_int_equal(rig->puts, 2);
    memset(rig->cached, 0x5a, rig->n_cached);
    reopen(rig);
    add_run(rig, 4);
    assert_int_equal(rig->puts, 3);
}

/* Kept code that is not an ELF file never reaches the runtime, which would take a text, though its
 * checksum is right. */
static void other_formats_are_compiled_anew(void **state)
{
    enum { CHECKSUM = 16, CHECKED = 24 }; /* places in struct kept of compile.c */
    static const char text[] =
        "void k_0(const u64 *params, const u32 *group, void *shared)\n{\n}\n";
    struct rig *rig = *state;
    uint64_t checksum;
    char *code;

    add_run(rig, 4);
    assert_int_equal(rig->puts, 1);
    code = memmem(rig->cached, rig->n_cached, "\177ELF", 4);
    assert_non_null(code);
    memcpy(code, text, sizeof text);
    checksum = hip_checksum((char *)rig->cached + CHECKED, rig->n_cached - CHECKED);
    memcpy((char *)rig->cached + CHECKSUM, &checksum, sizeof checksum);
    reopen(rig);
    add_run(rig, 4);
    assert_int_equal(rig->puts, 2);
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_library),
        cmocka_unit_test(libraries_without_functions),
        cmocka_unit_test(no_kernel_driver),
        cmocka_unit_test(no_device),
        cmocka_unit_test(versions_that_do_not_match),
        cmocka_unit_test(a_device_that_prohibits_use),
        cmocka_unit_test(architectures),
        RIG_TEST(copies_between_kinds_of_memory),
        RIG_TEST(alignments),
        RIG_TEST(queues_wait_for_each_other),
        RIG_TEST(as_many_queues_as_there_are),
        RIG_TEST(queues_end_with_work),
        RIG_TEST(late_work),
        cmocka_unit_test(lost_when_it_runs),
        cmocka_unit_test(the_calling_threads_device_stays),
        RIG_TEST(the_drivers_objects),
        cmocka_unit_test(adoption),
        cmocka_unit_test(unknown_objects_are_refused),
        RIG_TEST(kernels_of_other_plugins),
        RIG_TEST(kernels_that_are_refused),
        RIG_TEST(code_is_kept),
        RIG_TEST(other_formats_are_compiled_anew),
    };

    fake = fake_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
