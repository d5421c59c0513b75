/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_loader.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

__attribute__((visibility("default"))) struct fake_loader fake_loader;

/* name, parameters, arguments, result when it fails */
#define FAKE_CALLS                                                                                 \
    FAKE(CreateInstance,                                                                           \
         (const VkInstanceCreateInfo *a, const VkAllocationCallbacks *b, VkInstance *c),           \
         (a, b, c), VK_ERROR_OUT_OF_HOST_MEMORY)                                                   \
    FAKE(EnumeratePhysicalDevices, (VkInstance a, uint32_t * b, VkPhysicalDevice * c), (a, b, c),  \
         VK_ERROR_INITIALIZATION_FAILED)                                                           \
    FAKE(EnumerateDeviceExtensionProperties,                                                       \
         (VkPhysicalDevice a, const char *b, uint32_t *c, VkExtensionProperties *d), (a, b, c, d), \
         VK_ERROR_OUT_OF_HOST_MEMORY)                                                              \
    FAKE(CreateDevice,                                                                             \
         (VkPhysicalDevice a, const VkDeviceCreateInfo *b, const VkAllocationCallbacks *c,         \
          VkDevice *d),                                                                            \
         (a, b, c, d), VK_ERROR_INITIALIZATION_FAILED)                                             \
    FAKE(CreateBuffer,                                                                             \
         (VkDevice a, const VkBufferCreateInfo *b, const VkAllocationCallbacks *c, VkBuffer *d),   \
         (a, b, c, d), VK_ERROR_OUT_OF_HOST_MEMORY)                                                \
    FAKE(AllocateMemory,                                                                           \
         (VkDevice a, const VkMemoryAllocateInfo *b, const VkAllocationCallbacks *c,               \
          VkDeviceMemory *d),                                                                      \
         (a, b, c, d), VK_ERROR_OUT_OF_DEVICE_MEMORY)                                              \
    FAKE(BindBufferMemory, (VkDevice a, VkBuffer b, VkDeviceMemory c, VkDeviceSize d),             \
         (a, b, c, d), VK_ERROR_OUT_OF_DEVICE_MEMORY)                                              \
    FAKE(MapMemory,                                                                                \
         (VkDevice a, VkDeviceMemory b, VkDeviceSize c, VkDeviceSize d, VkMemoryMapFlags e,        \
          void **f),                                                                               \
         (a, b, c, d, e, f), VK_ERROR_MEMORY_MAP_FAILED)                                           \
    FAKE(CreateSemaphore,                                                                          \
         (VkDevice a, const VkSemaphoreCreateInfo *b, const VkAllocationCallbacks *c,              \
          VkSemaphore *d),                                                                         \
         (a, b, c, d), VK_ERROR_OUT_OF_HOST_MEMORY)                                                \
    FAKE(CreateCommandPool,                                                                        \
         (VkDevice a, const VkCommandPoolCreateInfo *b, const VkAllocationCallbacks *c,            \
          VkCommandPool *d),                                                                       \
         (a, b, c, d), VK_ERROR_OUT_OF_HOST_MEMORY)                                                \
    FAKE(AllocateCommandBuffers,                                                                   \
         (VkDevice a, const VkCommandBufferAllocateInfo *b, VkCommandBuffer *c), (a, b, c),        \
         VK_ERROR_OUT_OF_DEVICE_MEMORY)                                                            \
    FAKE(ResetCommandPool, (VkDevice a, VkCommandPool b, VkCommandPoolResetFlags c), (a, b, c),    \
         VK_ERROR_OUT_OF_DEVICE_MEMORY)                                                            \
    FAKE(BeginCommandBuffer, (VkCommandBuffer a, const VkCommandBufferBeginInfo *b), (a, b),       \
         VK_ERROR_OUT_OF_HOST_MEMORY)                                                              \
    FAKE(EndCommandBuffer, (VkCommandBuffer a), (a), VK_ERROR_OUT_OF_HOST_MEMORY)                  \
    FAKE(QueueSubmit, (VkQueue a, uint32_t b, const VkSubmitInfo *c, VkFence d), (a, b, c, d),     \
         VK_ERROR_OUT_OF_DEVICE_MEMORY)                                                            \
    FAKE(CreatePipelineLayout,                                                                     \
         (VkDevice a, const VkPipelineLayoutCreateInfo *b, const VkAllocationCallbacks *c,         \
          VkPipelineLayout *d),                                                                    \
         (a, b, c, d), VK_ERROR_OUT_OF_HOST_MEMORY)                                                \
    FAKE(CreatePipelineCache,                                                                      \
         (VkDevice a, const VkPipelineCacheCreateInfo *b, const VkAllocationCallbacks *c,          \
          VkPipelineCache *d),                                                                     \
         (a, b, c, d), VK_ERROR_OUT_OF_HOST_MEMORY)                                                \
    FAKE(CreateShaderModule,                                                                       \
         (VkDevice a, const VkShaderModuleCreateInfo *b, const VkAllocationCallbacks *c,           \
          VkShaderModule *d),                                                                      \
         (a, b, c, d), VK_ERROR_OUT_OF_HOST_MEMORY)                                                \
    FAKE(CreateComputePipelines,                                                                   \
         (VkDevice a, VkPipelineCache b, uint32_t c, const VkComputePipelineCreateInfo *d,         \
          const VkAllocationCallbacks *e, VkPipeline *f),                                          \
         (a, b, c, d, e, f), VK_ERROR_OUT_OF_DEVICE_MEMORY)                                        \
    FAKE(WaitSemaphores, (VkDevice a, const VkSemaphoreWaitInfo *b, uint64_t c), (a, b, c),        \
         VK_ERROR_OUT_OF_HOST_MEMORY)

