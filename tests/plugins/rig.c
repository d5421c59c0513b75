/* SPDX-License-Identifier: Apache-2.0 */
#include "plugins/rig.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static frit_status set_error(void *self, frit_err *err, frit_status status, int64_t native_code,
                             frit_str text)
{
    (void)self;
    (void)native_code;
    if (err) {
        err->status = status;
        snprintf(err->text, sizeof err->text, "%.*s", (int)text.len, text.ptr);
    }
    return status;
}

static void *take_memory(void *self, uint64_t bytes, uint64_t align)
{
    struct rig *rig = self;
    void *memory;

    if (rig->refuse > 0 && --rig->refuse == 0)
        return NULL;
    if (bytes > 1ull << 40) /* not there, and sanitizers need not be asked */
        return NULL;
    if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes))
        return NULL;
    rig->live++;
    return memory;
}

static void give_memory(void *self, void *memory)
{
    struct rig *rig = self;

    rig->live -= memory != NULL;
    free(memory);
}

static frit_status get_text(void *self, frit_str key, frit_str *out, frit_err *err)
{
    const struct rig *rig = self;
    const char *isa = rig->isa ? rig->isa : "auto";

    (void)err;
    assert_int_equal(key.len, strlen("isa"));
    assert_memory_equal(key.ptr, "isa", key.len);
    *out = (frit_str){isa, strlen(isa)};
    return FRIT_OK;
}

static frit_status get_option(void *self, frit_str key, int64_t *out, frit_err *err)
{
    struct rig *rig = self;

    (void)err;
    assert_int_equal(key.len, strlen("memory_bytes"));
    assert_memory_equal(key.ptr, "memory_bytes", key.len);
    *out = rig->memory_bytes;
    return FRIT_OK;
}

static uint64_t begin_span(void *self)
{
    const struct rig *rig = self;

    return rig->tracing ? 7 : 0;
}

static void end_span(void *self, uint64_t begun, frit_str name)
{
    struct rig *rig = self;
    size_t used = strlen(rig->spans);

    assert_int_equal(begun, 7);
    snprintf(rig->spans + used, sizeof rig->spans - used, " %.*s", (int)name.len, name.ptr);
}

static void count(void *self, frit_str name, double value)
{
    struct rig *rig = self;

    assert_int_equal(name.len, strlen("bytes in use"));
    rig->counter = value;
}

static uint32_t count_threads(void *self)
{
    return ((const struct rig *)self)->threads;
}

/* Backwards, since no order is promised. */
static void split(void *self, uint64_t items, uint64_t grain,
                  void (*run)(void *ctx, uint64_t first, uint64_t end, uint32_t thread), void *ctx)
{
    struct rig *rig = self;
    uint64_t part = (items / rig->threads / grain + 1) * grain;

    rig->n_split++;
    for (uint32_t i = rig->threads; i-- > 0;)
        if (i * part < items)
            run(ctx, i * part, (i + 1) * part < items ? (i + 1) * part : items, i);
}

static bool is(frit_str id, const char *name)
{
    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

static const void *get_interface(void *self, frit_str id)
{
    static const frit_host_core core = {.struct_size = sizeof core,
                                        .err_set = set_error,
                                        .mem_alloc = take_memory,
                                        .mem_free = give_memory};
    static const frit_host_options options = {
        .struct_size = sizeof options, .get_str = get_text, .get_i64 = get_option};
    static const frit_host_exec exec = {
        .struct_size = sizeof exec, .threads = count_threads, .parallel_for = split};

    static const frit_host_trace trace = {.struct_size = sizeof trace,
                                          .span_begin = begin_span,
                                          .span_end = end_span,
                                          .counter = count};

    if (is(id, FRIT_HOST_TRACE))
        return &trace;
    if (is(id, FRIT_HOST_CORE))
        return &core;
    if (is(id, FRIT_HOST_EXEC) && ((const struct rig *)self)->threads)
        return &exec;
    return is(id, FRIT_HOST_OPTIONS) ? &options : NULL;
}

static const frit_plugin *load_plugin(void)
{
    const frit_hello hello = {sizeof hello, FRIT_HELLO_MAGIC, FRIT_ABI_MIN,
                              FRIT_ABI_MAX, FRIT_SANITIZER,   0};
    frit_welcome welcome = {.struct_size = sizeof welcome};
    const char *build = getenv("FRIT_TEST_BUILD"), *name = getenv("FRIT_TEST_PLUGIN");
    frit_plugin_entry entry;
    char path[512];
    void *library;

    snprintf(path, sizeof path, "%s/lib/frit/plugins/libfrit-%s.so", build ? build : "build",
             name ? name : "reference");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        print_error("%s\n", dlerror());
    assert_non_null(library);
    *(void **)&entry = dlsym(library, FRIT_PLUGIN_ENTRY);
    assert_non_null(entry);
    assert_int_equal(entry(&hello, &welcome), FRIT_OK);
    return welcome.plugin;
}

frit_status rig_load(struct rig *rig)
{
    rig->live = 0;
    rig->n_split = 0;
    rig->tracing = false;
    rig->spans[0] = '\0';
    rig->root = (frit_host_root){sizeof rig->root, 0, rig, get_interface};
    rig->err = (frit_err){.struct_size = sizeof rig->err};
    rig->plugin = load_plugin();
    return rig->plugin->open(&rig->root, &rig->instance, &rig->err);
}

void rig_open(struct rig *rig)
{
    if (rig_load(rig))
        fail_msg("%s", rig->err.text);
    rig->backend = rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_BACKEND));
    assert_non_null(rig->backend);
    assert_int_equal(rig->backend->device_open(rig->instance, 0, &rig->device, &rig->err), FRIT_OK);
}

void rig_close(struct rig *rig)
{
    rig->backend->device_close(rig->device);
    rig->plugin->close(rig->instance);
    assert_int_equal(rig->live, 0);
}
