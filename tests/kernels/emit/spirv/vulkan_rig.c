/* SPDX-License-Identifier: Apache-2.0 */
/* One buffer in host memory holds the launch's block and the arguments, each between guards.  Any
 * call that fails ends the run. */
#include "kernels/emit/spirv/vulkan_rig.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "plugins/vulkan/later.h"

enum { HEAP_BYTES = 32 << 20, GUARD = 256, GUARD_BYTE = 0xa5, MAX_DEVICES = 16, MAX_PHASES = 8 };
enum { MAX_EXTENSIONS = 5, MAX_MATRICES = 64 };

struct vulkan_rig {
    void *library;
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceAddress address;
    uint8_t *mapped;
    VkPipeline pipelines[MAX_PHASES];
    VkPipelineLayout layouts[MAX_PHASES];
    struct spirv_target target;
    bool software;
    uint32_t n_shapes;
    struct kir_fragment_shape shapes[KIR_SHAPES];
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
#define VULKAN_INSTANCE(name) PFN_vk##name name;
#define VULKAN_DEVICE(name)   PFN_vk##name name;
#include "kernels/emit/spirv/vulkan_rig.def"
#undef VULKAN_INSTANCE
#undef VULKAN_DEVICE
};

const struct spirv_target *vulkan_target(const struct vulkan_rig *rig)
{
    return &rig->target;
}

const char *vulkan_name(const struct vulkan_rig *rig)
{
    return rig->name;
}

bool vulkan_is_software(const struct vulkan_rig *rig)
{
    return rig->software;
}

const struct kir_fragment_shape *vulkan_shapes(const struct vulkan_rig *rig, uint32_t *n)
{
    *n = rig->n_shapes;
    return rig->shapes;
}

static bool made(VkResult result, const char *what)
{
    if (result != VK_SUCCESS)
        fprintf(stderr, "vulkan: %s failed with %d\n", what, (int)result);
    return result == VK_SUCCESS;
}

#define MADE(call) made(call, #call)

static PFN_vkVoidFunction symbol(PFN_vkGetInstanceProcAddr get, VkInstance instance,
                                 const char *name)
{
    return get(instance, name);
}

static bool open_instance(struct vulkan_rig *rig)
{
    VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                             .apiVersion = VK_API_VERSION_1_2};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &app};
    PFN_vkGetInstanceProcAddr get;
    PFN_vkCreateInstance create;
    void *found;

    rig->library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    found = rig->library ? dlsym(rig->library, "vkGetInstanceProcAddr") : NULL;
    if (!found) {
        fprintf(stderr, "vulkan: no loader\n");
        return false;
    }
    memcpy(&get, &found, sizeof(get));
    create = (PFN_vkCreateInstance)symbol(get, NULL, "vkCreateInstance");
    if (!create || !MADE(create(&info, NULL, &rig->instance)))
        return false;
#define VULKAN_INSTANCE(name) rig->name = (PFN_vk##name)symbol(get, rig->instance, "vk" #name);
#define VULKAN_DEVICE(name)
#include "kernels/emit/spirv/vulkan_rig.def"
#undef VULKAN_INSTANCE
#undef VULKAN_DEVICE
    return true;
}

static bool wanted(const VkPhysicalDeviceProperties *properties)
{
    const char *name = getenv("FRIT_TEST_VULKAN");

    if (properties->apiVersion < VK_API_VERSION_1_2)
        return false;
    return name ? strstr(properties->deviceName, name) != NULL
                : properties->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

static bool choose_device(struct vulkan_rig *rig)
{
    VkPhysicalDevice devices[MAX_DEVICES];
    uint32_t n = MAX_DEVICES;

    if (rig->EnumeratePhysicalDevices(rig->instance, &n, devices) < 0)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};

        rig->GetPhysicalDeviceProperties2(devices[i], &p);
        if (!wanted(&p.properties))
            continue;
        rig->physical = devices[i];
        rig->software = p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
        snprintf(rig->name, sizeof(rig->name), "%s", p.properties.deviceName);
        return true;
    }
    fprintf(stderr, "vulkan: none of the %u devices is the requested one\n", n);
    return false;
}

