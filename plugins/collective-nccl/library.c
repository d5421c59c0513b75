/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- copies in the process ---- */

struct search {
    const char *stem, *chosen; /* file name */
    char found[LIBRARY_PATH];
};

static bool same_file(const char *a, const char *b)
{
    char real[2][PATH_MAX];

    return realpath(a, real[0]) && realpath(b, real[1]) && strcmp(real[0], real[1]) == 0;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct search *search = arg;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;

    (void)size;
    if (strncmp(name, search->stem, strlen(search->stem)) != 0 ||
        same_file(info->dlpi_name, search->chosen))
        return 0;
    snprintf(search->found, sizeof search->found, "%s", info->dlpi_name);
    return 1;
}

/* Two copies in one process share sockets, environment and devices, but know nothing of each other.
 */
static bool find_other_copy(const struct vendor *vendor, struct search *search, const char *chosen)
{
    *search = (struct search){.stem = vendor->stem, .chosen = chosen};
    return dl_iterate_phdr(look_at, search) != 0;
}

/* ---- opening ---- */

/* The first of `names` or, if it is not empty, `chosen`.  By its name alone the loader finds a copy
 * that is in the process already. */
static void *open_first(const char *chosen, const char *const *names, char *why, size_t why_bytes)
{
    const char *const only[] = {chosen, NULL};
    void *library = NULL;

    why[0] = 0;
    for (const char *const *name = *chosen ? only : names; *name && !library; name++) {
        library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (!library && !why[0])
            snprintf(why, why_bytes, "%s", dlerror());
    }
    return library;
}

static const char *find_runtime(struct gpu *gpu, void *library, bool is_hip)
{
    const char *missing = NULL, *name;

#define GPU_FIND(member, hip, cuda, ...)           \
    name = is_hip ? hip : cuda;                    \
    *(void **)&gpu->member = dlsym(library, name); \
    if (!gpu->member && *name && !missing)         \
        missing = name;
    GPU_FUNCTIONS(GPU_FIND)
    GPU_OWN_FUNCTIONS(GPU_FIND)
#undef GPU_FIND
    return missing;
}

static const char *find_nccl(struct nccl *nccl, void *library)
{
    const char *missing = NULL;

#define NCCL_FIND(name, ...)                              \
    *(void **)&nccl->name = dlsym(library, "nccl" #name); \
    if (!nccl->name && !missing)                          \
        missing = "nccl" #name;
    NCCL_FUNCTIONS(NCCL_FIND)
#undef NCCL_FIND
    *(void **)&nccl->CommFinalize = dlsym(library, "ncclCommFinalize");
    *(void **)&nccl->GetErrorString = dlsym(library, "ncclGetErrorString");
    *(void **)&nccl->GetLastError = dlsym(library, "ncclGetLastError");
    return missing;
}

static void copy_name(char *to, frit_str name)
{
    snprintf(to, LIBRARY_PATH, "%.*s", (int)name.len, name.ptr ? name.ptr : "");
}

static frit_status open_runtime(struct library *library, const struct plug *plug, frit_str chosen,
                                frit_err *err)
{
    const struct vendor *vendor = library->vendor;
    char file[LIBRARY_PATH], why[200];
    const char *missing;
    void *opened;
    int result;

    copy_name(file, chosen);
    opened = open_first(file, vendor->runtimes, why, sizeof why);
    if (!opened)
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "%s", why);
    missing = find_runtime(&library->gpu, opened, vendor->is_hip);
    if (missing)
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "%s has no %s",
                         *file ? file : vendor->runtimes[0], missing);
    result = library->gpu.Init(0);
    return result ? plug_fail(plug, err, FRIT_UNSUPPORTED, "%s cannot be used (error %d)",
                              *file ? file : vendor->runtimes[0], result)
                  : FRIT_OK;
}

