/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/location.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/problems.h"
#include "term.h"

static bool is_folder(uint32_t kind)
{
    return kind == FRIT_PLACE_PLUGINS || kind == FRIT_PLACE_ARTEFACTS;
}

static bool is_kept(uint32_t kind)
{
    return kind == FRIT_PLACE_PLANS || kind == FRIT_PLACE_DECISIONS || kind == FRIT_PLACE_ARTEFACTS;
}

const char *location_name(uint32_t kind)
{
    static const char *const names[] = {[FRIT_PLACE_CONFIG] = "configuration",
                                        [FRIT_PLACE_PLUGINS] = "plugins",
                                        [FRIT_PLACE_PLANS] = "plans",
                                        [FRIT_PLACE_ARTEFACTS] = "compiled code",
                                        [FRIT_PLACE_DECISIONS] = "decisions"};

    return kind < sizeof(names) / sizeof(names[0]) && names[kind] ? names[kind] : "other";
}

/* ---- looking ---- */

static void count_files(struct location *place)
{
    DIR *folder = opendir(place->desc.path);
    struct dirent *entry;
    struct stat info;

    while (folder && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.' ||
            fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) ||
            S_ISDIR(info.st_mode))
            continue;
        place->n_files++;
        place->n_strange += info.st_uid != geteuid() || !S_ISREG(info.st_mode) ||
                            info.st_mode & (S_IWGRP | S_IWOTH);
        place->bytes += (uint64_t)info.st_size;
    }
    if (folder)
        closedir(folder);
}

void location_look(const frit_place_desc *desc, struct location *out)
{
    struct stat info;

    *out = (struct location){.desc = *desc};
    if (stat(desc->path, &info))
        return;
    out->exists = true;
    out->mode = info.st_mode;
    out->owner = info.st_uid;
    if (is_folder(desc->kind) && S_ISDIR(info.st_mode))
        count_files(out);
    else
        out->bytes = (uint64_t)info.st_size;
}

/* ---- checking ---- */

/* The nearest folder above the place that exists; false: there is none. */
static bool find_above(const char *path, char *above, size_t size)
{
    char *slash;

    snprintf(above, size, "%s", path);
    while ((slash = strrchr(above, '/'))) {
        slash[slash == above] = '\0';
        if (access(above, F_OK) == 0)
            return true;
        if (slash == above)
            break;
    }
    return false;
}

static void check_missing(const struct location *place, struct problems *problems)
{
    char above[PATH_MAX];

    if (!is_kept(place->desc.kind) || !find_above(place->desc.path, above, sizeof(above)) ||
        access(above, W_OK) == 0)
        return;
    problems_add(problems, "make it writable, or choose another place in the configuration",
                 "%s: cannot be made, so that %s are not kept: %s: %s", place->desc.path,
                 place->desc.kind == FRIT_PLACE_ARTEFACTS ? "compiled programs"
                                                          : location_name(place->desc.kind),
                 above, strerror(errno));
}

/* Who may write to it decides what runs here. */
static void check_owner(const struct location *place, struct problems *problems)
{
    const char *path = place->desc.path;
    const bool root_is_fine = !is_kept(place->desc.kind);

    if (place->owner != geteuid() && !(root_is_fine && place->owner == 0))
        problems_add(problems, "give it to this user, or choose another place",
                     "%s: belongs to user %" PRIu32 ", not to this one%s", path, place->owner,
                     is_kept(place->desc.kind) ? ", and is ignored" : "");
    else if (place->mode & (S_IWGRP | S_IWOTH))
        problems_add(problems, "`chmod go-w` it", "%s: others may write to it (mode %04o)", path,
                     place->mode & 07777);
}

static void check_kept(const struct location *place, struct problems *problems)
{
    if (access(place->desc.path, R_OK | W_OK))
        problems_add(problems, "make it readable and writable", "%s: cannot be used: %s",
                     place->desc.path, strerror(errno));
    if (place->n_strange)
        problems_add(problems, "remove them",
                     "%s: %" PRIu64 " of %" PRIu64 " files are ignored: of another owner, writable "
                     "by others, or not regular files",
                     place->desc.path, place->n_strange, place->n_files);
    if (place->desc.max_bytes && place->bytes > place->desc.max_bytes) {
        char is[16], limit[16];

        problems_add(problems, "remove some, or raise [frit] artefact_bytes",
                     "%s: holds %s, more than the limit of %s", place->desc.path,
                     term_bytes(place->bytes, is), term_bytes(place->desc.max_bytes, limit));
    }
}

void location_check(const struct location *place, struct problems *problems)
{
    const frit_place_desc *desc = &place->desc;

    if (*desc->trouble && strcmp(desc->origin, "built in") != 0)
        problems_add(problems, "make it, or take it out of the list", "%s (%s): %s", desc->path,
                     desc->origin, desc->trouble);
    if (!place->exists) {
        check_missing(place, problems);
        return;
    }
    if (is_folder(desc->kind) != S_ISDIR(place->mode) ||
        (!is_folder(desc->kind) && is_kept(desc->kind) && !S_ISREG(place->mode))) {
        problems_add(problems, "remove it, or choose another place", "%s: is not a %s", desc->path,
                     is_folder(desc->kind) ? "folder" : "regular file");
        return;
    }
    if (S_ISREG(place->mode) || S_ISDIR(place->mode))
        check_owner(place, problems);
    if (is_kept(desc->kind))
        check_kept(place, problems);
}
