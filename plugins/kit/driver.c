/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The instance, its tables, and its devices. */
#include "driver.h"

#include <string.h>

#include "kit/inside.h"
#include "kit/program.h"
#include "util/kernel.h"

/* ---- devices ---- */

static uint64_t types_of(const struct kit_driver *driver)
{
    uint64_t types = 0;

    for (uint32_t i = 0; i < driver->n_rows; i++)
        types |= driver->rows[i].dtypes;
    return types;
}

/* What comes with slots that are the kit's. */
static void fill_hosted(const struct kit_instance *instance, frit_device_info *out)
{
    if (instance->backend.submit == hosted_submit)
        out->caps |= FRIT_CAP_INLINE_QUEUE;
    if (instance->backend.alloc == hosted_alloc) {
        out->caps |= FRIT_CAP_HOST_VISIBLE;
        if (!out->cache_bytes)
            out->cache_bytes = hosted_cache_bytes();
    }
    if (instance->backend.kernel_load == hosted_kernel_load) {
        out->n_formats = sizeof kernel_formats / sizeof kernel_formats[0];
        out->formats = kernel_formats;
    }
}

static void fill_types(const struct kit_driver *driver, uint8_t use[FRIT_DTYPE_LIMIT])
{
    for (uint32_t dtype = 0; dtype < FRIT_DTYPE_LIMIT; dtype++) {
        if (frit_storage_bytes(dtype, 1))
            use[dtype] |= FRIT_DTYPE_STORAGE;
        if (types_of(driver) & KIT_TYPE(dtype))
            use[dtype] |= FRIT_DTYPE_ARITHMETIC;
    }
}

/* The driver's row, and what it left to the kit. */
static void fill_info(const struct kit_instance *instance, uint32_t index, frit_device_info *out)
{
    const struct kit_driver *driver = instance->driver;

    *out = instance->devices[index];
    out->struct_size = sizeof *out;
    out->index = index;
    fill_hosted(instance, out);
    fill_types(driver, out->dtype_use);
    if (!out->n_heaps) {
        out->n_heaps = 1;
        out->heap_stride = sizeof instance->heap;
        out->heaps = &instance->heap;
    }
    if (!out->driver_version.len)
        out->driver_version = driver->version;
    if (!out->fingerprint.len)
        out->fingerprint = driver->version;
}

static void fill_heap(struct kit_instance *instance)
{
    if (instance->backend.alloc == hosted_alloc)
        instance->heap = hosted_heap((uint64_t)instance->memory_bytes);
    instance->heap.struct_size = sizeof instance->heap;
    if (!instance->heap.bytes)
        instance->heap.bytes = (uint64_t)instance->memory_bytes;
}

static frit_status device_enumerate(void *self, frit_device_info *out, uint64_t stride,
                                    uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                                    frit_err *err)
{
    struct kit_instance *instance = self;
    frit_status status = FRIT_OK;

    if (instance->driver->enumerate)
        status = instance->driver->enumerate(instance, driver, err);
    if (status)
        return status;
    fill_heap(instance);
    *count = instance->n_devices;
    for (uint32_t i = 0; i < *count && i < capacity; i++) {
        frit_device_info *info = plug_info_at(&instance->plug, out, stride, i, err);

        if (!info)
            return FRIT_INCOMPATIBLE;
        fill_info(instance, i, info);
    }
    return FRIT_OK;
}

static void end_device(struct kit_device *device)
{
    hosted_fini(&device->hosted);
    plug_free(&device->instance->plug, device);
}

static frit_status device_open(void *self, uint32_t index, const frit_open_params *params,
                               void **out, frit_err *err)
{
    const struct kit_instance *instance = self;
    struct kit_device *device;
    frit_status status = plug_check_open(&instance->plug, index, instance->n_devices, params, err);

    *out = NULL;
    if (status)
        return status;
    device = plug_new(&instance->plug, sizeof *device, "a device", err);
    if (!device)
        return FRIT_NO_HOST_MEMORY;
    *device = (struct kit_device){
        .instance = instance, .index = index, .lost = params->lost, .lost_ctx = params->ctx};
    hosted_init(&device->hosted, &instance->plug, &launch_slots, device,
                (uint64_t)instance->memory_bytes);
    if (instance->driver->open)
        status = instance->driver->open(device, err);
    if (status)
        end_device(device);
    else
        *out = device;
    return status;
}

static void device_close(void *self)
{
    struct kit_device *device = self;

    if (device->instance->driver->close)
        device->instance->driver->close(device);
    end_device(device);
}

void kit_lost(const struct kit_device *device, const frit_err *why)
{
    if (device->lost)
        device->lost(device->lost_ctx, why);
}

void kit_improved(const struct kit_device *device)
{
    (void)__atomic_add_fetch((uint64_t *)(uintptr_t)&device->serial, 1, __ATOMIC_RELEASE);
}

/* ---- the instance ---- */

static frit_backend backend_of(const struct kit_driver *driver)
{
    return (frit_backend){.driver_name = driver->name,
                          .enumerate = device_enumerate,
                          .device_open = device_open,
                          .device_close = device_close,
                          .alloc = hosted_alloc,
                          .supports = program_supports,
                          .op_program = program_create,
                          HOSTED_BACKEND_SLOTS};
}