static void note_version(struct library *library, void *opened, const char *file)
{
    struct link_map *map = NULL;
    int v = 0;

    snprintf(library->path, sizeof library->path, "%s", file);
    if (!dlinfo(opened, RTLD_DI_LINKMAP, &map) && map)
        snprintf(library->path, sizeof library->path, "%s", map->l_name);
    if (!library->nccl.GetVersion || library->nccl.GetVersion(&v))
        snprintf(library->version, sizeof library->version, "of unknown version");
    else if (v < 10000) /* up to 2.8 */
        snprintf(library->version, sizeof library->version, "%d.%d.%d", v / 1000, v % 1000 / 100,
                 v % 100);
    else
        snprintf(library->version, sizeof library->version, "%d.%d.%d", v / 10000, v % 10000 / 100,
                 v % 100);
}

static frit_status open_nccl(struct library *library, const struct plug *plug, frit_str chosen,
                             frit_err *err)
{
    const struct vendor *vendor = library->vendor;
    char file[LIBRARY_PATH], why[200];
    struct search other;
    const char *missing;
    void *opened;

    copy_name(file, chosen);
    if (strchr(file, '/') && find_other_copy(vendor, &other, file))
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "%s is in this process already, and `%.*s` is %s: leave the option empty, "
                         "or let both use one file",
                         other.found, (int)vendor->library_option.len, vendor->library_option.ptr,
                         file);
    opened = open_first(file, vendor->libraries, why, sizeof why);
    if (!opened)
        return plug_fail(plug, err, FRIT_UNSUPPORTED, "%s; %s", why, vendor->hint);
    missing = find_nccl(&library->nccl, opened);
    note_version(library, opened, *file ? file : vendor->libraries[0]);
    return missing ? plug_fail(plug, err, FRIT_UNSUPPORTED, "%s %s (%s) has no %s; %s",
                               vendor->name, library->version, library->path, missing, vendor->hint)
                   : FRIT_OK;
}

static void report(const struct library *library, const struct plug *plug)
{
    char text[LIBRARY_PATH + 64];

    if (!FRIT_HAS(plug->core, frit_host_core, log) || !plug->core->log)
        return;
    snprintf(text, sizeof text, "%s %s, %s", library->vendor->name, library->version,
             library->path);
    plug->core->log(plug->host->self, FRIT_LOG_INFO, FRIT_STR("library"),
                    (frit_str){text, strlen(text)});
}

frit_status library_load(struct library *library, const struct plug *plug,
                         const struct library_options *options, frit_err *err)
{
    frit_status status;

    if (library->is_loaded)
        return FRIT_OK;
    status = open_runtime(library, plug, options->runtime, err);
    if (!status)
        status = open_nccl(library, plug, options->library, err);
    if (status)
        return status;
    library->is_loaded = true;
    report(library, plug);
    return FRIT_OK;
}

/* ---- use ---- */

int library_enter(const struct library *library, void *device, struct scope *scope)
{
    return library->vendor->enter(&library->gpu, device, scope);
}

void library_leave(const struct library *library, const struct scope *scope)
{
    library->vendor->leave(&library->gpu, scope);
}

void library_result_text(const struct library *library, int result, nccl_comm comm, char *text,
                         size_t bytes)
{
    const struct nccl *nccl = &library->nccl;
    const char *meaning = nccl->GetErrorString ? nccl->GetErrorString(result) : NULL;
    const char *details = nccl->GetLastError ? nccl->GetLastError(comm) : NULL;

    snprintf(text, bytes, "%s (%d)%s%s", meaning ? meaning : "error", result,
             details && *details ? ", " : "", details ? details : "");
}

frit_status library_status(int result)
{
    switch (result) {
    case NCCL_SUCCESS:
        return FRIT_OK;
    case NCCL_UNHANDLED_GPU_ERROR:
        return FRIT_DEVICE_LOST;
    case NCCL_SYSTEM_ERROR:
        return FRIT_IO;
    case NCCL_INVALID_ARGUMENT:
    case NCCL_INVALID_USAGE:
        return FRIT_INVALID;
    case NCCL_REMOTE_ERROR:
    case NCCL_TIMEOUT: /* of the library's own; FRIT_TIMEOUT is the caller's limit */
        return FRIT_PEER_LOST;
    default:
        return FRIT_INTERNAL;
    }
}

frit_status library_gpu_status(int result)
{
    return result == GPU_OUT_OF_MEMORY ? FRIT_NO_DEVICE_MEMORY : FRIT_DEVICE_LOST;
}
