/* SPDX-License-Identifier: Apache-2.0 */
/* Reads configuration files in order of precedence: the user's, /etc/frit/frit.ini,
 * /etc/frit/plugins.d/ from the last name to the first; or only the file in FRIT_CONFIG. */
#include "conf/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/str.h"
#include "conf/conf_sources.h"
#include "conf/env.h"
#include "conf/ini.h"

enum { MAX_FILE = 1 << 20 };

/* A file that is being read. */
struct file {
    struct conf *conf;
    const char *path; /* for messages */
    const char *dir;  /* absolute */
};

/* ---- one file ---- */

static frit_status reject(const char *path, const char *why, frit_err *err)
{
    return fail(err, FRIT_IO,
                "%s: cannot be read: %s; make it readable or name another one in FRIT_CONFIG", path,
                why);
}

/* Reads a whole open file, at most `capacity` bytes; a larger file is an error. */
static frit_status read_bytes(int fd, const char *path, char *bytes, size_t capacity,
                              size_t *length, frit_err *err)
{
    *length = 0;
    while (*length < capacity) {
        ssize_t got = read(fd, bytes + *length, capacity - *length);

        if (got == 0)
            return FRIT_OK;
        if (got > 0)
            *length += (size_t)got;
        else if (errno != EINTR)
            return reject(path, strerror(errno), err);
    }
    return fail(err, FRIT_INVALID, "%s: larger than the limit of %d bytes", path, MAX_FILE);
}

static frit_status absolute_dir(struct conf *conf, const char *path, const char **out,
                                frit_err *err)
{
    const char *slash = strrchr(path, '/');
    frit_str dir = {path, slash ? (size_t)(slash - path) : 0};
    char here[PATH_MAX] = "";

    if (path[0] != '/') {
        if (!getcwd(here, sizeof(here)))
            return reject(path, strerror(errno), err);
        if (dir.len == 0)
            dir = str_of(here);
    }
    *out = slash == path ? arena_text(&conf->arena, "", 0) : rule_absolute(&conf->arena, here, dir);
    return *out ? FRIT_OK : fail_memory(err, dir.len + 1);
}

static frit_status take_line(void *ctx, const struct ini_line *line, frit_err *err)
{
    const struct file *file = ctx;
    char origin[PATH_MAX + 16];
    struct conf_item item = {.section = line->section,
                             .key = line->key,
                             .value = line->value,
                             .origin = origin,
                             .dir = file->dir,
                             .layer = file->conf->layer};

    snprintf(origin, sizeof(origin), "%s:%u", file->path, line->number);
    return conf_put(file->conf, &item, err);
}

static frit_status note_file(struct conf *conf, const char *path, frit_err *err)
{
    struct conf_file *file = arena_array(&conf->arena, 1, sizeof(*file));

    if (!file)
        return fail_memory(err, sizeof(*file));
    *file = (struct conf_file){.path = arena_text(&conf->arena, path, strlen(path))};
    if (!file->path)
        return fail_memory(err, strlen(path));
    *conf->files_end = file;
    conf->files_end = &file->next;
    return FRIT_OK;
}

static frit_status take_file(struct conf *conf, const char *path, int fd, frit_err *err)
{
    struct file file = {.conf = conf, .path = path};
    struct ini_text text = {.name = path};
    char *bytes = malloc(MAX_FILE + 1);
    frit_status status;

    if (!bytes)
        return fail_memory(err, MAX_FILE + 1);
    text.bytes = bytes;
    status = read_bytes(fd, path, bytes, MAX_FILE + 1, &text.length, err);
    if (!status)
        status = absolute_dir(conf, path, &file.dir, err);
    if (!status)
        status = note_file(conf, path, err);
    if (!status)
        status = ini_read(&text, take_line, &file, err);
    conf->layer++;
    free(bytes);
    return status;
}

static frit_status read_file(struct conf *conf, const char *path, bool must_exist, frit_err *err)
{
    struct stat info;
    const char *why;
    int fd = file_open(AT_FDCWD, path, FILE_NAMED, &info, &why);
    frit_status status;

    if (fd < 0 && !must_exist && (errno == ENOENT || errno == ENOTDIR))
        return FRIT_OK;
    if (fd < 0)
        return reject(path, why, err);
    status = take_file(conf, path, fd, err);
    close(fd);
    return status;
}

/* ---- standard paths ---- */

/* Variables without an absolute path are ignored, as the XDG base directory specification requires.
 */
static frit_status read_user_file(struct conf *conf, const char *const *environment, frit_err *err)
{
    const char *config = env_get(environment, "XDG_CONFIG_HOME");
    const char *home = env_get(environment, "HOME");
    struct str path = {0};
    frit_status status;

    if (config && config[0] == '/')
        str_addf(&path, "%s/frit/frit.ini", config);
    else if (home && home[0] == '/')
        str_addf(&path, "%s/.config/frit/frit.ini", home);
    else
        return FRIT_OK;
    status = path.failed ? fail_memory(err, PATH_MAX) : read_file(conf, path.text, false, err);
    str_fini(&path);
    return status;
}

static frit_status read_in(struct conf *conf, const char *dir, const char *name, bool must_exist,
                           frit_err *err)
{
    struct str path = {0};
    frit_status status;

    str_addf(&path, "%s/%s", dir, name);
    status = path.failed ? fail_memory(err, PATH_MAX) : read_file(conf, path.text, must_exist, err);
    str_fini(&path);
    return status;
}

static int is_ini_name(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');

    return entry->d_name[0] != '.' && end && strcmp(end, ".ini") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static frit_status read_dir(struct conf *conf, const char *dir, frit_err *err)
{
    struct dirent **files = NULL;
    frit_status status = FRIT_OK;
    int count = scandir(dir, &files, is_ini_name, by_bytes);

    if (count < 0)
        return errno == ENOENT || errno == ENOTDIR ? FRIT_OK : reject(dir, strerror(errno), err);
    while (count-- > 0) {
        if (!status)
            status = read_in(conf, dir, files[count]->d_name, true, err);
        free(files[count]);
    }
    free(files);
    return status;
}

static frit_status read_system_files(struct conf *conf, const char *root, frit_err *err)
{
    struct str dir = {0};
    frit_status status;

    str_addf(&dir, "%s/etc/frit", root);
    status =
        dir.failed ? fail_memory(err, PATH_MAX) : read_in(conf, dir.text, "frit.ini", false, err);
    str_addf(&dir, "/plugins.d");
    if (!status)
        status = dir.failed ? fail_memory(err, PATH_MAX) : read_dir(conf, dir.text, err);
    str_fini(&dir);
    return status;
}

frit_status files_read(struct conf *conf, const struct conf_sources *sources, frit_err *err)
{
    const char *only = env_get(sources->environment, "FRIT_CONFIG");

    if (only && strcmp(only, "/dev/null") == 0) /* the one device that is taken: none */
        return FRIT_OK;
    if (only)
        return read_file(conf, only, true, err);
    TRY(read_user_file(conf, sources->environment, err));
    return read_system_files(conf, sources->root, err);
}
