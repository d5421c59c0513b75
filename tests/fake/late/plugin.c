/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin with the id and the driver of `reference`, found in its place where its folder is
 * searched first: it opens the real one, which lies at LATE_REAL, and has it do what its own queue
 * hands on.  Tests that name reference:0 so run on a device that is late and computes. */
#include <dlfcn.h>
#include <string.h>

#include <frit/native.h>
#include <frit/plugin.h>

#include "late.h"

/* NULL if it cannot be had. */
static const frit_plugin *real_plugin(void)
{
    void *object = dlopen(LATE_REAL, RTLD_NOW | RTLD_LOCAL);
    frit_hello hello = {.struct_size = sizeof hello,
                        .magic = FRIT_HELLO_MAGIC,
                        .abi_min = FRIT_ABI_MIN,
                        .abi_max = FRIT_ABI_MAX,
                        .sanitizer = FRIT_SANITIZER};
    frit_welcome welcome = {.struct_size = sizeof welcome};
    frit_plugin_entry entry = NULL;

    if (object)
        *(void **)(&entry) = dlsym(object, FRIT_PLUGIN_ENTRY);
    if (!entry || entry(&hello, &welcome) || !welcome.abi_chosen)
        return NULL;
    return welcome.plugin;
}

/* ---- slots of frit.backend/1 that are only passed on ---- */

static frit_status enumerate(void *self, frit_device_info *out, uint64_t stride, uint32_t capacity,
                             uint32_t *count, frit_driver_info *driver, frit_err *err)
{
    struct instance *instance = self;
    frit_status status =
        instance->backend->enumerate(instance->inner, out, stride, capacity, count, driver, err);

    for (uint32_t i = 0; i < *count && i < capacity && !status; i++)
        ((frit_device_info *)(void *)((char *)out + i * stride))->caps &= ~FRIT_CAP_INLINE_QUEUE;
    return status;
}

static frit_status device_open(void *self, uint32_t index, const frit_open_params *params,
                               void **out, frit_err *err)
{
    struct instance *instance = self;
    struct device *device = plug_alloc(&instance->plug, sizeof *device, _Alignof(struct device));
    frit_status status;

    *out = NULL;
    if (!device)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory for a device");
    memset(device, 0, sizeof *device);
    device->instance = instance;
    status = instance->backend->device_open(instance->inner, index, params, &device->inner, err);
    if (!status) {
        status = late_open(device, err);
        if (status)
            instance->backend->device_close(device->inner);
    }
    if (status)
        plug_free(&instance->plug, device);
    else
        *out = device;
    return status;
}

static void device_close(void *self)
{
    struct device *device = self;

    late_close(device);
    device->instance->backend->device_close(device->inner);
    plug_free(&device->instance->plug, device);
}

static frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                                frit_err *err)
{
    struct device *device = self;

    return device->instance->backend->alloc(device->inner, desc, out, err);
}

/* The real driver reads it, later. */
static frit_status buffer_import(void *self, const frit_import_desc *desc, frit_allocation *out,
                                 frit_err *err)
{
    struct device *device = self;

    return device->instance->backend->import_host(device->inner, desc, out, err);
}

static void buffer_free(void *self, frit_memory *memory)
{
    struct device *device = self;

    device->instance->backend->free(device->inner, memory);
}

static frit_status supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                            uint64_t *bits, frit_err *err)
{
    struct device *device = self;

    return device->instance->backend->supports(device->inner, ops, count, stride, bits, err);
}

static frit_status op_program(void *self, const frit_op_desc *op, frit_program *out, frit_err *err)
{
    struct device *device = self;

    return device->instance->backend->op_program(device->inner, op, out, err);
}

static frit_status kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                               frit_kernel **kernel, frit_err *err)
{
    struct device *device = self;

    return device->instance->backend->kernel_load(device->inner, format, bytes, n_bytes, kernel,
                                                  err);
}

static void kernel_unload(void *self, frit_kernel *kernel)
{
    struct device *device = self;

    device->instance->backend->kernel_unload(device->inner, kernel);
}

/* ---- the plugin ---- */

static void *native_get(void *self, frit_memory *memory, frit_str name)
{
    struct device *device = self;

    return device->instance->native->get(device->inner, memory, name);
}

