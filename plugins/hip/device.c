/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: one for each device of the runtime, which the first enumerate reads. */
#include "device.h"

#include <stddef.h>
#include <string.h>

#include "base/thread.h"

#include "adapter.h"
#include "compile.h"
#include "foreign.h"
#include "loader.h"
#include "native.h"
#include "plugin.h"
#include "scope.h"
#include "target.h"
#include "vendor.h"

_Static_assert(offsetof(struct device, kernels) == 0, "as the slots of gpu/program.h expect");

/* ---- enumerate ---- */

static frit_status read_adapters(struct instance *instance, frit_err *err)
{
    instance->adapters =
        hip_alloc(instance, (uint64_t)instance->n_found * sizeof *instance->adapters);
    if (!instance->adapters)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory for %u devices",
                         instance->n_found);
    while (instance->n_adapters < instance->n_found) {
        adapter_read(instance, (int)instance->n_adapters,
                     &instance->adapters[instance->n_adapters]);
        instance->n_adapters++;
    }
    return FRIT_OK;
}

static frit_str text(const char *terminated)
{
    return (frit_str){terminated, strlen(terminated)};
}

static uint8_t dtype_use(uint32_t dtype)
{
    if (kir_type_of(dtype) != KIR_VOID)
        return FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC;
    return frit_storage_bytes(dtype, 1) ? FRIT_DTYPE_STORAGE : 0;
}

/* Bandwidth and latency of the link to a discrete device, assumed because the runtimes do not
 * report them: those of PCIe 4.0 with 16 lanes, and of a small copy with a wait for it. */
enum { PCIE_BYTES_PER_US = 24000, PCIE_LATENCY_NS = 10000 };

static void fill_limits(const struct adapter *adapter, frit_device_info *out)
{
    out->align_bytes = BUFFER_ALIGN;
    out->group_memory = (uint64_t)adapter->attributes[ATTRIBUTE_SHARED_BYTES];
    out->max_bindings = TARGET_MAX_ARGS;
    out->max_group = TARGET_MAX_LANES;
    out->cache_bytes = (uint64_t)adapter->attributes[ATTRIBUTE_CACHE_BYTES];
    out->n_heaps = sizeof adapter->heaps / sizeof adapter->heaps[0];
    out->heap_stride = sizeof adapter->heaps[0];
    out->heaps = adapter->heaps;
    if (out->type == FRIT_DEVICE_DISCRETE) {
        out->link_bytes_per_s = PCIE_BYTES_PER_US * 1000000ull;
        out->link_latency_ns = PCIE_LATENCY_NS;
    }
    out->caps = FRIT_CAP_I64 | FRIT_CAP_F64;
    for (uint32_t dtype = 0; dtype < FRIT_DTYPE_LIMIT; dtype++)
        out->dtype_use[dtype] = dtype_use(dtype);
}

static void fill_info(const struct instance *instance, uint32_t index, frit_device_info *out)
{
    const struct adapter *adapter = &instance->adapters[index];

    *out = (frit_device_info){
        .struct_size = sizeof *out,
        .type = adapter->attributes[ATTRIBUTE_INTEGRATED] ? FRIT_DEVICE_INTEGRATED
                                                          : FRIT_DEVICE_DISCRETE,
        .index = index,
        .reason = adapter->reason,
        .stable_id = text(adapter->stable_id),
        .name = text(adapter->name),
        .pci = text(adapter->pci),
        .driver_version = text(adapter->driver_version),
        .runtime_version = text(instance->versions),
        .runtime_path = text(instance->library_path),
        .fingerprint = text(adapter->fingerprint),
        .n_formats = vendor.n_formats,
        .formats = vendor.formats,
    };
    memcpy(out->uuid, adapter->uuid, sizeof out->uuid);
    fill_limits(adapter, out);
}

frit_status device_enumerate(void *self, frit_device_info *out, uint64_t stride, uint32_t capacity,
                             uint32_t *count, frit_driver_info *driver, frit_err *err)
{
    struct instance *instance = self;
    frit_status status = FRIT_OK;

    *count = 0;
    if (!instance->is_loaded && !instance->unavailable_reason)
        loader_open(instance);
    if (instance->is_loaded && !instance->adapters)
        status = read_adapters(instance, err);
    if (status)
        return status;
    *count = instance->n_adapters;
    driver->reason = instance->unavailable_reason;
    driver->detail = text(instance->unavailable_text);
    for (uint32_t i = 0; i < instance->n_adapters && i < capacity; i++) {
        frit_device_info *info = plug_info_at(&instance->plug, out, stride, i, err);

        if (!info)
            return FRIT_INCOMPATIBLE;
        fill_info(instance, i, info);
    }
    return FRIT_OK;
}

frit_status device_compute_info(void *self, uint32_t index, frit_compute_info *out, frit_err *err)
{
    const struct instance *instance = self;
    frit_status status = plug_check_index(&instance->plug, index, instance->n_adapters, err);

    if (status)
        return status;
    out->text = text(instance->compiler_text);
    return FRIT_OK;
}

/* ---- loss ---- */

