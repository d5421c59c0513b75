/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the modules of the kernel compiler to Vulkan pipelines.
 *
 * Each phase has two pipelines: one for arguments whose addresses are known to be aligned, which
 * uses wide loads and stores, and one for arguments at any address.  They are one pipeline if their
 * SPIR-V is the same.  The VkPipelineCache is saved in the host's disk cache. */
#include "compile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapter.h"
#include "device.h"
#include "plugin.h"
#include "target.h"

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
        .layout = device->pipeline_layout};
    VkResult result =
        device->api.CreateShaderModule(device->handle, &words, NULL, &create.stage.module);

    if (code->subgroups) {
        create.stage.pNext = &size;
        create.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
    if (!result)
        result = device->api.CreateComputePipelines(device->handle, device->pipeline_cache, 1,
                                                    &create, NULL, out);
    device->api.DestroyShaderModule(device->handle, create.stage.module, NULL);
    return result ? vulkan_fail(device->instance, err, result, "creating a pipeline on %s",
                                device->adapter->name)
                  : FRIT_OK;
}

/* Whether lanes of the phase exchange 64-bit values. */
static bool exchanges_64bit(const struct kir_phase *phase)
{
    for (uint32_t i = 0; i < phase->n; i++) {
        const struct kir_inst *inst = &phase->inst[i];

        if ((inst->op == KIR_exchange || inst->op == KIR_shift || inst->op == KIR_first) &&
            (inst->type == KIR_I64 || inst->type == KIR_F64))
            return true;
    }
    return false;
}

/* The device's target, without subgroup operations if the phase exchanges 64-bit values and they
 * only take 32 bits.  On software devices too: llvmpipe's code for exchanging doubles can be too
 * large for LLVM, which then aborts the process. */
static struct spirv_target target_for(const struct device *device, const struct kir_phase *phase)
{
    const struct adapter *adapter = device->adapter;
    struct spirv_target target = device->target;

    if ((adapter->type == FRIT_DEVICE_SOFTWARE ||
         !adapter->features.v12.shaderSubgroupExtendedTypes) &&
        exchanges_64bit(phase))
        target.subgroup = 0;
    return target;
}

static bool is_same_code(const struct spirv_code *a, const struct spirv_code *b)
{
    return a->n_words == b->n_words &&
           memcmp(a->words, b->words, a->n_words * sizeof *a->words) == 0;
}

/* Writes a module to NAME-PHASE-HASH.spv in the folder of the option `dump`, unless that file
 * exists.  Errors are ignored. */
