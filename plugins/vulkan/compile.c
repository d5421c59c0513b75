/* SPDX-License-Identifier: Apache-2.0 */
/* From modules to pipelines.  Of each phase there are two, if they differ at all: one for arguments
 * whose addresses are known to be aligned, which loads and stores in wide pieces, and one for any.
 * The driver's cache of pipelines is kept between processes.  Threads: any. */
#include "compile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "plugin.h"

/* Of a group.  A few for each thread, so that what it loads is 16 bytes. */
enum { MOST_LANES = 1024 };

/* Mesa's rasteriser leaves the loops of a thread for good after so many rounds, all together. */
enum { MOST_ROUNDS = 65535 };

/* ---- facts ---- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t power_below(uint32_t n)
{
    uint32_t power = 1;

    while (power * 2 <= n)
        power *= 2;
    return power;
}

/* Whether shaders may ask of 16-bit floats what is asked of the others: with 64-bit ones alike, or
 * apart from them. */
static bool float16_is_exact(const struct adapter *adapter)
{
    const VkPhysicalDeviceVulkan12Properties *floats = &adapter->floats;
    const VkShaderFloatControlsIndependence all = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;

    return adapter->features.v12.shaderFloat16 && floats->shaderSignedZeroInfNanPreserveFloat16 &&
           floats->shaderDenormPreserveFloat16 && floats->shaderRoundingModeRTEFloat16 &&
           floats->denormBehaviorIndependence == all && floats->roundingModeIndependence == all;
}

/* What shaders may ask of floats.  Where all widths must be asked the same, denormals are asked to
 * be kept only if both can be. */
static void fill_floats(const struct adapter *adapter, struct spirv_target *out)
{
    const VkPhysicalDeviceVulkan12Properties *floats = &adapter->floats;
    const VkShaderFloatControlsIndependence none = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;

    out->keep_special32 = floats->shaderSignedZeroInfNanPreserveFloat32;
    out->keep_special64 = floats->shaderSignedZeroInfNanPreserveFloat64;
    out->keep_denormal32 = floats->shaderDenormPreserveFloat32;
    out->keep_denormal64 = floats->shaderDenormPreserveFloat64;
    out->round_even32 = floats->shaderRoundingModeRTEFloat32;
    out->round_even64 = floats->shaderRoundingModeRTEFloat64;
    out->float16 = float16_is_exact(adapter);
    if (floats->denormBehaviorIndependence == none && out->keep_denormal32 != out->keep_denormal64)
        out->keep_denormal32 = out->keep_denormal64 = false;
    if (floats->roundingModeIndependence == none && out->round_even32 != out->round_even64)
        out->round_even32 = out->round_even64 = false;
}

static void fill_target(const struct adapter *adapter, struct spirv_target *out)
{
    const VkPhysicalDeviceLimits *limits = &adapter->limits;

    *out = (struct spirv_target){
        .most_threads =
            smaller(limits->maxComputeWorkGroupInvocations, limits->maxComputeWorkGroupSize[0]),
        .shared_bytes = limits->maxComputeSharedMemorySize,
        .push_bytes = smaller(limits->maxPushConstantsSize, MOST_PUSH),
        .subgroup = adapter->subgroup,
        .float64 = adapter->features.core.features.shaderFloat64,
        .store8 = adapter->features.v12.storageBuffer8BitAccess,
        .store16 = adapter->features.v11.storageBuffer16BitAccess,
        .atomic_i64 = adapter->features.v12.shaderBufferInt64Atomics,
        .atomic_f32 = adapter->features.atomic.shaderBufferFloat32AtomicAdd,
    };
    if (adapter->subgroup)
        out->most_threads = smaller(out->most_threads, adapter->subgroup * adapter->most_subgroups);
    out->most_threads = power_below(out->most_threads);
    fill_floats(adapter, out);
}

static uint32_t lanes_of(const struct spirv_target *target)
{
    return smaller(MOST_LANES, target->most_threads * 4);
}

uint32_t compile_lanes(const struct adapter *adapter)
{
    struct spirv_target target;

    fill_target(adapter, &target);
    return lanes_of(&target);
}

/* Vulkan leaves open how often Fma rounds: once with the drivers that are known to have it as an
 * instruction of the device. */
static bool fuses(const struct adapter *adapter)
{
    return adapter->floats.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
}

