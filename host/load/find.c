/* SPDX-License-Identifier: Apache-2.0 */
/* Where plugins are looked for: `library` entries in their order, then the configured directories,
 * then frit/plugins beside libfrit itself.  In a directory only libfrit-*.so, sorted by bytes, not
 * deeper.  A file that was already named is not looked at again. */
#include "load/find.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "conf/conf.h"
#include "load/load.h"

static const char builtin_origin[] = "built in";

static frit_status candidate_add(struct registry *registry, const struct candidate *candidate)
{
    if (registry->n_candidates == registry->candidates_capacity) {
        uint32_t capacity = registry->candidates_capacity ? registry->candidates_capacity * 2 : 16;
        struct candidate *more = arena_array(&registry->arena, capacity, sizeof(*more));

        if (!more)
            return FRIT_NO_HOST_MEMORY;
        if (registry->n_candidates)
            memcpy(more, registry->candidates, registry->n_candidates * sizeof(*more));
        registry->candidates = more;
        registry->candidates_capacity = capacity;
    }
    registry->candidates[registry->n_candidates++] = *candidate;
    return FRIT_OK;
}

/* `text` itself where there is no such file. */
static const char *real_path(struct arena *arena, const char *text)
{
    char path[PATH_MAX];
    const char *real = realpath(text, path) ? path : text;

    return arena_text(arena, real, strlen(real));
}

static frit_status add_libraries(struct registry *registry)
{
    for (uint32_t i = 0; i < conf_n_plugins(registry->conf); i++) {
        const struct conf_plugin *section = conf_plugin_at(registry->conf, i);
        struct candidate candidate = {.origin = section->origin, .section = section};

        if (!section->library)
            continue;
        candidate.path = real_path(&registry->arena, section->library);
        if (!candidate.path)
            return FRIT_NO_HOST_MEMORY;
        TRY(candidate_add(registry, &candidate));
    }
    return FRIT_OK;
}

static bool is_known(const struct registry *registry, const char *path)
{
    for (uint32_t i = 0; i < registry->n_candidates; i++) {
        if (strcmp(registry->candidates[i].path, path) == 0)
            return true;
    }
    return false;
}

static frit_status add_file(struct registry *registry, struct search_dir *dir, const char *name)
{
    char path[PATH_MAX];
    struct candidate candidate = {.origin = dir->origin};
    int length = snprintf(path, sizeof(path), "%s/%s", dir->path, name);

    if (length < 0 || (size_t)length >= sizeof(path)) {
        log_write(FRIT_LOG_WARN, "load", "%s/%s: the path is too long", dir->path, name);
        return FRIT_OK;
    }
    candidate.path = real_path(&registry->arena, path);
    if (!candidate.path)
        return FRIT_NO_HOST_MEMORY;
    dir->n_files++;
    return is_known(registry, candidate.path) ? FRIT_OK : candidate_add(registry, &candidate);
}

static int is_plugin_name(const struct dirent *entry)
{
    return fnmatch("libfrit-?*.so", entry->d_name, 0) == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static frit_status add_dir(struct registry *registry, const char *path, const char *origin)
{
    struct search_dir *dir = &registry->dirs[registry->n_dirs++];
    struct dirent **files = NULL;
    frit_status status = FRIT_OK;
    int count;

    *dir = (struct search_dir){.path = path, .origin = origin};
    count = scandir(path, &files, is_plugin_name, by_bytes);
    if (count < 0) {
        if (errno == ENOMEM)
            return FRIT_NO_HOST_MEMORY;
        dir->trouble = arena_text(&registry->arena, strerror(errno), strlen(strerror(errno)));
        if (!dir->trouble)
            return FRIT_NO_HOST_MEMORY;
        log_write(origin == builtin_origin ? FRIT_LOG_INFO : FRIT_LOG_WARN, "load",
                  "plugin directory %s (%s): %s", path, origin, dir->trouble);
        return FRIT_OK;
    }
    for (int i = 0; i < count; i++) {
        if (!status)
            status = add_file(registry, dir, files[i]->d_name);
        free(files[i]);
    }
    free(files);
    return status;
}

static const char *other_folder;

void find_set_own_folder(const char *folder)
{
    other_folder = folder;
}

bool find_own_folder(char path[PATH_MAX])
{
    Dl_info self;
    char *slash;

    if (other_folder)
        return realpath(other_folder, path) != NULL;
    if (!dladdr(builtin_origin, &self) || !realpath(self.dli_fname, path))
        return false;
    slash = strrchr(path, '/');
    *slash = '\0';
    return true;
}

/* The same in the build tree and installed. */
static frit_status add_builtin_dir(struct registry *registry)
{
    static const char tail[] = "/frit/plugins";
    char path[PATH_MAX + sizeof(tail)];
    const char *dir;

    if (!find_own_folder(path)) {
        log_write(FRIT_LOG_WARN, "load", "cannot find the folder of libfrit: no built-in plugins");
        return FRIT_OK;
    }
    memcpy(path + strlen(path), tail, sizeof(tail));
    dir = arena_text(&registry->arena, path, strlen(path));
    return dir ? add_dir(registry, dir, builtin_origin) : FRIT_NO_HOST_MEMORY;
}

frit_status find_candidates(struct registry *registry)
{
    uint32_t n_dirs = conf_n_dirs(registry->conf);

    registry->dirs = arena_array(&registry->arena, n_dirs + 1, sizeof(*registry->dirs));
    if (!registry->dirs)
        return FRIT_NO_HOST_MEMORY;
    TRY(add_libraries(registry));
    for (uint32_t i = 0; i < n_dirs; i++) {
        const struct conf_value *dir = conf_dir_at(registry->conf, i);

        TRY(add_dir(registry, dir->value, dir->origin));
    }
    return conf_dirs_replace(registry->conf) ? FRIT_OK : add_builtin_dir(registry);
}

frit_status find_files(struct registry *registry, const char *const *paths, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        TRY(candidate_add(registry, &(struct candidate){.path = paths[i], .origin = "program"}));
    return FRIT_OK;
}
