/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the Vulkan loader and creates the VkInstance.  A machine without the loader, without a
 * Vulkan driver or with versions that are too old has no adapters; that is not an error, and the
 * reason is kept in `unavailable_text`. */
#include "loader.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plugin.h"

static const char validation_layer[] = "VK_LAYER_KHRONOS_validation";

/* Sets the reason why there are no adapters. */
static FRIT_PRINTF(3, 4) void set_unavailable(struct instance *instance, uint32_t reason,
                                              const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(instance->unavailable_text, sizeof instance->unavailable_text, format, args);
    va_end(args);
    instance->unavailable_reason = reason;
}

static void open_library(struct instance *instance)
{
    char file[128];
    struct link_map *map = NULL;

    snprintf(file, sizeof file, "%.*s", (int)instance->options.loader.len,
             instance->options.loader.ptr);
    instance->library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!instance->library) {
        const char *text = dlerror();

        set_unavailable(instance, FRIT_REASON_NO_RUNTIME, "%s", text ? text : file);
        return;
    }
    if (!dlinfo(instance->library, RTLD_DI_LINKMAP, &map) && map)
        snprintf(instance->library_path, sizeof instance->library_path, "%s", map->l_name);
    *(void **)&instance->global.GetInstanceProcAddr =
        dlsym(instance->library, "vkGetInstanceProcAddr");
    if (!instance->global.GetInstanceProcAddr)
        set_unavailable(instance, FRIT_REASON_RUNTIME_TOO_OLD, "%s has no vkGetInstanceProcAddr",
                        file);
}

static void load_global_functions(struct instance *instance)
{
    const char *missing = NULL;

#define VULKAN_GLOBAL(name)                                                                       \
    instance->global.name = (PFN_vk##name)instance->global.GetInstanceProcAddr(NULL, "vk" #name); \
    missing = instance->global.name ? missing : "vk" #name;
#include "syms.def"
    if (missing)
        set_unavailable(instance, FRIT_REASON_RUNTIME_TOO_OLD, "%s has no %s",
                        instance->library_path, missing);
}

const char *loader_load_instance(struct instance *instance)
{
    const char *missing = NULL;

#define VULKAN_INSTANCE(name)                                                             \
    instance->api.name =                                                                  \
        (PFN_vk##name)instance->global.GetInstanceProcAddr(instance->handle, "vk" #name); \
    missing = instance->api.name ? missing : "vk" #name;
#define VULKAN_DEBUG(name) \
    instance->api.name =   \
        (PFN_vk##name)instance->global.GetInstanceProcAddr(instance->handle, "vk" #name);
#define VULKAN_MATRIX VULKAN_DEBUG
#include "syms.def"
    return missing;
}

static void load_instance_functions(struct instance *instance)
{
    const char *missing = loader_load_instance(instance);

    if (missing)
        set_unavailable(instance, FRIT_REASON_RUNTIME_TOO_OLD, "%s has no %s",
                        instance->library_path, missing);
}

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data,
                                                 void *self)
{
    const struct instance *instance = self;
    bool error = severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;

    (void)types;
    instance->plug.core->log(instance->plug.host->self, error ? FRIT_LOG_ERROR : FRIT_LOG_WARN,
                             FRIT_STR("validate"),
                             (frit_str){data->pMessage, strlen(data->pMessage)});
    return VK_FALSE;
}

static bool has_validation(struct instance *instance)
{
    VkLayerProperties layers[64];
    uint32_t n = sizeof layers / sizeof *layers;

    if (instance->global.EnumerateInstanceLayerProperties(&n, layers) < 0)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(layers[i].layerName, validation_layer) == 0)
            return true;
    return false;
}

static VkResult create_instance(struct instance *instance)
{
    static const VkValidationFeatureEnableEXT checks[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    static const char *const layers[] = {validation_layer};
    static const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .pEngineName = "frit",
                                           .apiVersion = VK_API_VERSION_1_3};
    const VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = instance};
    const VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                              .pNext = &messenger,
                                              .enabledValidationFeatureCount = 1,
                                              .pEnabledValidationFeatures = checks};
    const bool validate = instance->options.validate;
    const VkInstanceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                         .pNext = validate ? &features : NULL,
                                         .pApplicationInfo = &application,
                                         .enabledLayerCount = validate,
                                         .ppEnabledLayerNames = layers,
                                         .enabledExtensionCount = validate,
                                         .ppEnabledExtensionNames = extensions};
    VkResult result = instance->global.CreateInstance(&create, NULL, &instance->handle);

    if (result)
        return result;
    load_instance_functions(instance);
    if (validate && instance->api.CreateDebugUtilsMessengerEXT)
        result = instance->api.CreateDebugUtilsMessengerEXT(instance->handle, &messenger, NULL,
                                                            &instance->messenger);
    return result;
}