static bool has_extension(const struct vulkan_rig *rig, const char *name)
{
    uint32_t n = 0;
    bool found = false;
    VkExtensionProperties *all;

    rig->EnumerateDeviceExtensionProperties(rig->physical, NULL, &n, NULL);
    all = calloc(n + 1, sizeof(*all));
    if (all)
        rig->EnumerateDeviceExtensionProperties(rig->physical, NULL, &n, all);
    for (uint32_t i = 0; all && i < n; i++)
        found |= !strcmp(all[i].extensionName, name);
    free(all);
    return found;
}

/* ---- facts ---- */

static void read_properties(struct vulkan_rig *rig)
{
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceVulkan12Properties v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, .pNext = &sizes};
    VkPhysicalDeviceVulkan11Properties v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, .pNext = &v12};
    VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                     .pNext = &v11};
    VkSubgroupFeatureFlags shuffles =
        VK_SUBGROUP_FEATURE_SHUFFLE_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT;
    struct spirv_target *t = &rig->target;
    bool apart = v12.denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;

    rig->GetPhysicalDeviceProperties2(rig->physical, &p);
    t->max_threads = p.properties.limits.maxComputeWorkGroupInvocations;
    t->shared_bytes = p.properties.limits.maxComputeSharedMemorySize;
    t->push_bytes = p.properties.limits.maxPushConstantsSize;
    t->keep_special32 = v12.shaderSignedZeroInfNanPreserveFloat32;
    t->keep_special64 = v12.shaderSignedZeroInfNanPreserveFloat64;
    t->keep_denormal32 = v12.shaderDenormPreserveFloat32;
    t->keep_denormal64 = v12.shaderDenormPreserveFloat64;
    t->round_even32 = v12.shaderRoundingModeRTEFloat32;
    t->round_even64 = v12.shaderRoundingModeRTEFloat64;
    t->float16 = v12.shaderSignedZeroInfNanPreserveFloat16 && v12.shaderDenormPreserveFloat16 &&
                 v12.shaderRoundingModeRTEFloat16 && apart;
    if (!apart && t->keep_denormal32 != t->keep_denormal64)
        t->keep_denormal32 = t->keep_denormal64 = false;
    if ((v11.subgroupSupportedOperations & shuffles) == shuffles &&
        sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)
        t->subgroup = v11.subgroupSize;
}

/* Features that are there or not. */
struct optional {
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomics;
    VkPhysicalDeviceSubgroupSizeControlFeatures sizes;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloats;
    VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR layouts;
    uint32_t n;
    const char *extensions[MAX_EXTENSIONS];
};

/* Puts a struct of features in front of the chain where the device has the extension. */
static void add_extension(const struct vulkan_rig *rig, struct optional *all, const char *name,
                          void *features, void **chain)
{
    VkBaseOutStructure *structure = features;

    if (!has_extension(rig, name))
        return;
    all->extensions[all->n++] = name;
    structure->pNext = *chain;
    *chain = structure;
}

static void add_extensions(const struct vulkan_rig *rig, struct optional *all, void **chain)
{
    all->atomics.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT;
    all->sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES;
    all->matrices.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
    all->bfloats.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
    all->layouts.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR;
    add_extension(rig, all, "VK_EXT_subgroup_size_control", &all->sizes, chain);
    add_extension(rig, all, "VK_EXT_shader_atomic_float", &all->atomics, chain);
    add_extension(rig, all, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, &all->matrices, chain);
    add_extension(rig, all, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, &all->bfloats, chain);
    add_extension(rig, all, "VK_KHR_workgroup_memory_explicit_layout", &all->layouts, chain);
}

