/* SPDX-License-Identifier: Apache-2.0 */
/* Files beside the model. */
#include "onnx/model.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"

/* Whether a relative name stays inside the folder. */
static bool stays_inside(const char *name)
{
    if (!name[0] || name[0] == '/')
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || !part[2]))
            return false;
    }
    return true;
}

/* The file's own path, links resolved, into `real`; it lies in the folder, too, as the package onnx
 * wants it: a model that is not trusted names no files elsewhere. */
static frit_status resolve(const char *folder, const char *path, char real[PATH_MAX], frit_err *err)
{
    char root[PATH_MAX];
    size_t length;

    if (!realpath(folder, root) || !realpath(path, real))
        return fail(err, FRIT_IO, "external data %s: cannot be opened: %s", path, strerror(errno));
    length = strlen(root);
    length -= root[length - 1] == '/';
    if (strncmp(real, root, length) == 0 && real[length] == '/')
        return FRIT_OK;
    return fail(
        err, FRIT_INVALID,
        "external data %s is a link to %s, outside of the folder of the model; put the file "
        "itself there",
        path, real);
}

static frit_status map_file(const struct onnx_model *model, struct onnx_file *file, frit_err *err)
{
    const char *slash = strrchr(model->path, '/');
    int length = slash ? (int)(slash - model->path) + 1 : 0;
    char folder[PATH_MAX], path[PATH_MAX], real[PATH_MAX];
    struct stat info;
    const char *why;
    void *bytes = NULL;
    int fd;

    if (snprintf(folder, sizeof(folder), "%.*s", length, model->path) >= PATH_MAX ||
        snprintf(path, sizeof(path), "%.*s%s", length, model->path, file->name) >= PATH_MAX)
        return fail(err, FRIT_INVALID, "the file name of external data is too long");
    TRY(resolve(length ? folder : ".", path, real, err));
    fd = file_open(AT_FDCWD, real, FILE_NAMED, &info, &why);
    if (fd < 0)
        return fail(err, FRIT_IO, "external data %s: cannot be opened: %s", path, why);
    if (info.st_size)
        bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return fail(err, FRIT_IO, "external data %s: cannot be mapped", path);
    file->bytes = bytes;
    file->n_bytes = (size_t)info.st_size;
    return FRIT_OK;
}

frit_status model_file_bytes(struct onnx_model *model, const char *name, const void **bytes,
                             size_t *n_bytes, frit_err *err)
{
    struct onnx_file *file = model->files;

    while (file && strcmp(file->name, name) != 0)
        file = file->next;
    if (!file) {
        if (!stays_inside(name))
            return fail(err, FRIT_INVALID,
                        "external data '%s' lies outside of the folder of the model", name);
        file = arena_alloc(&model->arena, sizeof(*file));
        if (!file)
            return fail_memory(err, sizeof(*file));
        file->name = name;
        TRY(map_file(model, file, err));
        file->next = model->files;
        model->files = file;
    }
    *bytes = file->bytes;
    *n_bytes = file->n_bytes;
    return FRIT_OK;
}