static frit_status plugin_open(const frit_host_root *host, void **out, frit_err *err)
{
    const frit_host_options *options =
        plug_table(host, FRIT_STR(FRIT_HOST_OPTIONS), FRIT_END_OF(frit_host_options, get_bool));
    const frit_plugin *real = real_plugin();
    struct instance *instance, made = {0};
    frit_status status = plug_init(&made.plug, "reference", host);

    *out = NULL;
    if (status)
        return status;
    if (!options || !real)
        return plug_fail(&made.plug, err, FRIT_INCOMPATIBLE, "no " LATE_REAL);
    status = options->get_i64(host->self, FRIT_STR("hold"), &made.hold, err);
    if (!status)
        status = options->get_bool(host->self, FRIT_STR("ignore_waits"), &made.ignores_waits, err);
    if (!status)
        status = options->get_i64(host->self, FRIT_STR("fail_launch"), &made.fail_launch, err);
    if (!status)
        status = real->open(host, &made.inner, err);
    if (status)
        return status;
    made.backend = real->get_interface(made.inner, FRIT_STR(FRIT_BACKEND));
    made.native = real->get_interface(made.inner, FRIT_STR(FRIT_NATIVE_TABLE));
    made.real = real;
    instance = plug_alloc(&made.plug, sizeof *instance, _Alignof(struct instance));
    if (!instance) {
        real->close(made.inner);
        return plug_fail(&made.plug, err, FRIT_NO_HOST_MEMORY, "no memory for the instance");
    }
    *instance = made;
    *out = instance;
    return FRIT_OK;
}

static void plugin_close(void *self)
{
    struct instance *instance = self;

    instance->real->close(instance->inner);
    plug_free(&instance->plug, instance);
}

static const void *plugin_interface(void *instance, frit_str id)
{
    static const frit_backend backend = {
        .struct_size = sizeof(frit_backend),
        .driver_name = FRIT_STR_INIT("reference"),
        .enumerate = enumerate,
        .device_open = device_open,
        .device_close = device_close,
        .alloc = buffer_alloc,
        .free = buffer_free,
        .write = late_write,
        .read = late_read,
        .submit = late_submit,
        .wait = late_wait,
        .supports = supports,
        .op_program = op_program,
        .kernel_load = kernel_load,
        .kernel_unload = kernel_unload,
        .queue_create = late_queue_create,
        .queue_destroy = late_queue_destroy,
        .import_host = buffer_import,
    };
    static const frit_native_table native = {
        .struct_size = sizeof(frit_native_table),
        .get = native_get,
    };

    static const frit_capture_table capture = {
        .struct_size = sizeof(frit_capture_table),
        .record = late_record,
        .replay = late_replay,
        .release = late_release,
    };

    (void)instance;
    if (plug_is(id, FRIT_STR(FRIT_BACKEND)))
        return &backend;
    if (plug_is(id, FRIT_STR(FRIT_CAPTURE_TABLE)))
        return &capture;
    return plug_is(id, FRIT_STR(FRIT_NATIVE_TABLE)) ? &native : NULL;
}

static const frit_option options[] = {
    {.struct_size = sizeof(frit_option),
     .type = FRIT_OPTION_I64,
     .name = FRIT_STR_INIT("memory_bytes"),
     .default_value = FRIT_STR_INIT("0"),
     .meaning = FRIT_STR_INIT("bytes that its device may hold; 0: no cap"),
     .min = 0,
     .max = INT64_MAX},
    {.struct_size = sizeof(frit_option),
     .type = FRIT_OPTION_I64,
     .name = FRIT_STR_INIT("hold"),
     .default_value = FRIT_STR_INIT("8"),
     .meaning = FRIT_STR_INIT("submissions that stay in a queue until somebody waits for them"),
     .min = 0,
     .max = INT64_MAX},
    {.struct_size = sizeof(frit_option),
     .type = FRIT_OPTION_I64,
     .name = FRIT_STR_INIT("fail_launch"),
     .default_value = FRIT_STR_INIT("0"),
     .meaning = FRIT_STR_INIT("number of a launch that is reported as failed, from 1; 0: none"),
     .min = 0,
     .max = INT64_MAX},
    {.struct_size = sizeof(frit_option),
     .type = FRIT_OPTION_BOOL,
     .name = FRIT_STR_INIT("ignore_waits"),
     .default_value = FRIT_STR_INIT("no"),
     .meaning = FRIT_STR_INIT("queues do not wait for each other")},
};

static const frit_plugin plugin = {
    .struct_size = sizeof(frit_plugin),
    .n_options = sizeof options / sizeof options[0],
    .option_stride = sizeof options[0],
    .id = FRIT_STR_INIT("reference"),
    .version = FRIT_STR_INIT("1.0"),
    .license = FRIT_STR_INIT("Apache-2.0"),
    .options = options,
    .open = plugin_open,
    .close = plugin_close,
    .get_interface = plugin_interface,
};

FRIT_DEFINE_PLUGIN("reference", "1.0", "", &plugin)
