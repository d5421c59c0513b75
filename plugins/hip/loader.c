/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's libraries stay in the process once they are opened: their own threads and handlers
 * do not survive an unload. */
#include "loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin.h"
#include "vendor.h"

/* Sets the reason why there are no adapters. */
static FRIT_PRINTF(3, 4) void set_unavailable(struct instance *instance, uint32_t reason,
                                              const char *format, ...)
{
    va_list args;

    if (instance->unavailable_reason)
        return;
    va_start(args, format);
    vsnprintf(instance->unavailable_text, sizeof instance->unavailable_text, format, args);
    va_end(args);
    instance->unavailable_reason = reason;
}

/* Opens the first of `names`, or only `chosen` if it is not empty.  "" is the library `same`.  The
 * loader's message about the first name that fails is in `why`. */
static void *open_first(frit_str chosen, const char *const *names, void *same, char *path,
                        size_t path_bytes, char *why, size_t why_bytes)
{
    char file[256];
    const char *const only[] = {file, NULL};
    struct link_map *map = NULL;
    void *library = NULL;

    snprintf(file, sizeof file, "%.*s", (int)chosen.len, chosen.ptr ? chosen.ptr : "");
    why[0] = 0;
    for (const char *const *name = chosen.len ? only : names; *name && !library; name++) {
        library = **name ? dlopen(*name, RTLD_NOW | RTLD_LOCAL) : same;
        if (!library && !why[0]) {
            const char *text = dlerror();

            snprintf(why, why_bytes, "%s", text ? text : *name);
        }
    }
    if (library && !dlinfo(library, RTLD_DI_LINKMAP, &map) && map)
        snprintf(path, path_bytes, "%s", map->l_name);
    return library;
}

static void *find(void *library, const char *hip, const char *cuda)
{
    const char *name = vendor.dialect == CTEXT_HIP ? hip : cuda;

    return *name ? dlsym(library, name) : NULL;
}

/* The name of the first function that the library lacks; NULL: it has all. */
static const char *load_runtime(struct api *api, void *library)
{
    const char *missing = NULL;

#define RUNTIME(member, hip, cuda, ...)                \
    *(void **)&api->member = find(library, hip, cuda); \
    if (!api->member && !missing)                      \
        missing = vendor.dialect == CTEXT_HIP ? (hip) : (cuda);
#define OPTIONAL(member, hip, cuda, ...) *(void **)&api->member = find(library, hip, cuda);
#include "syms.def"
    return missing;
}

static const char *load_compiler(struct api *api, void *library)
{
    const char *missing = NULL;

#define COMPILER(member, hip, cuda, ...)               \
    *(void **)&api->member = find(library, hip, cuda); \
    if (!api->member && !missing)                      \
        missing = vendor.dialect == CTEXT_HIP ? (hip) : (cuda);
#include "syms.def"
    return missing;
}

static void *open_runtime(struct instance *instance)
{
    char why[200];
    void *library =
        open_first(instance->options.library, vendor.libraries, NULL, instance->library_path,
                   sizeof instance->library_path, why, sizeof why);
    const char *missing = library ? load_runtime(&instance->api, library) : NULL;

    if (!library)
        set_unavailable(instance, FRIT_REASON_NO_RUNTIME, "%s; %s", why, vendor.hint);
    else if (missing)
        set_unavailable(instance, FRIT_REASON_RUNTIME_TOO_OLD, "%s has no %s; %s",
                        instance->library_path, missing, vendor.hint);
    return library;
}

/* A runtime whose library has the compiler too comes first in the list of compilers. */
static void open_compiler(struct instance *instance, void *runtime)
{
    const char *const *names = vendor.compilers;
    const char *missing;
    char why[200];
    void *library;

    if (!**names && load_compiler(&instance->api, runtime))
        names++;
    library = open_first(instance->options.compiler, names, runtime, instance->compiler_path,
                         sizeof instance->compiler_path, why, sizeof why);
    missing = library ? load_compiler(&instance->api, library) : NULL;
    if (!library)
        set_unavailable(instance, FRIT_REASON_NO_RUNTIME,
                        "the run-time compiler is missing: %s; %s", why, vendor.hint);
    else if (missing)
        set_unavailable(instance, FRIT_REASON_RUNTIME_TOO_OLD, "%s has no %s; %s",
                        instance->compiler_path, missing, vendor.hint);
}

/* Why the runtime finds no device: most often it may not open the device file. */
static void explain_init(struct instance *instance, gpu_result result)
{
    const char *visible = getenv(vendor.visible_variable);
    const bool exists = access(vendor.device_file, F_OK) == 0;

    if (exists && access(vendor.device_file, R_OK | W_OK) != 0)
        set_unavailable(instance, FRIT_REASON_NO_PERMISSION,
                        "this user may not open %s; add the user to the group that owns it",
                        vendor.device_file);
    else if (visible)
        set_unavailable(instance, FRIT_REASON_NO_DEVICE, "%s finds no device; %s is '%s'",
                        instance->library_path, vendor.visible_variable, visible);
    else if (result == GPU_NO_DEVICE || result == GPU_NO_SUCH_DEVICE || result == GPU_SUCCESS)
        set_unavailable(instance, FRIT_REASON_NO_DEVICE, "%s finds no device",
                        instance->library_path);
    else
        set_unavailable(instance, FRIT_REASON_RUNTIME_TOO_OLD,
                        "%s cannot be used: %s (error %d); %s", instance->library_path,
                        hip_error_text(result), result, vendor.hint);
}

/* Whether the kernel says that there is no device: to open a runtime takes most of the time in
 * which a process starts.  A runtime that an option names is opened whatever there is. */
static bool has_no_device(struct instance *instance)
{
    if (instance->options.library.len || !vendor.other_file ||
        access(vendor.device_file, F_OK) == 0 || errno != ENOENT ||
        access(vendor.other_file, F_OK) == 0)
        return false;
    set_unavailable(instance, FRIT_REASON_NO_DEVICE,
                    "there is no %s: no GPU, or its kernel driver is not loaded",
                    vendor.device_file);
    return true;
}

void loader_open(struct instance *instance)
{
    struct api *api = &instance->api;
    gpu_result result;
    int count = 0;
    void *runtime;

    if (has_no_device(instance))
        return;
    runtime = open_runtime(instance);
    if (!instance->unavailable_reason)
        open_compiler(instance, runtime);
    if (instance->unavailable_reason)
        return;
    result = api->Init(0);
    if (!result)
        result = api->DeviceGetCount(&count);
    if (result || count <= 0) {
        explain_init(instance, result);
        return;
    }
    (void)api->DriverGetVersion(&instance->runtime_version);
    (void)api->Version(&instance->compiler_version[0], &instance->compiler_version[1]);
    snprintf(instance->versions, sizeof instance->versions, "%d, compiler %d.%d",
             instance->runtime_version, instance->compiler_version[0],
             instance->compiler_version[1]);
    instance->n_found = (uint32_t)count;
    snprintf(instance->compiler_text, sizeof instance->compiler_text, "%s %d.%d",
             vendor.compiler_name, instance->compiler_version[0], instance->compiler_version[1]);
    instance->is_loaded = true;
}