/* Of all candidates of a list. */
static uint32_t flags_of(const struct kit_candidate *list)
{
    uint32_t flags = 0;

    for (; list && list->identity.len; list++)
        flags |= list->flags;
    return flags;
}

/* Whether no two ways of a row or fuser have the same identity. */
static bool are_unlike(const struct kit_candidate *list)
{
    for (uint32_t i = 0; list && list[i].identity.len; i++) {
        if (plug_is(list[i].identity, FRIT_STR("plain")))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (plug_is(list[i].identity, list[k].identity))
                return false;
    }
    return true;
}

static frit_status check_candidates(const struct kit_instance *instance, frit_err *err)
{
    const struct kit_driver *driver = instance->driver;
    bool unlike = true;

    for (uint32_t i = 0; i < driver->n_rows; i++)
        unlike &= are_unlike(driver->rows[i].candidates);
    for (uint32_t i = 0; i < driver->n_fusers; i++)
        unlike &= are_unlike(driver->fusers[i].candidates);
    return unlike ? FRIT_OK
                  : plug_fail(&instance->plug, err, FRIT_INTERNAL,
                              "two candidates of a row or fuser have the same identity, or one is "
                              "`plain`");
}

/* Rows and fusers that need code have somebody to make it. */
static frit_status check_compiler(const struct kit_instance *instance, frit_err *err)
{
    const struct kit_driver *driver = instance->driver;
    uint32_t flags = 0;

    for (uint32_t i = 0; i < driver->n_rows; i++)
        flags |= driver->rows[i].flags | flags_of(driver->rows[i].candidates);
    for (uint32_t i = 0; i < driver->n_fusers; i++)
        flags |= driver->fusers[i].flags | flags_of(driver->fusers[i].candidates);
    if (!(flags & KIT_COMPILED))
        return FRIT_OK;
    if (!driver->compiler)
        return plug_fail(&instance->plug, err, FRIT_INTERNAL,
                         "KIT_COMPILED without a compiler in the struct kit_driver");
    if (!driver->compiler->compile || !driver->compiler->release)
        return plug_fail(&instance->plug, err, FRIT_INTERNAL,
                         "the struct kit_compiler has no function `%s`",
                         driver->compiler->compile ? "release" : "compile");
    return FRIT_OK;
}

static frit_status configure(struct kit_instance *instance, frit_err *err)
{
    const frit_host_options *options;

    if (!instance->driver->configure)
        return FRIT_OK;
    options = plug_options(&instance->plug, FRIT_END_OF(frit_host_options, get_bool), err);
    return options ? instance->driver->configure(instance, options, err) : FRIT_INCOMPATIBLE;
}

frit_status kit_open(const struct kit_driver *driver, const frit_host_root *host, void **out,
                     frit_err *err)
{
    struct kit_instance *instance;
    struct plug plug;
    frit_status status = plug_init(&plug, driver->name.ptr, host);

    *out = NULL;
    if (status)
        return status;
    instance = plug_new(&plug, sizeof *instance, "the plugin's instance", err);
    if (!instance)
        return FRIT_NO_HOST_MEMORY;
    *instance = (struct kit_instance){
        .plug = plug,
        .driver = driver,
        .devices = driver->devices,
        .n_devices = driver->n_devices,
        .backend = backend_of(driver),
        .fuser = fuser_slots,
        .native = hosted_native_table,
        .profile = hosted_profile_table,
    };
    status = check_compiler(instance, err);
    if (!status)
        status = check_candidates(instance, err);
    if (!status && driver->init)
        status = driver->init(instance, err);
    if (status) {
        plug_free(&plug, instance);
        return status;
    }
    status = configure(instance, err);
    if (status)
        kit_close(instance);
    else
        *out = instance;
    return status;
}

void kit_close(void *self)
{
    struct kit_instance *instance = self;

    if (instance->driver->fini)
        instance->driver->fini(instance);
    plug_free(&instance->plug, instance);
}

/* A queue in place of the kit's takes no TIMESTAMP unless its driver has a clock for it. */
static bool has_clock(const struct kit_instance *instance)
{
    return instance->backend.submit == hosted_submit || instance->profile.clock != hosted_clock;
}

/* Memory of another kind than the kit's is not the application's either. */
static const frit_backend *backend_for_host(struct kit_instance *instance)
{
    if (instance->backend.free != hosted_free && instance->backend.import_host == hosted_import)
        instance->backend.import_host = NULL;
    return &instance->backend;
}

/* The kit's `get` reads memory of the kit. */
static bool knows_memory(const struct kit_instance *instance)
{
    return instance->backend.free == hosted_free || instance->native.get != hosted_native;
}

const void *kit_interface(void *self, frit_str id)
{
    struct kit_instance *instance = self;

    if (plug_is(id, FRIT_STR(FRIT_BACKEND)))
        return backend_for_host(instance);
    if (plug_is(id, FRIT_STR(FRIT_FUSER_TABLE)))
        return instance->driver->n_fusers ? &instance->fuser : NULL;
    if (plug_is(id, FRIT_STR(FRIT_PROFILE_TABLE)))
        return has_clock(instance) ? &instance->profile : NULL;
    if (plug_is(id, FRIT_STR(FRIT_NATIVE_TABLE)))
        return knows_memory(instance) ? &instance->native : NULL;
    return NULL;
}