static void read_shapes(struct vulkan_rig *rig)
{
    VkCooperativeMatrixPropertiesKHR all[MAX_MATRICES] = {0};
    uint32_t n = MAX_MATRICES;

    for (uint32_t i = 0; i < MAX_MATRICES; i++)
        all[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    if (rig->GetPhysicalDeviceCooperativeMatrixPropertiesKHR(rig->physical, &n, all) < 0)
        return;
    for (uint32_t i = 0; i < n && rig->n_shapes < KIR_SHAPES; i++) {
        bool is_half = all[i].AType == VK_COMPONENT_TYPE_FLOAT16_KHR;

        if ((is_half || all[i].AType == VK_COMPONENT_TYPE_BFLOAT16_KHR) &&
            all[i].ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
            all[i].scope == VK_SCOPE_SUBGROUP_KHR)
            rig->shapes[rig->n_shapes++] =
                (struct kir_fragment_shape){.m = all[i].MSize,
                                            .n = all[i].NSize,
                                            .k = all[i].KSize,
                                            .dtype = is_half ? FRIT_F16 : FRIT_BF16,
                                            .sum = FRIT_F32};
    }
}

static bool create_device(struct vulkan_rig *rig)
{
    struct optional optional = {0};
    VkPhysicalDeviceVulkan12Features v12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan11Features v11 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &v12};
    VkPhysicalDeviceFeatures2 f = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                   .pNext = &v11};
    float priority = 1;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &f,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .ppEnabledExtensionNames = optional.extensions};

    add_extensions(rig, &optional, &v12.pNext);
    info.enabledExtensionCount = optional.n;
    rig->GetPhysicalDeviceFeatures2(rig->physical, &f);
    read_properties(rig);
    rig->target.float64 = f.features.shaderFloat64;
    rig->target.store8 = v12.storageBuffer8BitAccess;
    rig->target.store16 = v11.storageBuffer16BitAccess;
    rig->target.atomic_i64 = v12.shaderBufferInt64Atomics;
    rig->target.atomic_f32 = optional.atomics.shaderBufferFloat32AtomicAdd;
    rig->target.float16 &= v12.shaderFloat16;
    if (!optional.sizes.subgroupSizeControl || !optional.sizes.computeFullSubgroups)
        rig->target.subgroup = 0;
    rig->target.matrices =
        optional.matrices.cooperativeMatrix && v12.vulkanMemoryModel && rig->target.subgroup;
    rig->target.matrices_f16 = rig->target.matrices && v12.shaderFloat16;
    rig->target.matrices_bf16 =
        rig->target.matrices && optional.bfloats.shaderBFloat16CooperativeMatrix;
    rig->target.shares_tiles = optional.layouts.workgroupMemoryExplicitLayout16BitAccess;
    if (rig->target.matrices)
        read_shapes(rig);
    if (!f.features.shaderInt64 || !v12.bufferDeviceAddress) {
        fprintf(stderr, "vulkan: %s lacks shaderInt64 or bufferDeviceAddress\n", rig->name);
        return false;
    }
    f.features.robustBufferAccess = VK_FALSE;
    return MADE(rig->CreateDevice(rig->physical, &info, NULL, &rig->device));
}

/* ---- memory ---- */

static uint32_t host_memory(const struct vulkan_rig *rig, uint32_t types)
{
    VkMemoryPropertyFlags wanted_flags =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkPhysicalDeviceMemoryProperties p;

    rig->GetPhysicalDeviceMemoryProperties(rig->physical, &p);
    for (uint32_t i = 0; i < p.memoryTypeCount; i++) {
        if (types >> i & 1 && (p.memoryTypes[i].propertyFlags & wanted_flags) == wanted_flags)
            return i;
    }
    return 0;
}

static bool create_memory(struct vulkan_rig *rig)
{
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .size = HEAP_BYTES,
                               .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                        VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                       .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                   .pNext = &flags};
    VkBufferDeviceAddressInfo address = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO};
    VkMemoryRequirements wants;
    void *mapped;

    if (!MADE(rig->CreateBuffer(rig->device, &info, NULL, &rig->buffer)))
        return false;
    rig->GetBufferMemoryRequirements(rig->device, rig->buffer, &wants);
    memory.allocationSize = wants.size;
    memory.memoryTypeIndex = host_memory(rig, wants.memoryTypeBits);
    if (!MADE(rig->AllocateMemory(rig->device, &memory, NULL, &rig->memory)) ||
        !MADE(rig->BindBufferMemory(rig->device, rig->buffer, rig->memory, 0)) ||
        !MADE(rig->MapMemory(rig->device, rig->memory, 0, VK_WHOLE_SIZE, 0, &mapped)))
        return false;
    rig->mapped = mapped;
    address.buffer = rig->buffer;
    rig->address = rig->GetBufferDeviceAddress(rig->device, &address);
    return rig->address % SPIRV_ALIGN == 0;
}

