/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

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

static const void *get_interface(void *self, frit_str id)
{
    static const frit_host_core core = {.struct_size = sizeof core,
                                        .err_set = set_error,
                                        .mem_alloc = take_memory,
                                        .mem_free = give_memory};
    static const frit_host_options options = {.struct_size = sizeof options, .get_i64 = get_option};

    static const frit_host_trace trace = {.struct_size = sizeof trace,
                                          .span_begin = begin_span,
                                          .span_end = end_span,
                                          .counter = count};

    (void)self;
    if (id.len == strlen(FRIT_HOST_TRACE) && memcmp(id.ptr, FRIT_HOST_TRACE, id.len) == 0)
        return &trace;
    if (id.len == strlen(FRIT_HOST_CORE) && memcmp(id.ptr, FRIT_HOST_CORE, id.len) == 0)
        return &core;
    if (id.len == strlen(FRIT_HOST_OPTIONS) && memcmp(id.ptr, FRIT_HOST_OPTIONS, id.len) == 0)
        return &options;
    return NULL;
}

static const frit_plugin *load_plugin(void)
{
    const frit_hello hello = {sizeof hello, FRIT_HELLO_MAGIC, FRIT_ABI_MIN,
                              FRIT_ABI_MAX, FRIT_SANITIZER,   0};
    frit_welcome welcome = {.struct_size = sizeof welcome};
    const char *build = getenv("FRIT_TEST_BUILD");
    frit_plugin_entry entry;
    char path[512];
    void *library;

    snprintf(path, sizeof path, "%s/lib/frit/plugins/libfrit-reference.so",
             build ? build : "build");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        print_error("%s\n", dlerror());
    assert_non_null(library);
    *(void **)&entry = dlsym(library, FRIT_PLUGIN_ENTRY);
    assert_non_null(entry);
    assert_int_equal(entry(&hello, &welcome), FRIT_OK);
    return welcome.plugin;
}

void rig_open(struct rig *rig)
{
    rig->live = 0;
    rig->tracing = false;
    rig->spans[0] = '\0';
    rig->root = (frit_host_root){sizeof rig->root, 0, rig, get_interface};
    rig->err = (frit_err){.struct_size = sizeof rig->err};
    rig->plugin = load_plugin();
    assert_int_equal(rig->plugin->open(&rig->root, &rig->instance, &rig->err), FRIT_OK);
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