static void dump(const struct device *device, const char *name, uint32_t phase,
                 const struct spirv_code *code)
{
    const struct instance *instance = device->instance;
    const frit_str folder = instance->options.dump;
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a, over 32-bit words */
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

/* Creates both pipelines of a phase, or one for both if their code is the same.  `later`: takes the
 * module for arguments at any address instead of compiling it. */
static frit_status create_pipelines(struct device *device, struct spirv_code *any,
                                    const struct spirv_code *aligned, struct spirv_code *later,
                                    struct pipelines *out, frit_err *err)
{
    frit_status status = compile_pipeline(device, aligned, &out->aligned, err);

    if (status)
        return status;
    if (is_same_code(any, aligned)) {
        out->any = out->aligned;
        return FRIT_OK;
    }
    if (!later)
        return compile_pipeline(device, any, &out->any, err);
    *later = *any;
    *any = (struct spirv_code){0};
    return FRIT_OK;
}

/* Emits both modules of a phase for a capture mode. */
static frit_status emit_for_capture(const struct kir_module *module, uint32_t phase,
                                    struct spirv_target target, enum block_mode mode,
                                    struct phase_modules *out, frit_err *err)
{
    frit_status status;

    target.split_block = mode == BLOCK_SPLIT;
    target.push_bytes = target.split_block ? target.push_bytes : 0;
    status = spirv_emit(module, phase, &target, false, &out->any, err);
    return status ? status : spirv_emit(module, phase, &target, true, &out->aligned, err);
}

/* Compiles a phase for submitted launches, and emits its modules for captures. */
static frit_status compile_phase(struct device *device, const struct kir_module *module,
                                 uint32_t phase, struct kernel_code *code, frit_err *err)
{
    struct spirv_target target = target_for(device, &module->phases[phase]);
    struct spirv_code any = {0}, aligned = {0};
    frit_status status = spirv_emit(module, phase, &target, false, &any, err);

    if (!status)
        status = spirv_emit(module, phase, &target, true, &aligned, err);
    if (!status) {
        dump(device, module->name, phase, &any);
        dump(device, module->name, phase, &aligned);
        status =
            create_pipelines(device, &any, &aligned,
                             module->phases[phase].n_fragments ? &code->submit_any[phase] : NULL,
                             &code->submit[phase], err);
    }
    code->block_is_pushed = aligned.block_is_pushed;
    spirv_fini(&any);
    spirv_fini(&aligned);
    for (uint32_t mode = 0; mode < CAPTURE_MODES && code->block_is_pushed && !status; mode++)
        status =
            emit_for_capture(module, phase, target, mode, &code->capture_modules[mode][phase], err);
    return status;
}

frit_status compile_for_any(struct device *device, struct kernel_code *code, frit_err *err)
{
    frit_status status = FRIT_OK;

    pthread_mutex_lock(&device->pipelines_lock);
    for (uint32_t i = 0; i < code->n_phases && !status; i++)
        if (!code->submit[i].any)
            status = compile_pipeline(device, &code->submit_any[i], &code->submit[i].any, err);
    pthread_mutex_unlock(&device->pipelines_lock);
    return status;
}

frit_status compile_for_capture(struct device *device, struct kernel_code *code,
                                enum block_mode mode, bool aligned, frit_err *err)
{
    frit_status status = FRIT_OK;

    if (mode == BLOCK_AS_SUBMITTED || !code->block_is_pushed)
        return aligned ? FRIT_OK : compile_for_any(device, code, err);
    pthread_mutex_lock(&device->pipelines_lock);
    for (uint32_t i = 0; i < code->n_phases && !status; i++) {
        const struct phase_modules *modules = &code->capture_modules[mode][i];
        VkPipeline *to = aligned ? &code->capture[mode][i].aligned : &code->capture[mode][i].any;

        if (!*to)
            status = compile_pipeline(device, aligned ? &modules->aligned : &modules->any, to, err);
    }
    pthread_mutex_unlock(&device->pipelines_lock);
    return status;
}

static void destroy_capture_phase(struct device *device, struct pipelines *pipelines,
                                  struct phase_modules *modules)
{
    device->api.DestroyPipeline(device->handle, pipelines->any, NULL);
    device->api.DestroyPipeline(device->handle, pipelines->aligned, NULL);
    spirv_fini(&modules->any);
    spirv_fini(&modules->aligned);
}

/* Slot `release` of struct kernels_device. */
static void code_release(void *self, void *released)
{
    struct device *device = self;
    struct kernel_code *code = released;

    for (uint32_t i = 0; i < code->n_phases; i++) {
        if (code->submit[i].any != code->submit[i].aligned)
            device->api.DestroyPipeline(device->handle, code->submit[i].any, NULL);
        device->api.DestroyPipeline(device->handle, code->submit[i].aligned, NULL);
        spirv_fini(&code->submit_any[i]);
        for (uint32_t mode = 0; mode < CAPTURE_MODES; mode++)
            destroy_capture_phase(device, &code->capture[mode][i], &code->capture_modules[mode][i]);
    }
    vulkan_free(device->instance, code);
}

/* One allocation with the arrays after the struct; zeroed. */
static struct kernel_code *code_alloc(const struct instance *instance, uint32_t n_phases)
{
    const uint64_t phase_bytes = (1 + CAPTURE_MODES) * sizeof(struct pipelines) +
                                 CAPTURE_MODES * sizeof(struct phase_modules) +
                                 sizeof(struct spirv_code);
    struct kernel_code *code = vulkan_alloc(instance, sizeof *code + n_phases * phase_bytes);
    struct pipelines *pipelines;

    if (!code)
        return NULL;
    pipelines = (struct pipelines *)(code + 1);
    code->submit = pipelines;
    for (uint32_t mode = 0; mode < CAPTURE_MODES; mode++) {
        code->capture[mode] = pipelines + (1 + mode) * n_phases;
        code->capture_modules[mode] =
            (struct phase_modules *)(pipelines + (1 + CAPTURE_MODES) * n_phases) + mode * n_phases;
    }
    code->submit_any = (struct spirv_code *)(code->capture_modules[CAPTURE_MODES - 1] + n_phases);
    return code;
}

/* Slot `compile` of struct kernels_device. */
static frit_status code_compile(void *self, struct kir_module *module, const uint8_t *digest,
                                const frit_cancel *cancel, void **out, frit_err *err)
{
    struct device *device = self;
    struct kernel_code *code;
    frit_status status = FRIT_OK;

    (void)digest; /* VkPipelineCache has keys of its own */
    (void)cancel;
    *out = NULL;
    if (module->n_args + module->n_params > MAX_SPACE_WORDS)
        return plug_fail(&device->instance->plug, err, FRIT_UNSUPPORTED,
                         "kernel %s has %u arguments and %u parameters, together more than %d",
                         module->name, module->n_args, module->n_params, MAX_SPACE_WORDS);
    code = code_alloc(device->instance, module->n_phases);
    if (!code)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for kernel %s", module->name);
    while (code->n_phases < module->n_phases && !status)
        status = compile_phase(device, module, code->n_phases++, code, err);
    if (status)
        code_release(device, code);
    else
        *out = code;
    return status;
}

/* ---- the pipeline cache ---- */

static const char cache_key[] = "pipelines";

/* The space in the host's disk cache. */
static frit_str cache_space(const struct device *device)
{
    return (frit_str){device->adapter->fingerprint, strlen(device->adapter->fingerprint)};
}

/* Creates the pipeline cache with the bytes from the host's disk cache, if there are any.  The
 * Vulkan driver ignores bytes that are not its own. */
static frit_status create_cache(struct device *device, frit_err *err)
{
    const struct instance *instance = device->instance;
    VkPipelineCacheCreateInfo create = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    void *bytes = NULL;
    uint64_t n_bytes = 0;
    VkResult result;

    if (instance->cache &&
        instance->cache->get(instance->plug.host->self, cache_space(device), cache_key,
                             sizeof cache_key, &bytes, &n_bytes, NULL))
        bytes = NULL;
    create.initialDataSize = bytes ? n_bytes : 0;
    create.pInitialData = bytes;
    device->cached_bytes = create.initialDataSize;
    result =
        device->api.CreatePipelineCache(device->handle, &create, NULL, &device->pipeline_cache);
    vulkan_free(instance, bytes);
    return result ? vulkan_fail(instance, err, result, "creating a pipeline cache on %s",
                                device->adapter->name)
                  : FRIT_OK;
}

/* Writes the pipeline cache to the host's disk cache if it has grown. */
static void save_cache(struct device *device)
{
    const struct instance *instance = device->instance;
    size_t n_bytes = 0;
    void *bytes;

    if (!instance->cache || !device->pipeline_cache ||
        device->api.GetPipelineCacheData(device->handle, device->pipeline_cache, &n_bytes, NULL) ||
        n_bytes <= device->cached_bytes)
        return;
    bytes = vulkan_alloc(instance, n_bytes);
    if (bytes &&
        !device->api.GetPipelineCacheData(device->handle, device->pipeline_cache, &n_bytes, bytes))
        (void)instance->cache->put(instance->plug.host->self, cache_space(device), cache_key,
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

    if (pthread_mutex_init(&device->pipelines_lock, NULL))
        return plug_fail(&device->instance->plug, err, FRIT_IO, "cannot create a mutex");
    device->has_pipelines_lock = true;
    target_fill_spirv(device->adapter, &device->target);
    target_fill_kernels(device->adapter, &device->target, &device->kernels.target);
    device->kernels.self = device;
    device->kernels.compile = code_compile;
    device->kernels.release = code_release;
    push.size = device->target.push_bytes;
    result =
        device->api.CreatePipelineLayout(device->handle, &create, NULL, &device->pipeline_layout);
    if (result)
        return vulkan_fail(device->instance, err, result, "creating a pipeline layout on %s",
                           device->adapter->name);
    status = create_cache(device, err);
    return status ? status : kernels_open(&device->kernels, err);
}

void compile_close(struct device *device)
{
    save_cache(device);
    kernels_close(&device->kernels);
    if (device->pipeline_cache)
        device->api.DestroyPipelineCache(device->handle, device->pipeline_cache, NULL);
    if (device->pipeline_layout)
        device->api.DestroyPipelineLayout(device->handle, device->pipeline_layout, NULL);
    if (device->has_pipelines_lock)
        pthread_mutex_destroy(&device->pipelines_lock);
}