static void fill_kernels(const struct adapter *adapter, const struct spirv_target *target,
                         struct kir_target *out)
{
    const uint32_t lanes = lanes_of(target);
    const uint32_t exchanged = lanes * 12; /* as spirv.h says */

    *out = (struct kir_target){
        .lanes = lanes,
        .row_lanes = lanes,
        .most_lanes = lanes,
        .near_lanes = target->subgroup * 4, /* one subgroup's, with floats of 32 bits */
        .units = adapter->type == FRIT_DEVICE_SOFTWARE ? 8 : 512,
        .group_bytes = target->shared_bytes > exchanged ? target->shared_bytes - exchanged : 0,
        .stages_tiles = adapter->type != FRIT_DEVICE_SOFTWARE,
        .bindings = 64,
        .launch_args = LAUNCH_ARGS,
        .launch_words = SPACES_WORDS,
        .most_rounds = adapter->type == FRIT_DEVICE_SOFTWARE ? MOST_ROUNDS : 0,
        .align_bytes = SPIRV_ALIGN,
        .fma = fuses(adapter),
        .f64 = target->float64,
        .i64 = true,
        .denormals = target->keep_denormal32,
        .atomic_f32 = target->atomic_f32,
        .store_bytes = 1,
    };
}

/* ---- pipelines ---- */

frit_status compile_pipeline(struct device *device, const struct spirv_code *code, VkPipeline *out,
                             frit_err *err)
{
    const VkShaderModuleCreateInfo words = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                            .codeSize = code->n_words * sizeof *code->words,
                                            .pCode = code->words};
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = device->target.subgroup};
    VkComputePipelineCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = "main"},
        .layout = device->layout};
    VkResult result =
        device->api.CreateShaderModule(device->handle, &words, NULL, &create.stage.module);

    if (code->subgroups) {
        create.stage.pNext = &size;
        create.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
    if (!result)
        result = device->api.CreateComputePipelines(device->handle, device->cache, 1, &create, NULL,
                                                    out);
    device->api.DestroyShaderModule(device->handle, create.stage.module, NULL);
    return result ? vulkan_refused(device->instance, err, result, "a kernel on %s",
                                   device->adapter->name)
                  : FRIT_OK;
}

/* Whether lanes of the phase give each other values of 64 bits. */
static bool exchanges_wide(const struct kir_phase *phase)
{
    for (uint32_t i = 0; i < phase->n; i++) {
        const struct kir_inst *inst = &phase->inst[i];

        if ((inst->op == KIR_exchange || inst->op == KIR_shift || inst->op == KIR_first) &&
            (inst->type == KIR_I64 || inst->type == KIR_F64))
            return true;
    }
    return false;
}

/* Without subgroups where they do not take such values, and for rasterisers: what theirs make of a
 * double from another invocation can be more than LLVM takes, which then ends the process. */
static struct spirv_target target_for(const struct device *device, const struct kir_phase *phase)
{
    const struct adapter *adapter = device->adapter;
    struct spirv_target target = device->target;

    if ((adapter->type == FRIT_DEVICE_SOFTWARE ||
         !adapter->features.v12.shaderSubgroupExtendedTypes) &&
        exchanges_wide(phase))
        target.subgroup = 0;
    return target;
}

static bool same_words(const struct spirv_code *a, const struct spirv_code *b)
{
    return a->n_words == b->n_words &&
           memcmp(a->words, b->words, a->n_words * sizeof *a->words) == 0;
}

/* For people: NAME-PHASE-HASH.spv, or nothing where it cannot be written.  Equal words have equal
 * names, and what is there already is not written again. */
static void dump(const struct device *device, const char *name, uint32_t phase,
                 const struct spirv_code *code)
{
    const struct instance *instance = device->instance;
    const frit_str folder = instance->options.dump;
    uint64_t hash = 0xcbf29ce484222325;
    char path[512];
    FILE *file;

    if (folder.len == 0)
        return;
    for (uint32_t i = 0; i < code->n_words; i++)
        hash = (hash ^ code->words[i]) * 0x100000001b3;
    snprintf(path, sizeof path, "%.*s/%s-%" PRIu32 "-%016" PRIx64 ".spv", (int)folder.len,
             folder.ptr, name, phase, hash);
    file = fopen(path, "wbxe");
    if (file) {
        (void)!fwrite(code->words, sizeof *code->words, code->n_words, file);
        (void)fclose(file);
    }
}