static bool create_commands(struct vulkan_rig *rig)
{
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
    VkCommandBufferAllocateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandBufferCount = 1};

    rig->GetDeviceQueue(rig->device, 0, 0, &rig->queue);
    if (!MADE(rig->CreateCommandPool(rig->device, &pool, NULL, &rig->pool)))
        return false;
    commands.commandPool = rig->pool;
    return MADE(rig->AllocateCommandBuffers(rig->device, &commands, &rig->commands));
}

struct vulkan_rig *vulkan_open(void)
{
    struct vulkan_rig *rig = calloc(1, sizeof(*rig));

    if (!rig)
        return NULL;
    if (!open_instance(rig) || !choose_device(rig) || !create_device(rig)) {
        vulkan_close(rig);
        return NULL;
    }
#define VULKAN_INSTANCE(name)
#define VULKAN_DEVICE(name) \
    rig->name = (PFN_vk##name)rig->GetDeviceProcAddr(rig->device, "vk" #name);
#include "kernels/emit/spirv/vulkan_rig.def"
#undef VULKAN_INSTANCE
#undef VULKAN_DEVICE
    if (!create_memory(rig) || !create_commands(rig)) {
        vulkan_close(rig);
        return NULL;
    }
    return rig;
}

void vulkan_close(struct vulkan_rig *rig)
{
    if (rig->device && rig->DestroyDevice) {
        rig->DestroyCommandPool(rig->device, rig->pool, NULL);
        rig->DestroyBuffer(rig->device, rig->buffer, NULL);
        rig->FreeMemory(rig->device, rig->memory, NULL);
        rig->DestroyDevice(rig->device, NULL);
    }
    if (rig->instance)
        rig->DestroyInstance(rig->instance, NULL);
    if (rig->library)
        dlclose(rig->library);
    free(rig);
}

/* ---- running ---- */

static bool create_pipeline(struct vulkan_rig *rig, const struct spirv_code *code, uint32_t phase)
{
    VkShaderModuleCreateInfo shader = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                       .codeSize = code->n_words * 4u,
                                       .pCode = code->words};
    VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, code->push_bytes};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .pushConstantRangeCount = 1,
                                         .pPushConstantRanges = &range};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = rig->target.subgroup};
    VkComputePipelineCreateInfo pipeline = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .pName = "main"}};
    bool done;

    if (code->subgroups) {
        pipeline.stage.pNext = &size;
        pipeline.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
    if (!MADE(rig->CreateShaderModule(rig->device, &shader, NULL, &pipeline.stage.module)))
        return false;
    done = MADE(rig->CreatePipelineLayout(rig->device, &layout, NULL, &rig->layouts[phase]));
    pipeline.layout = rig->layouts[phase];
    done = done && MADE(rig->CreateComputePipelines(rig->device, VK_NULL_HANDLE, 1, &pipeline, NULL,
                                                    &rig->pipelines[phase]));
    rig->DestroyShaderModule(rig->device, pipeline.stage.module, NULL);
    return done;
}

static void record(struct vulkan_rig *rig, const struct spirv_code *code, uint32_t phase,
                   uint8_t *push, const uint32_t *grid)
{
    VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_SHADER_READ_BIT |
                                                VK_ACCESS_SHADER_WRITE_BIT |
                                                VK_ACCESS_HOST_READ_BIT};
    uint32_t half = grid[0] / 2, base[4] = {0};

    rig->CmdBindPipeline(rig->commands, VK_PIPELINE_BIND_POINT_COMPUTE, rig->pipelines[phase]);
    for (uint32_t part = 0; part < 2; part++) {
        uint32_t n = part ? grid[0] - half : half;

        base[0] = part ? half : 0;
        memcpy(push, base, SPIRV_HEAD);
        rig->CmdPushConstants(rig->commands, rig->layouts[phase], VK_SHADER_STAGE_COMPUTE_BIT, 0,
                              code->push_bytes, push);
        if (n)
            rig->CmdDispatch(rig->commands, n, grid[1], grid[2]);
    }
    rig->CmdPipelineBarrier(rig->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                            VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                            &barrier, 0, NULL, 0, NULL);
}

