/* SPDX-License-Identifier: Apache-2.0 */
/* Adoption of an application's VkDevice: the driver computes on it and leaves it usable; missing
 * native objects and features are named. */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "host/api/plugin_rig.h"

enum { N = 1000, SKIPPED = 77, NATIVES = 6 };

/* The Vulkan objects of an application. */
struct program {
    void *library;
    PFN_vkGetInstanceProcAddr proc;
    VkInstance instance;
    VkPhysicalDevice physical;
    uint32_t family;
    VkPhysicalDeviceFeatures2 features; /* all of the device, except those that a test clears */
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceVulkan13Features v13;
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic;
    VkDevice device;
    VkQueue queue;
};

#define CALL(program, name) ((PFN_vk##name)(program)->proc((program)->instance, "vk" #name))

static bool create_instance(struct program *p)
{
    const VkApplicationInfo info = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                    .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                         .pApplicationInfo = &info};
    uint32_t n = 1;

    *p = (struct program){.library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!p->library)
        return false;
    *(void **)&p->proc = dlsym(p->library, "vkGetInstanceProcAddr");
    if (CALL(p, CreateInstance)(&create, NULL, &p->instance))
        return false;
    return CALL(p, EnumeratePhysicalDevices)(p->instance, &n, &p->physical) >= 0 && n == 1;
}

static bool has_extension(const struct program *p, const char *name)
{
    VkExtensionProperties all[512];
    uint32_t n = 512;
    bool found = false;

    CALL(p, EnumerateDeviceExtensionProperties)(p->physical, NULL, &n, all);
    for (uint32_t i = 0; i < n; i++)
        found |= strcmp(all[i].extensionName, name) == 0;
    return found;
}

static void read_features(struct program *p, bool atomic)
{
    p->features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    p->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    p->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    p->v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    p->atomic.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT;
    p->features.pNext = &p->v11;
    p->v11.pNext = &p->v12;
    p->v12.pNext = &p->v13;
    p->v13.pNext = atomic ? &p->atomic : NULL;
    CALL(p, GetPhysicalDeviceFeatures2)(p->physical, &p->features);
    p->features.features.robustBufferAccess = VK_FALSE;
}

static void find_family(struct program *p)
{
    VkQueueFamilyProperties families[32];
    uint32_t n = 32;

    CALL(p, GetPhysicalDeviceQueueFamilyProperties)(p->physical, &n, families);
    while (p->family < n && !(families[p->family].queueFlags & VK_QUEUE_COMPUTE_BIT))
        p->family++;
}

/* `without`: a feature that is not enabled; NULL: all are. */
static void create_device(struct program *p, VkBool32 *without)
{
    const char *atomic = VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME;
    const bool has_atomic = has_extension(p, atomic);
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = p->family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    VkDeviceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                 .pNext = &p->features,
                                 .queueCreateInfoCount = 1,
                                 .pQueueCreateInfos = &queue,
                                 .enabledExtensionCount = has_atomic,
                                 .ppEnabledExtensionNames = &atomic};

    read_features(p, has_atomic);
    if (without)
        *without = VK_FALSE;
    assert_int_equal(CALL(p, CreateDevice)(p->physical, &create, NULL, &p->device), VK_SUCCESS);
    CALL(p, GetDeviceQueue)(p->device, p->family, 0, &p->queue);
}

/* The application's VkDevice still works. */
static void expect_alive(const struct program *p)
{
    const VkBufferCreateInfo create = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                       .size = 256,
                                       .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    const VkSubmitInfo nothing = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
    VkBuffer buffer;

    assert_int_equal(CALL(p, CreateBuffer)(p->device, &create, NULL, &buffer), VK_SUCCESS);
    CALL(p, DestroyBuffer)(p->device, buffer, NULL);
    assert_int_equal(CALL(p, QueueSubmit)(p->queue, 1, &nothing, VK_NULL_HANDLE), VK_SUCCESS);
    assert_int_equal(CALL(p, DeviceWaitIdle)(p->device), VK_SUCCESS);
}

static void destroy_device(struct program *p)
{
    CALL(p, DestroyDevice)(p->device, NULL);
    p->device = NULL;
}

static void destroy_instance(struct program *p)
{
    if (p->instance)
        CALL(p, DestroyInstance)(p->instance, NULL);
}

