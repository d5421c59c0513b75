/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugins/load.h"

const frit_open_params rig_params = {.struct_size = sizeof rig_params};

static void on_log(void *self, uint32_t level, frit_str topic, frit_str text)
{
    struct rig *rig = self;

    if (level == FRIT_LOG_DEBUG)
        return;
    print_error("%u %.*s: %.*s\n", level, (int)topic.len, topic.ptr, (int)text.len, text.ptr);
    rig->messages++;
}

static frit_status set_error(void *self, frit_err *err, frit_status status, int64_t native_code,
                             frit_str text)
{
    (void)self;
    if (err) {
        err->status = status;
        err->native_code = native_code;
        snprintf(err->text, sizeof err->text, "%.*s", (int)text.len, text.ptr);
    }
    return status;
}

static void *alloc_memory(void *self, uint64_t bytes, uint64_t align)
{
    struct rig *rig = self;
    void *memory;

    if (rig->fail_alloc > 0 && --rig->fail_alloc == 0)
        return NULL;
    if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes))
        return NULL;
    rig->n_allocs++;
    return memory;
}

static void free_memory(void *self, void *memory)
{
    struct rig *rig = self;

    rig->n_allocs -= memory != NULL;
    free(memory);
}

static uint64_t now_ns(void *self)
{
    struct timespec now;

    (void)self;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is(frit_str key, const char *name)
{
    return key.len == strlen(name) && memcmp(key.ptr, name, key.len) == 0;
}

/* A file of tests/fake in the build tree; "": none. */
static const char *fake_file(char path[512], const char *name)
{
    const char *build = getenv("FRIT_TEST_BUILD");

    snprintf(path, 512, "%s/tests/fake/%s", build ? build : "build", name);
    return *name ? path : "";
}

static frit_status get_text(void *self, frit_str key, frit_str *out, frit_err *err)
{
    static char library[512], compiler[512];
    const struct rig *rig = self;
    const struct {
        const char *key, *given, *usual;
    } options[] = {{"loader", rig->loader, "libvulkan.so.1"},
                   {"staging", rig->staging, "auto"},
                   {"dump", rig->dump, ""},
                   {"library", rig->library, fake_file(library, RIG_LIBRARY)},
                   {"compiler", rig->compiler, fake_file(compiler, RIG_COMPILER)},
                   {"products", rig->products, "none"}};
    const char *text = NULL;

    (void)err;
    for (size_t i = 0; i < sizeof options / sizeof *options && !text; i++)
        if (is(key, options[i].key))
            text = options[i].given ? options[i].given : options[i].usual;
    assert_non_null(text);
    *out = (frit_str){text, strlen(text)};
    return FRIT_OK;
}

static frit_status get_i64(void *self, frit_str key, int64_t *out, frit_err *err)
{
    const struct rig *rig = self;

    (void)err;
    assert_true(is(key, "min_product"));
    *out = rig->min_product;
    return FRIT_OK;
}

static bool has_layers(void)
{
    static const char *const files[] = {
        "/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json",
        "/etc/vulkan/explicit_layer.d/VkLayer_khronos_validation.json"};
    bool has = getenv("VK_LAYER_PATH") != NULL;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        has |= access(files[i], R_OK) == 0;
    return has;
}

static frit_status get_bool(void *self, frit_str key, uint32_t *out, frit_err *err)
{
    const struct rig *rig = self;

    (void)err;
    assert_true(is(key, "validate") || is(key, "matrices"));
    *out = is(key, "matrices") || (!rig->no_validation && has_layers());
    return FRIT_OK;
}

static frit_status cache_get(void *self, frit_str space, const void *key, uint64_t n_key,
                             void **bytes, uint64_t *n_bytes, frit_err *err)
{
    struct rig *rig = self;

    (void)err;
    assert_true(space.len > 8 && key && n_key);
    rig->gets++;
    *bytes = rig->cached ? alloc_memory(rig, rig->n_cached, 16) : NULL;
    *n_bytes = rig->n_cached;
    if (*bytes)
        memcpy(*bytes, rig->cached, rig->n_cached);
    return FRIT_OK;
}

static frit_status cache_put(void *self, frit_str space, const void *key, uint64_t n_key,
                             const void *bytes, uint64_t n_bytes, frit_err *err)
{
    struct rig *rig = self;

    (void)err;
    assert_true(space.len > 8 && key && n_key && n_bytes);
    rig->puts++;
    free(rig->cached);
    rig->cached = malloc(n_bytes);
    if (!rig->cached)
        return FRIT_NO_HOST_MEMORY;
    memcpy(rig->cached, bytes, n_bytes);
    rig->n_cached = n_bytes;
    return FRIT_OK;
}

static const void *get_interface(void *self, frit_str id)
{
    static const frit_host_core core = {.struct_size = sizeof core,
                                        .log = on_log,
                                        .err_set = set_error,
                                        .mem_alloc = alloc_memory,
                                        .mem_free = free_memory,
                                        .now_ns = now_ns};
    static const frit_host_options options = {.struct_size = sizeof options,
                                              .get_str = get_text,
                                              .get_i64 = get_i64,
                                              .get_bool = get_bool};

    static const frit_host_cache cache = {
        .struct_size = sizeof cache, .get = cache_get, .put = cache_put};

    (void)self;
    if (is(id, FRIT_HOST_CORE))
        return &core;
    if (is(id, FRIT_HOST_CACHE))
        return &cache;
    return is(id, FRIT_HOST_OPTIONS) ? &options : NULL;
}

frit_status rig_load(struct rig *rig)
{
    rig->root = (frit_host_root){sizeof rig->root, 0, rig, get_interface};
    rig->err = (frit_err){.struct_size = sizeof rig->err};
    rig->plugin = load_plugin(RIG_DRIVER);
    return rig->plugin->open(&rig->root, &rig->instance, &rig->err);
}

void rig_open_plugin(struct rig *rig)
{
    assert_int_equal(rig_load(rig), FRIT_OK);
    rig->backend = rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_BACKEND));
    assert_non_null(rig->backend);
}