frit_status device_fail(struct device *device, gpu_result result, const char *doing, frit_err *err)
{
    gpu_result none = GPU_SUCCESS;

    if (hip_is_fatal(result))
        (void)atomic_compare_exchange_strong(&device->loss.fatal, &none, result);
    return hip_fail(device->instance, err, result, "%s on %s", doing, device->adapter->name);
}

frit_status device_check(struct device *device, frit_err *err)
{
    const gpu_result result = atomic_load(&device->loss.fatal);

    if (result == GPU_SUCCESS)
        return FRIT_OK;
    return plug_fail(&device->instance->plug, err, FRIT_DEVICE_LOST,
                     "%s is lost: %s (error %d); close it and open it again", device->adapter->name,
                     hip_error_text(result), result);
}

static void *notify_loss(void *arg)
{
    struct loss *loss = arg;

    loss->on_lost(loss->ctx, &loss->why);
    return NULL;
}

/* Runs inside a slot of the driver, from which the host may not be called back, so a thread
 * notifies it. */
void device_settle(struct device *device)
{
    struct loss *loss = &device->loss;
    bool is_first;

    if (!device_is_lost(device))
        return;
    pthread_mutex_lock(&loss->lock);
    is_first = !loss->is_settled;
    if (is_first) {
        loss->is_settled = true;
        loss->why.struct_size = sizeof loss->why;
        (void)device_check(device, &loss->why);
    }
    pthread_mutex_unlock(&loss->lock);
    if (!is_first)
        return;
    pthread_mutex_lock(&device->queues_lock);
    for (uint32_t i = 0; i < MAX_QUEUES; i++)
        if (device->queues[i])
            queue_lose(device->queues[i], &loss->why);
    pthread_mutex_unlock(&device->queues_lock);
    loss->has_thread = loss->on_lost && !thread_start(&loss->thread, notify_loss, loss);
}

/* ---- open and close ---- */

static bool init_locks(struct device *device)
{
    pthread_mutex_t *const locks[] = {&device->queues_lock, &device->compile_lock,
                                      &device->loss.lock};
    uint32_t n = 0;

    while (n < sizeof locks / sizeof *locks && !pthread_mutex_init(locks[n], NULL))
        n++;
    device->has_locks =
        n == sizeof locks / sizeof *locks && !pthread_cond_init(&device->compile_ended, NULL);
    while (!device->has_locks && n > 0)
        pthread_mutex_destroy(locks[--n]);
    return device->has_locks;
}

static frit_status open_entered(struct device *device, gpu_stream adopted, frit_err *err)
{
    frit_status status = queue_open_first(device, adopted, err);

    return status ? status : compile_open(device, err);
}

static frit_status open_all(struct device *device, const frit_open_params *params, frit_err *err)
{
    gpu_stream stream = NULL;
    struct scope scope;
    frit_status status;
    gpu_result result;

    if (!init_locks(device))
        return plug_fail(&device->instance->plug, err, FRIT_IO, "cannot create a mutex");
    status = native_adopt(device, params, &stream, err);
    if (status)
        return status;
    products_load(device);
    result = device->context_is_adopted ? GPU_SUCCESS : vendor.open(device);
    if (result)
        return hip_fail(device->instance, err, result, "opening %s", device->adapter->name);
    device->is_entered = true;
    status = scope_enter(device, &scope, err);
    if (status)
        return status;
    status = open_entered(device, stream, err);
    scope_leave(device, &scope);
    return status;
}

frit_status device_open(void *self, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err)
{
    struct instance *instance = self;
    struct device *device;
    frit_status status;

    *out = NULL;
    if (index >= instance->n_adapters || instance->adapters[index].reason)
        return plug_fail(&instance->plug, err, FRIT_INVALID,
                         "%s:%u is not a usable device; %u devices are listed", vendor.name, index,
                         instance->n_adapters);
    device = hip_alloc(instance, sizeof *device);
    if (!device)
        return plug_fail(&instance->plug, err, FRIT_NO_HOST_MEMORY, "no memory to open %s:%u",
                         vendor.name, index);
    device->instance = instance;
    device->api = &instance->api;
    device->adapter = &instance->adapters[index];
    device->open_number = atomic_fetch_add(&instance->n_openings, 1) + 1;
    device->loss.on_lost = params->lost;
    device->loss.ctx = params->ctx;
    status = open_all(device, params, err);
    if (status)
        device_close(device);
    else
        *out = device;
    return status;
}

static void close_entered(struct device *device)
{
    for (uint32_t i = MAX_QUEUES; i-- > 0;)
        if (device->queues[i])
            queue_close(device->queues[i]);
    compile_close(device);
    products_close(device);
    builtins_close(device);
}

void device_close(void *self)
{
    struct device *device = self;
    struct scope scope;

    products_wait(device);
    if (device->loss.has_thread)
        pthread_join(device->loss.thread, NULL);
    if (device->is_entered) {
        scope_try(device, &scope);
        close_entered(device);
        scope_leave(device, &scope);
    }
    if (device->is_entered && !device->context_is_adopted)
        vendor.close(device);
    if (device->has_locks) {
        pthread_mutex_destroy(&device->queues_lock);
        pthread_mutex_destroy(&device->compile_lock);
        pthread_cond_destroy(&device->compile_ended);
        pthread_mutex_destroy(&device->loss.lock);
    }
    hip_free(device->instance, device);
}