/* `omitted`: index of a native object that is not passed; NATIVES: all are. */
static frit_status adopt(frit_host *host, struct program *p, int omitted, frit_device **out,
                         frit_err *err)
{
    frit_native natives[NATIVES] = {
        {"vk.instance", p->instance},    {"vk.physical_device", p->physical},
        {"vk.device", p->device},        {"vk.queue", p->queue},
        {"vk.queue_family", &p->family}, {"vk.features", &p->features}};
    const frit_device_options options = {.struct_size = sizeof(options),
                                         .natives = natives,
                                         .n_natives = omitted < NATIVES ? NATIVES - 1 : NATIVES};

    if (omitted < NATIVES)
        natives[omitted] = natives[NATIVES - 1];
    return frit_device_open_with(host, "vulkan:0", &options, out, err);
}

static void compute(frit_device *device)
{
    float in[N], out[N];
    frit_tensor *x;

    for (int i = 0; i < N; i++)
        in[i] = (float)i;
    x = frit_from_host(device, FRIT_F32, FRIT_SHAPE(N), in, sizeof(in));
    assert_int_equal(
        frit_read(frit_take(frit_add(frit_mul(x, x), frit_take(x))), out, sizeof(out), NULL),
        FRIT_OK);
    for (int i = 0; i < N; i++)
        assert_true(out[i] == (float)(i * i + i));
}

static void open_host(frit_host **host)
{
    static const frit_setting settings[] = {{"fusion", "store", "none"},
                                            {"frit", "fallback", "none"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 2};

    assert_int_equal(frit_host_open(&params, host, NULL), FRIT_OK);
}

static void computes_on_the_applications_device(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct program *p = *state;
    frit_device *adopted, *own;
    frit_host *host;

    open_host(&host);
    create_device(p, NULL);
    if (adopt(host, p, NATIVES, &adopted, &err))
        fail_msg("%s", err.text);
    compute(adopted);
    assert_int_equal(frit_device_open(host, "vulkan:0", &own, &err), FRIT_OK);
    assert_ptr_not_equal(own, adopted);
    compute(own);
    compute(adopted);
    frit_device_close(adopted);
    expect_alive(p);
    assert_int_equal(adopt(host, p, NATIVES, &adopted, &err),
                     FRIT_OK); /* it can be adopted again */
    compute(adopted);
    frit_host_close(host);
    expect_alive(p);
    destroy_device(p);
}

static void missing_natives_are_named(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    static const char *const names[NATIVES] = {"vk.instance", "vk.physical_device", "vk.device",
                                               "vk.queue",    "vk.queue_family",    "vk.features"};
    int window;
    const frit_native unknown = {"vk.window", &window};
    const frit_device_options options = {
        .struct_size = sizeof(options), .natives = &unknown, .n_natives = 1};
    struct program *p = *state;
    frit_device *device;
    frit_host *host;

    open_host(&host);
    create_device(p, NULL);
    for (int i = 0; i < NATIVES - 1; i++) {
        assert_int_equal(adopt(host, p, i, &device, &err), FRIT_INVALID);
        assert_null(device);
        assert_non_null(strstr(err.text, names[i]));
    }
    assert_int_equal(frit_device_open_with(host, "vulkan:0", &options, &device, &err),
                     FRIT_UNSUPPORTED);
    assert_non_null(strstr(err.text, "'vk.window'"));
    p->family = 1000;
    assert_int_equal(adopt(host, p, NATIVES, &device, &err), FRIT_INVALID);
    assert_non_null(strstr(err.text, "'vk.queue_family' is 1000"));
    p->family = 0;
    find_family(p);
    expect_alive(p);
    destroy_device(p);
    frit_host_close(host);
}

static void missing_features_are_named(void **state)
{
    frit_err err = {.struct_size = sizeof(err)};
    struct program *p = *state;
    const struct {
        const char *name;
        VkBool32 *feature;
    } rows[] = {{"shaderInt64", &p->features.features.shaderInt64},
                {"timelineSemaphore", &p->v12.timelineSemaphore},
                {"bufferDeviceAddress", &p->v12.bufferDeviceAddress},
                {"storageBuffer16BitAccess", &p->v11.storageBuffer16BitAccess}};
    frit_device *device;
    frit_host *host;

    open_host(&host);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        create_device(p, rows[i].feature);
        assert_int_equal(adopt(host, p, NATIVES, &device, &err), FRIT_UNSUPPORTED);
        assert_non_null(strstr(err.text, rows[i].name));
        expect_alive(p);
        destroy_device(p);
    }
    frit_host_close(host);
}

static struct program program;

static int use_program(void **state)
{
    *state = &program;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(computes_on_the_applications_device, use_program),
        cmocka_unit_test_setup(missing_natives_are_named, use_program),
        cmocka_unit_test_setup(missing_features_are_named, use_program),
    };
    int status = SKIPPED;

    if (create_instance(&program)) {
        find_family(&program);
        status = cmocka_run_group_tests(tests, NULL, NULL);
    }
    destroy_instance(&program);
    return status;
}