static struct {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
    PFN_vkGetDeviceProcAddr GetDeviceProcAddr;
    PFN_vkGetSemaphoreCounterValue GetSemaphoreCounterValue;
    PFN_vkCmdPipelineBarrier CmdPipelineBarrier;
    PFN_vkGetPhysicalDeviceProperties2 GetPhysicalDeviceProperties2;
#define FAKE(name, parameters, arguments, failure) PFN_vk##name name;
    FAKE_CALLS
#undef FAKE
} real;

/* The result of a call that is to fail, else VK_SUCCESS. */
static VkResult injected_result(const char *name, VkResult default_result)
{
    const char *failing = fake_loader.failing_name;

    if (strcmp(name, "QueueSubmit") == 0)
        fake_loader.submissions++;
    if (++fake_loader.calls != fake_loader.failing_call && (!failing || strcmp(name, failing) != 0))
        return VK_SUCCESS;
    fake_loader.failing_name = NULL;
    fake_loader.failed_name = name;
    return fake_loader.result ? fake_loader.result : default_result;
}

#define FAKE(name, parameters, arguments, failure)         \
    static VKAPI_ATTR VkResult VKAPI_CALL name parameters  \
    {                                                      \
        VkResult result = injected_result(#name, failure); \
                                                           \
        return result ? result : real.name arguments;      \
    }
FAKE_CALLS
#undef FAKE

static VKAPI_ATTR VkResult VKAPI_CALL GetSemaphoreCounterValue(VkDevice device, VkSemaphore which,
                                                               uint64_t *value)
{
    VkResult result = real.GetSemaphoreCounterValue(device, which, value);

    if (fake_loader.is_held && *value > fake_loader.held_at)
        *value = fake_loader.held_at;
    return fake_loader.is_lost ? VK_ERROR_DEVICE_LOST : result;
}

/* Before WaitSemaphores: waits as long as the timeline is held. */
static VKAPI_ATTR VkResult VKAPI_CALL wait_while_held(VkDevice device,
                                                      const VkSemaphoreWaitInfo *info,
                                                      uint64_t timeout)
{
    const struct timespec step = {0, 100000};

    for (uint64_t ns = 0; fake_loader.is_held && *info->pValues > fake_loader.held_at;
         ns += 100000) {
        if (ns >= timeout)
            return VK_TIMEOUT;
        nanosleep(&step, NULL);
    }
    return WaitSemaphores(device, info, timeout);
}

static VKAPI_ATTR void VKAPI_CALL CmdPipelineBarrier(
    VkCommandBuffer cmds, VkPipelineStageFlags before, VkPipelineStageFlags after,
    VkDependencyFlags flags, uint32_t n_memory, const VkMemoryBarrier *memory, uint32_t n_buffers,
    const VkBufferMemoryBarrier *buffers, uint32_t n_images, const VkImageMemoryBarrier *images)
{
    fake_loader.barriers++;
    real.CmdPipelineBarrier(cmds, before, after, flags, n_memory, memory, n_buffers, buffers,
                            n_images, images);
}

static VKAPI_ATTR void VKAPI_CALL GetPhysicalDeviceProperties2(VkPhysicalDevice device,
                                                               VkPhysicalDeviceProperties2 *out)
{
    VkPhysicalDeviceLimits *limits = &out->properties.limits;

    real.GetPhysicalDeviceProperties2(device, out);
    if (fake_loader.small_limits) {
        limits->maxPushConstantsSize = 32;
        limits->maxComputeWorkGroupCount[0] = 3;
    }
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice device,
                                                                  const char *name);

/* The function that replaces the real one, `found`; NULL: none does. */
static PFN_vkVoidFunction replacement(const char *name, PFN_vkVoidFunction found)
{
    if (strcmp(name, "vkWaitSemaphores") == 0) {
        real.WaitSemaphores = (PFN_vkWaitSemaphores)found;
        return (PFN_vkVoidFunction)wait_while_held;
    }
#define REPLACE(which)                     \
    if (strcmp(name, "vk" #which) == 0) {  \
        real.which = (PFN_vk##which)found; \
        return (PFN_vkVoidFunction)which;  \
    }
#define FAKE(which, parameters, arguments, failure) REPLACE(which)
    FAKE_CALLS
    REPLACE(GetDeviceProcAddr)
    REPLACE(GetSemaphoreCounterValue)
    REPLACE(CmdPipelineBarrier)
    REPLACE(GetPhysicalDeviceProperties2)
    return NULL;
}

static PFN_vkVoidFunction choose(const char *name, PFN_vkVoidFunction found)
{
    PFN_vkVoidFunction ours = found ? replacement(name, found) : NULL;

    return ours ? ours : found;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL GetDeviceProcAddr(VkDevice device, const char *name)
{
    return choose(name, real.GetDeviceProcAddr(device, name));
}

__attribute__((visibility("default"))) VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL
vkGetInstanceProcAddr(VkInstance instance, const char *name);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                               const char *name)
{
    if (!real.GetInstanceProcAddr) {
        void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);

        if (!library)
            return NULL;
        *(void **)&real.GetInstanceProcAddr = dlsym(library, "vkGetInstanceProcAddr");
    }
    return choose(name, real.GetInstanceProcAddr(instance, name));
}