int rig_skips(void)
{
    enum { SKIPPED = 77 };
    struct rig rig = {.no_validation = true};
    frit_driver_info driver = {.struct_size = sizeof driver};
    uint32_t count = 0;

    rig_open_plugin(&rig);
    assert_int_equal(rig.backend->enumerate(rig.instance, NULL, 0, 0, &count, &driver, &rig.err),
                     FRIT_OK);
    if (count == 0)
        print_message("skipped, no devices: %.*s\n", (int)driver.detail.len, driver.detail.ptr);
    else if (strcmp(RIG_DRIVER, "vulkan") == 0 && !has_layers())
        print_message("the validation layers are not installed\n");
    rig_close(&rig);
    return count == 0 ? SKIPPED : 0;
}

void rig_open_device(struct rig *rig)
{
    frit_driver_info driver = {.struct_size = sizeof driver};
    frit_device_info info = {.struct_size = sizeof info};
    uint32_t count = 0;

    assert_int_equal(
        rig->backend->enumerate(rig->instance, &info, sizeof info, 1, &count, &driver, &rig->err),
        FRIT_OK);
    if (count == 0)
        fail_msg("no devices: %.*s", (int)driver.detail.len, driver.detail.ptr);
    if (rig->backend->device_open(rig->instance, 0, &rig_params, &rig->device, &rig->err))
        fail_msg("%s", rig->err.text);
}

void rig_open(struct rig *rig)
{
    rig_open_plugin(rig);
    rig_open_device(rig);
}

void rig_close(struct rig *rig)
{
    if (rig->device)
        rig->backend->device_close(rig->device);
    rig->plugin->close(rig->instance);
    assert_int_equal(rig->n_allocs, 0);
    assert_int_equal(rig->messages, 0);
    free(rig->cached);
    rig->cached = NULL;
}

frit_allocation rig_alloc(struct rig *rig, uint64_t bytes)
{
    return rig_alloc_in(rig, 0, bytes);
}

frit_allocation rig_alloc_in(struct rig *rig, uint32_t heap, uint64_t bytes)
{
    const frit_alloc_desc desc = {sizeof desc, heap, bytes, 256};
    frit_allocation out = {.struct_size = sizeof out};

    if (rig->backend->alloc(rig->device, &desc, &out, &rig->err))
        fail_msg("%s", rig->err.text);
    assert_int_equal(out.address % 256, 0);
    return out;
}

void rig_wait(struct rig *rig, uint64_t value)
{
    frit_failure failure = {.struct_size = sizeof failure};

    if (rig->backend->wait(rig->device, NULL, value, UINT64_MAX, &failure, &rig->err))
        fail_msg("%s", rig->err.text);
    assert_int_equal(failure.status, FRIT_OK);
}

void rig_write(struct rig *rig, void *memory, uint64_t offset, const void *from, uint64_t bytes)
{
    const frit_transfer to = {
        .struct_size = sizeof to, .memory = memory, .offset = offset, .bytes = bytes};
    uint64_t value;

    if (rig->backend->write(rig->device, &to, from, &value, &rig->err))
        fail_msg("%s", rig->err.text);
}

void rig_read(struct rig *rig, void *memory, uint64_t offset, void *into, uint64_t bytes)
{
    const frit_transfer from = {
        .struct_size = sizeof from, .memory = memory, .offset = offset, .bytes = bytes};
    uint64_t value;

    if (rig->backend->read(rig->device, &from, into, &value, &rig->err))
        fail_msg("%s", rig->err.text);
    rig_wait(rig, value);
}

uint64_t rig_submit(struct rig *rig, const frit_cmd *cmds, uint32_t n)
{
    uint64_t value;

    if (rig->backend->submit(rig->device, NULL, cmds, n, sizeof *cmds, NULL, 0, &value, &rig->err))
        fail_msg("%s", rig->err.text);
    return value;
}

void rig_run(struct rig *rig, const frit_cmd *cmds, uint32_t n)
{
    rig_wait(rig, rig_submit(rig, cmds, n));
}