static bool submit(struct vulkan_rig *rig)
{
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &rig->commands};

    return MADE(rig->EndCommandBuffer(rig->commands)) &&
           MADE(rig->QueueSubmit(rig->queue, 1, &info, VK_NULL_HANDLE)) &&
           MADE(rig->QueueWaitIdle(rig->queue));
}

/* Where each argument lies in the buffer: after the block, a guard around each.  0: no room. */
static uint64_t place(const struct kir_module *module, const struct vulkan_arg *args, uint64_t *at)
{
    uint64_t end = (uint64_t)(module->n_args + module->n_params) * 8;

    for (uint32_t i = 0; i < module->n_args; i++) {
        at[i] = (end + 2 * GUARD - 1) / GUARD * GUARD + args[i].skew;
        end = at[i] + args[i].bytes;
    }
    end += GUARD;
    return end <= HEAP_BYTES ? end : 0;
}

static bool guards_kept(const struct vulkan_rig *rig, const struct kir_module *module,
                        const struct vulkan_arg *args, const uint64_t *at, uint64_t end)
{
    uint64_t from = (uint64_t)(module->n_args + module->n_params) * 8;

    for (uint32_t i = 0; i <= module->n_args; i++) {
        uint64_t to = i < module->n_args ? at[i] : end;

        for (; from < to; from++) {
            if (rig->mapped[from] != GUARD_BYTE) {
                fprintf(stderr, "vulkan: a byte before argument %u was written\n", i);
                return false;
            }
        }
        if (i < module->n_args)
            from += args[i].bytes;
    }
    return true;
}

static bool run_placed(struct vulkan_rig *rig, const struct kir_module *module,
                       const struct spirv_code *code, uint8_t *push, const uint32_t (*grid)[3])
{
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    size_t words = (module->n_args + module->n_params) * 8u;
    bool done = MADE(rig->BeginCommandBuffer(rig->commands, &begin));

    for (uint32_t i = 0; done && i < module->n_phases; i++) {
        if (code[i].block_is_pushed)
            memcpy(push + SPIRV_HEAD, rig->mapped, words);
        else
            memcpy(push + SPIRV_HEAD, &rig->address, 8);
        done = create_pipeline(rig, &code[i], i);
        if (done)
            record(rig, &code[i], i, push, grid[i]);
    }
    done = submit(rig) && done;
    for (uint32_t i = 0; i < module->n_phases; i++) {
        rig->DestroyPipeline(rig->device, rig->pipelines[i], NULL);
        rig->DestroyPipelineLayout(rig->device, rig->layouts[i], NULL);
        rig->pipelines[i] = VK_NULL_HANDLE;
        rig->layouts[i] = VK_NULL_HANDLE;
    }
    return done;
}

bool vulkan_run(struct vulkan_rig *rig, const struct kir_module *module,
                const struct spirv_code *code, const uint64_t *words, const struct vulkan_arg *args,
                const uint32_t (*grid)[3])
{
    uint64_t *at = calloc(module->n_args + 1, sizeof(*at)), *block = (void *)rig->mapped, end;
    uint8_t *push = calloc(1, SPIRV_HEAD + 8u * (module->n_args + module->n_params + 1));
    bool done;

    if (!at || !push || module->n_phases > MAX_PHASES) {
        free(at);
        free(push);
        return false;
    }
    end = place(module, args, at);
    done = end != 0;
    if (done)
        memset(rig->mapped, GUARD_BYTE, end);
    for (uint32_t i = 0; done && i < module->n_args; i++) {
        memcpy(rig->mapped + at[i], args[i].data, args[i].bytes);
        block[i] = rig->address + at[i];
    }
    if (done && module->n_params)
        memcpy(block + module->n_args, words, module->n_params * 8u);
    done = done && run_placed(rig, module, code, push, grid) &&
           guards_kept(rig, module, args, at, end);
    for (uint32_t i = 0; done && i < module->n_args; i++)
        memcpy(args[i].data, rig->mapped + at[i], args[i].bytes);
    free(at);
    free(push);
    return done;
}
