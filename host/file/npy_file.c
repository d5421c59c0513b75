/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy files on disk: the header is checked against the file's size before memory for the elements
 * is allocated. */
#include "file/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "file/npz.h"
#include "graph/dtype.h"

/* Reads `count` bytes at `offset`; an earlier end of the file is a failure. */
static frit_status read_at(int fd, void *data, size_t count, uint64_t offset, frit_err *err)
{
    char *at = data;

    while (count) {
        ssize_t got = pread(fd, at, count, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(err, FRIT_IO, "%s", strerror(errno));
        if (got == 0)
            return fail(err, FRIT_IO, "the file became shorter while it was read");
        at += got;
        offset += (uint64_t)got;
        count -= (size_t)got;
    }
    return FRIT_OK;
}

static frit_status read_head(int fd, uint64_t size, struct npy *out, frit_err *err)
{
    size_t count = size < NPY_HEAD_MAX ? (size_t)size : NPY_HEAD_MAX;
    void *head = malloc(count + 1);
    frit_status status;

    if (!head)
        return fail_memory(err, count + 1);
    status = read_at(fd, head, count, 0, err);
    if (!status)
        status = npy_parse(head, count, size, out, err);
    free(head);
    return status;
}

/* Copies column-major elements to row-major order. */
static void reorder(const struct op_type *type, const char *from, char *to)
{
    size_t size = frit_dtype_bits(type->dtype) / 8;
    int64_t count = op_elements(type);
    int64_t stride[FRIT_MAX_RANK], index[FRIT_MAX_RANK] = {0};
    int64_t offset = 0, step = 1;

    for (uint32_t i = 0; i < type->rank; i++) {
        stride[i] = step;
        step *= type->dims[i];
    }
    for (int64_t n = 0; n < count; n++) {
        uint32_t i = type->rank;

        memcpy(to + (size_t)n * size, from + (size_t)offset * size, size);
        while (i-- > 0) {
            offset += stride[i];
            if (++index[i] < type->dims[i])
                break;
            offset -= stride[i] * type->dims[i];
            index[i] = 0;
        }
    }
}

frit_status npy_arrange(const struct npy *npy, void **data, frit_err *err)
{
    if (npy->fortran && npy->type.rank > 1) {
        char *dense = malloc(npy->bytes + 1);

        if (!dense)
            return fail_memory(err, npy->bytes);
        reorder(&npy->type, *data, dense);
        free(*data);
        *data = dense;
    }
    if (npy->type.dtype == FRIT_BOOL)
        bools_clean(*data, *data, npy->bytes);
    return FRIT_OK;
}

static frit_status read_data(int fd, const struct npy *npy, void **out, frit_err *err)
{
    void *data = malloc(npy->bytes + 1);
    frit_status status;

    if (!data)
        return fail_memory(err, npy->bytes);
    status = read_at(fd, data, npy->bytes, npy->offset, err);
    if (!status)
        status = npy_arrange(npy, &data, err);
    if (status)
        free(data);
    else
        *out = data;
    return status;
}

/* `data` may be NULL: reads only the type. */
static frit_status read_file(const char *path, struct op_type *type, void **data, frit_err *err)
{
    struct stat info;
    const char *why;
    const char *member = npz_member(path);
    int fd;
    frit_status status;
    struct npy npy = {0};

    if (member)
        return npz_read_member(path, member, type, data, err);
    fd = file_open(AT_FDCWD, path, FILE_NAMED, &info, &why);
    if (fd < 0)
        return fail(err, FRIT_IO, "%s: %s", path, why);
    status = read_head(fd, (uint64_t)info.st_size, &npy, err);
    if (!status && data)
        status = read_data(fd, &npy, data, err);
    close(fd);
    if (status) {
        fail_context(err, "%s", path);
        return status;
    }
    *type = npy.type;
    return FRIT_OK;
}

frit_status npy_read_file(const char *path, struct op_type *type, void **data, frit_err *err)
{
    *data = NULL;
    return read_file(path, type, data, err);
}

frit_status npy_read_type(const char *path, struct op_type *type, frit_err *err)
{
    return read_file(path, type, NULL, err);
}

frit_status npy_write_file(const char *path, const struct op_type *type, const void *data,
                           frit_err *err)
{
    char head[NPY_HEAD_OUT];
    size_t head_bytes = npy_format(type, head);
    const struct file_part parts[] = {{head, head_bytes},
                                      {data, frit_storage_bytes(type->dtype, op_elements(type))}};
    struct stat info;
    int cause;

    if (!head_bytes)
        return fail(err, FRIT_UNSUPPORTED, "%s: NumPy has no element type for %s; cast first", path,
                    dtype_name(type->dtype));
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return fail(err, FRIT_IO, "%s: not a regular file", path);
    cause = file_replace(AT_FDCWD, path, FILE_SHARED, parts, 2);
    return cause ? fail(err, FRIT_IO, "%s: %s", path, strerror(cause)) : FRIT_OK;
}