/* Both pipelines of a phase; one where they would be the same. */
static frit_status make_near(struct device *device, const struct spirv_code *any,
                             const struct spirv_code *aligned, struct pipelines *out, frit_err *err)
{
    frit_status status = compile_pipeline(device, aligned, &out->aligned, err);

    if (status)
        return status;
    if (!same_words(any, aligned))
        return compile_pipeline(device, any, &out->any, err);
    out->any = out->aligned;
    return FRIT_OK;
}

/* Code for recordings. */
static frit_status emit_far(const struct kir_module *module, uint32_t phase,
                            struct spirv_target target, enum far_kind kind, struct far_words *out,
                            frit_err *err)
{
    frit_status status;

    target.apart = kind == FAR_ARGS;
    target.push_bytes = target.apart ? target.push_bytes : 0;
    status = spirv_emit(module, phase, &target, false, &out->any, err);
    return status ? status : spirv_emit(module, phase, &target, true, &out->aligned, err);
}

static frit_status make_phase(struct device *device, const struct kir_module *module,
                              uint32_t phase, struct code *code, frit_err *err)
{
    struct spirv_target target = target_for(device, &module->phases[phase]);
    struct spirv_code any = {0}, aligned = {0};
    frit_status status = spirv_emit(module, phase, &target, false, &any, err);

    if (!status)
        status = spirv_emit(module, phase, &target, true, &aligned, err);
    if (!status) {
        dump(device, module->name, phase, &any);
        dump(device, module->name, phase, &aligned);
        status = make_near(device, &any, &aligned, &code->near[phase], err);
    }
    code->inside = any.inside;
    spirv_fini(&any);
    spirv_fini(&aligned);
    for (uint32_t kind = 0; kind < FAR_KINDS && code->inside && !status; kind++)
        status = emit_far(module, phase, target, kind, &code->words[kind][phase], err);
    return status;
}

frit_status code_make_far(struct device *device, struct code *code, enum far_kind kind,
                          bool aligned, frit_err *err)
{
    frit_status status = FRIT_OK;

    pthread_mutex_lock(&device->code_lock);
    for (uint32_t i = 0; i < code->n_phases && code->inside && !status; i++) {
        const struct far_words *words = &code->words[kind][i];
        VkPipeline *to = aligned ? &code->far[kind][i].aligned : &code->far[kind][i].any;

        if (!*to)
            status = compile_pipeline(device, aligned ? &words->aligned : &words->any, to, err);
    }
    pthread_mutex_unlock(&device->code_lock);
    return status;
}

static void destroy_far(struct device *device, struct pipelines *far, struct far_words *words)
{
    device->api.DestroyPipeline(device->handle, far->any, NULL);
    device->api.DestroyPipeline(device->handle, far->aligned, NULL);
    spirv_fini(&words->any);
    spirv_fini(&words->aligned);
}

static void code_release(void *self, void *released)
{
    struct device *device = self;
    struct code *code = released;

    for (uint32_t i = 0; i < code->n_phases; i++) {
        if (code->near[i].any != code->near[i].aligned)
            device->api.DestroyPipeline(device->handle, code->near[i].any, NULL);
        device->api.DestroyPipeline(device->handle, code->near[i].aligned, NULL);
        for (uint32_t kind = 0; kind < FAR_KINDS; kind++)
            destroy_far(device, &code->far[kind][i], &code->words[kind][i]);
    }
    vulkan_free(device->instance, code);
}

/* With its arrays behind it. */
static struct code *code_alloc(const struct instance *instance, uint32_t n_phases)
{
    const uint64_t each =
        (1 + FAR_KINDS) * sizeof(struct pipelines) + FAR_KINDS * sizeof(struct far_words);
    struct code *code = vulkan_alloc(instance, sizeof *code + n_phases * each);
    struct pipelines *pipelines;

    if (!code)
        return NULL;
    pipelines = (struct pipelines *)(code + 1);
    code->near = pipelines;
    for (uint32_t kind = 0; kind < FAR_KINDS; kind++) {
        code->far[kind] = pipelines + (1 + kind) * n_phases;
        code->words[kind] =
            (struct far_words *)(pipelines + (1 + FAR_KINDS) * n_phases) + kind * n_phases;
    }
    return code;
}