/* ---- pinned libraries ---- */

enum { MAX_ADDED = 64, PATH_BYTES = 256 };

/* Libraries that are loaded into the process while the VkInstance is created. */
struct libraries {
    uint32_t before; /* number of libraries at the start */
    uint32_t seen;   /* by the present walk over all libraries */
    uint32_t n;      /* entries of `added` */
    char added[MAX_ADDED][PATH_BYTES];
};

static int count_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct libraries *libraries = arg;

    (void)info;
    (void)size;
    libraries->before++;
    return 0;
}

static int add_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct libraries *libraries = arg;
    const size_t bytes = strlen(info->dlpi_name) + 1;

    (void)size;
    if (libraries->seen++ >= libraries->before && libraries->n < MAX_ADDED && bytes <= PATH_BYTES)
        memcpy(libraries->added[libraries->n++], info->dlpi_name, bytes);
    return 0;
}

/* Keeps the added libraries in the process.  NVIDIA's Vulkan driver allocates static thread-local
 * storage whenever it is loaded, and the C library does not free that when it is unloaded; after
 * about twenty loads there is none left, and loading fails. */
static void pin_libraries(struct libraries *libraries)
{
    dl_iterate_phdr(add_library, libraries);
    for (uint32_t i = 0; i < libraries->n; i++) {
        void *library =
            dlopen(libraries->added[i], RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);

        if (library)
            dlclose(library);
    }
}

/* ---- open and close ---- */

frit_status loader_open(struct instance *instance, frit_err *err)
{
    struct libraries libraries = {0};
    uint32_t version = 0;
    VkResult result;

    open_library(instance);
    if (!instance->unavailable_reason)
        load_global_functions(instance);
    if (instance->unavailable_reason)
        return FRIT_OK;
    instance->global.EnumerateInstanceVersion(&version);
    if (version < VK_API_VERSION_1_2)
        set_unavailable(instance, FRIT_REASON_RUNTIME_TOO_OLD,
                        "%s supports Vulkan %u.%u only; 1.2 is needed", instance->library_path,
                        VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
    else if (instance->options.validate && !has_validation(instance))
        set_unavailable(
            instance, FRIT_REASON_NO_RUNTIME,
            "option.validate needs %s, which is not installed (Debian: vulkan-validationlayers)",
            validation_layer);
    if (instance->unavailable_reason)
        return FRIT_OK;
    dl_iterate_phdr(count_library, &libraries);
    result = create_instance(instance);
    pin_libraries(&libraries);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
        set_unavailable(instance, FRIT_REASON_NO_DEVICE, "%s finds no Vulkan driver",
                        instance->library_path);
        return FRIT_OK;
    }
    return result ? vulkan_fail(instance, err, result, "creating the Vulkan instance") : FRIT_OK;
}

void loader_close(struct instance *instance)
{
    if (instance->messenger)
        instance->api.DestroyDebugUtilsMessengerEXT(instance->handle, instance->messenger, NULL);
    if (instance->handle && instance->api.DestroyInstance)
        instance->api.DestroyInstance(instance->handle, NULL);
    instance->messenger = VK_NULL_HANDLE;
    instance->handle = NULL;
}
