/* SPDX-License-Identifier: Apache-2.0 */
#include "plugins/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugins/load.h"

const frit_open_params rig_params = {.struct_size = sizeof rig_params};

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
    if (bytes > 1ull << 40) /* no machine has it, and sanitizers would complain */
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

static bool is(frit_str id, const char *name)
{
    return id.len == strlen(name) && memcmp(id.ptr, name, id.len) == 0;
}

static frit_status get_text(void *self, frit_str key, frit_str *out, frit_err *err)
{
    const struct rig *rig = self;
    const struct {
        const char *key, *given, *usual;
    } options[] = {{"isa", rig->isa, "auto"},
                   {"tier", rig->tier, "0"},
                   {"llvm", rig->llvm, ""},
                   {"fault", NULL, "none"},
                   {"gone", NULL, ""}};
    const char *text = NULL;

    (void)err;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (is(key, options[i].key))
            text = options[i].given ? options[i].given : options[i].usual;
    assert_non_null(text);
    *out = (frit_str){text, strlen(text)};
    return FRIT_OK;
}

static frit_status get_option(void *self, frit_str key, int64_t *out, frit_err *err)
{
    const struct rig *rig = self;

    (void)err;
    assert_true(is(key, "memory_bytes") || is(key, "stream_bytes"));
    *out = is(key, "memory_bytes") ? rig->memory_bytes : 0;
    return FRIT_OK;
}

static frit_status get_flag(void *self, frit_str key, uint32_t *out, frit_err *err)
{
    (void)err;
    assert_true(is(key, "check") || is(key, "winograd"));
    *out = is(key, "winograd") || ((struct rig *)self)->check;
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

    if (is(name, "bytes in use"))
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

static uint64_t now_ns(void *self)
{
    struct timespec now;

    (void)self;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const void *get_interface(void *self, frit_str id)
{
    static const frit_host_core core = {.struct_size = sizeof core,
                                        .err_set = set_error,
                                        .mem_alloc = take_memory,
                                        .mem_free = give_memory,
                                        .now_ns = now_ns};
    static const frit_host_options options = {.struct_size = sizeof options,
                                              .get_str = get_text,
                                              .get_i64 = get_option,
                                              .get_bool = get_flag};
    static const frit_host_exec exec = {
        .struct_size = sizeof exec, .threads = count_threads, .parallel_for = split};

    static const frit_host_trace trace = {.struct_size = sizeof trace,
                                          .span_begin = begin_span,
                                          .span_end = end_span,
                                          .counter = count};

    const struct rig *rig = self;
    const void *own = rig->own_table ? rig->own_table(id) : NULL;

    if (own)
        return own;
    if (is(id, FRIT_HOST_TRACE))
        return &trace;
    if (is(id, FRIT_HOST_CORE))
        return &core;
    if (is(id, FRIT_HOST_EXEC) && rig->threads)
        return &exec;
    return is(id, FRIT_HOST_OPTIONS) ? &options : NULL;
}

frit_status rig_load(struct rig *rig)
{
    const char *name = getenv("FRIT_TEST_PLUGIN");

    rig->live = 0;
    rig->n_split = 0;
    rig->tracing = false;
    rig->spans[0] = '\0';
    rig->root = (frit_host_root){sizeof rig->root, 0, rig, get_interface};
    rig->err = (frit_err){.struct_size = sizeof rig->err};
    rig->plugin = load_plugin(name ? name : "reference");
    return rig->plugin->open(&rig->root, &rig->instance, &rig->err);
}

void rig_open(struct rig *rig)
{
    if (rig_load(rig))
        fail_msg("%s", rig->err.text);
    rig->backend = rig->plugin->get_interface(rig->instance, FRIT_STR(FRIT_BACKEND));
    assert_non_null(rig->backend);
    assert_int_equal(
        rig->backend->device_open(rig->instance, 0, &rig_params, &rig->device, &rig->err), FRIT_OK);
}

void rig_close(struct rig *rig)
{
    rig->backend->device_close(rig->device);
    rig->plugin->close(rig->instance);
    assert_int_equal(rig->live, 0);
}

uint64_t rig_aliases(const frit_launch_spec *spec, uint32_t output)
{
    const void *at = (const char *)spec->outputs + (size_t)output * spec->output_stride;
    const frit_output_spec *described = at;
    uint64_t inputs = 0;

    for (uint32_t i = 0; output < spec->n_outputs && i < described->n_alias; i++) {
        assert_true(described->alias[i] < 64);
        inputs |= 1ull << described->alias[i];
    }
    return inputs;
}