static frit_status code_compile(void *self, struct kir_module *module, const uint8_t *digest,
                                const frit_cancel *cancel, void **out, frit_err *err)
{
    struct device *device = self;
    struct code *code;
    frit_status status = FRIT_OK;

    (void)digest; /* the driver's cache has its own names */
    (void)cancel;
    *out = NULL;
    if (module->n_args + module->n_params > LAUNCH_WORDS)
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "kernel %s has %u arguments, %u parameters", module->name, module->n_args,
                         module->n_params);
    code = code_alloc(device->instance, module->n_phases);
    if (!code)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for kernel %s", module->name);
    while (code->n_phases < module->n_phases && !status)
        status = make_phase(device, module, code->n_phases++, code, err);
    if (status)
        code_release(device, code);
    else
        *out = code;
    return status;
}

/* ---- the cache of pipelines ---- */

static const char cache_key[] = "pipelines";

static frit_str cache_space(const struct device *device)
{
    return (frit_str){device->adapter->fingerprint, strlen(device->adapter->fingerprint)};
}

/* What was kept, if anything; a Vulkan driver checks whether it is its own. */
static frit_status open_cache(struct device *device, frit_err *err)
{
    const struct instance *instance = device->instance;
    VkPipelineCacheCreateInfo create = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    void *bytes = NULL;
    uint64_t n_bytes = 0;
    VkResult result;

    if (instance->keep && instance->keep->get(instance->plug.host->self, cache_space(device),
                                              cache_key, sizeof cache_key, &bytes, &n_bytes, NULL))
        bytes = NULL;
    create.initialDataSize = bytes ? n_bytes : 0;
    create.pInitialData = bytes;
    device->kept_bytes = create.initialDataSize;
    result = device->api.CreatePipelineCache(device->handle, &create, NULL, &device->cache);
    vulkan_free(instance, bytes);
    return result ? vulkan_refused(instance, err, result, "a cache of kernels on %s",
                                   device->adapter->name)
                  : FRIT_OK;
}

/* Only what has grown: pipelines are never taken out. */
static void keep_cache(struct device *device)
{
    const struct instance *instance = device->instance;
    size_t n_bytes = 0;
    void *bytes;

    if (!instance->keep || !device->cache ||
        device->api.GetPipelineCacheData(device->handle, device->cache, &n_bytes, NULL) ||
        n_bytes <= device->kept_bytes)
        return;
    bytes = vulkan_alloc(instance, n_bytes);
    if (bytes && !device->api.GetPipelineCacheData(device->handle, device->cache, &n_bytes, bytes))
        (void)instance->keep->put(instance->plug.host->self, cache_space(device), cache_key,
                                  sizeof cache_key, bytes, n_bytes, NULL);
    vulkan_free(instance, bytes);
}

/* ---- open and close ---- */

frit_status compile_open(struct device *device, frit_err *err)
{
    VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    const VkPipelineLayoutCreateInfo create = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &push};
    VkResult result;
    frit_status status;

    if (pthread_mutex_init(&device->code_lock, NULL))
        return plug_fail(&device->instance->plug, err, FRIT_IO, "no mutex for kernels");
    device->has_code_lock = true;
    fill_target(device->adapter, &device->target);
    fill_kernels(device->adapter, &device->target, &device->kernels.target);
    device->kernels.self = device;
    device->kernels.compile = code_compile;
    device->kernels.release = code_release;
    push.size = device->target.push_bytes;
    result = device->api.CreatePipelineLayout(device->handle, &create, NULL, &device->layout);
    if (result)
        return vulkan_refused(device->instance, err, result, "a layout on %s",
                              device->adapter->name);
    status = open_cache(device, err);
    return status ? status : kernels_open(&device->kernels, err);
}

void compile_close(struct device *device)
{
    keep_cache(device);
    kernels_close(&device->kernels);
    if (device->cache)
        device->api.DestroyPipelineCache(device->handle, device->cache, NULL);
    if (device->layout)
        device->api.DestroyPipelineLayout(device->handle, device->layout, NULL);
    if (device->has_code_lock)
        pthread_mutex_destroy(&device->code_lock);
}
