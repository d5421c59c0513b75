/* SPDX-License-Identifier: Apache-2.0 */
/* The one device: all processors of the process together.  A launch runs on all of them; if a
 * launch of another queue has them already, it runs on the submitting thread alone. */
#include "device.h"

#include <string.h>

#include "compile.h"
#include "cpu.h"
#include "launch.h"

/* LANES is large enough to spread the cost of interpreting a step over many elements, and small
 * enough for the values of a group to stay in the L1 cache.  A group that works on one row has
 * ROW_LANES, a few vectors, and loops over the rest of the row. */
enum { LANES = 512, ROW_LANES = 64, MAX_LANES = 2048, GROUP_BYTES = 65536, VECTOR_BYTES = 64 };

frit_status device_enumerate(void *self, frit_device_info *out, uint64_t stride, uint32_t capacity,
                             uint32_t *count, frit_driver_info *driver, frit_err *err)
{
    struct instance *instance = self;

    *count = 1;
    driver->reason = 0;
    if (capacity == 0)
        return FRIT_OK;
    if (!plug_info_at(&instance->plug, out, stride, 0, err))
        return FRIT_INCOMPATIBLE;
    instance->heap = hosted_heap(instance->memory_bytes);
    *out = (frit_device_info){
        .struct_size = sizeof *out,
        .type = FRIT_DEVICE_PROCESSOR,
        .stable_id = FRIT_STR("cpu-0"),
        .name = {instance->name, strlen(instance->name)},
        .driver_version = FRIT_STR(CPU_VERSION),
        .fingerprint = {instance->fingerprint, strlen(instance->fingerprint)},
        .caps = FRIT_CAP_F64 | FRIT_CAP_I64,
        .align_bytes = VECTOR_BYTES,
        .tail_bytes = VECTOR_BYTES,
        .max_group = MAX_LANES,
    };
    hosted_describe(out, &instance->heap);
    for (uint32_t dtype = 0; dtype < FRIT_DTYPE_LIMIT; dtype++)
        out->dtype_use[dtype] = kir_type_of(dtype) != KIR_VOID
                                    ? FRIT_DTYPE_STORAGE | FRIT_DTYPE_ARITHMETIC
                                : frit_storage_bytes(dtype, 1) ? FRIT_DTYPE_STORAGE
                                                               : 0;
    return FRIT_OK;
}

/* Packed operands lie in panels as wide as the vectors that are computed at a time, so that a panel
 * is read in order; at least the smallest group. */
static uint32_t pack_lanes(enum tile_level level)
{
    return level >= TILE_AVX512 ? 32 : 16;
}

/* Interpreted loops are fast over many lanes, whatever caches hold.  Lanes change no bits. */
static void choose_for_interpreter(struct kir_target *target)
{
    target->tuning.pack_lanes = LANES;
    target->tuning.pack_panel = INT32_MAX;
    target->tuning.line_panel = INT32_MAX;
    target->tuning.pool_line = INT32_MAX;
}

bool device_has_dot2(const struct instance *instance)
{
    return instance->level == TILE_AVX512 && tile_has_dot2();
}

static struct kir_target target_of(const struct instance *instance)
{
    struct kir_target target = {
        .lanes = LANES,
        .lanes_per_row = ROW_LANES,
        .max_lanes = MAX_LANES,
        .units = instance->threads,
        .group_bytes = GROUP_BYTES,
        .registers = instance->level >= TILE_AVX512 ? 32 : 16,
        .rereads_are_cached = true,
        .lanes_interleaved = true,
        .keeps_derived = true,
        .winograd = instance->winograd,
        .fma = instance->level >= TILE_AVX2,
        .scale = instance->level >= TILE_AVX512,
        .dot2 = device_has_dot2(instance),
        .f64 = true,
        .i64 = true,
        .exact_div = true,
        .denormals = true,
        .store_bytes = 1,
        .tuning = {.pack_lanes = pack_lanes(instance->level)},
    };

    if (instance->jit.mode == JIT_NEVER)
        choose_for_interpreter(&target);
    return target;
}

frit_status device_open(void *self, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err)
{
    struct instance *instance = self;
    struct device *device;
    frit_status status = plug_check_open(&instance->plug, index, 1, params, err);

    *out = NULL;
    if (status)
        return status;
    device = plug_new(&instance->plug, sizeof *device, "cpu:0", err);
    if (!device)
        return FRIT_NO_HOST_MEMORY;
    *device = (struct device){
        .instance = instance,
        .launcher = {.instance = instance},
        .kernels = {.target = target_of(instance),
                    .self = instance,
                    .compile = module_compile,
                    .release = module_release,
                    .generation = module_generation,
                    .serial = &instance->serial},
    };
    status = instance->jit.mode == JIT_ALWAYS ? jit_open(&instance->jit, err) : FRIT_OK;
    if (!status)
        status = kernels_open(&device->kernels, err);
    if (status) {
        plug_free(&instance->plug, device);
        return status;
    }
    hosted_init(&device->hosted, &instance->plug, &launcher_slots, &device->launcher,
                instance->memory_bytes);
    *out = device;
    return FRIT_OK;
}

frit_status device_compute_info(void *self, uint32_t index, frit_compute_info *out, frit_err *err)
{
    (void)index;
    (void)err;
    jit_describe(&((struct instance *)self)->jit, out);
    return FRIT_OK;
}

void device_close(void *self)
{
    struct device *device = self;

    kernels_close(&device->kernels);
    hosted_fini(&device->hosted);
    launcher_fini(&device->launcher);
    plug_free(&device->instance->plug, device);
}

/* ---- queues beside the first one ---- */

struct queue {
    struct hosted_queue hosted; /* the first */
    struct launcher launcher;
};

/* Every queue runs commands of all kinds: `desc` does not matter. */
frit_status device_queue_create(void *self, const frit_queue_desc *desc, frit_queue **out,
                                frit_err *err)
{
    struct device *device = self;
    const struct plug *plug = &device->instance->plug;
    struct queue *queue = plug_new(plug, sizeof *queue, "a queue", err);
    frit_status status;

    (void)desc;
    *out = NULL;
    if (!queue)
        return FRIT_NO_HOST_MEMORY;
    queue->launcher.instance = device->instance;
    status = hosted_queue_init(&queue->hosted, &device->hosted, &queue->launcher, err);
    if (status)
        plug_free(plug, queue);
    else
        *out = (frit_queue *)(void *)queue;
    return status;
}

void device_queue_destroy(void *self, frit_queue *handle)
{
    struct queue *queue = (struct queue *)(void *)handle;

    if (!queue)
        return;
    hosted_queue_fini(&queue->hosted);
    launcher_fini(&queue->launcher);
    plug_free(&((struct device *)self)->instance->plug, queue);
}
