/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy files on disk: the header is checked against the file's size before memory for the elements
 * is allocated. */
#include "file/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
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

static frit_status read_head(int fd, struct npy *out, frit_err *err)
{
    struct stat info;
    frit_status status;
    size_t count;
    void *head;

    if (fstat(fd, &info))
        return fail(err, FRIT_IO, "%s", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return fail(err, FRIT_IO, "not a regular file");
    count = info.st_size < NPY_HEAD_MAX ? (size_t)info.st_size : NPY_HEAD_MAX;
    head = malloc(count + 1);
    if (!head)
        return fail_memory(err, count + 1);
    status = read_at(fd, head, count, 0, err);
    if (!status)
        status = npy_parse(head, count, (uint64_t)info.st_size, out, err);
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

/* NumPy treats any byte other than 0 as true; Frit's bools are 0 or 1. */
static void normalise_bools(unsigned char *data, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        data[i] = data[i] != 0;
}

static frit_status read_data(int fd, const struct npy *npy, void **out, frit_err *err)
{
    bool column_major = npy->fortran && npy->type.rank > 1;
    char *data = malloc(npy->bytes + 1);
    frit_status status;

    if (!data)
        return fail_memory(err, npy->bytes);
    status = read_at(fd, data, npy->bytes, npy->offset, err);
    if (!status && column_major) {
        char *dense = malloc(npy->bytes + 1);

        if (dense) {
            reorder(&npy->type, data, dense);
            free(data);
            data = dense;
        } else {
            status = fail_memory(err, npy->bytes);
        }
    }
    if (status) {
        free(data);
        return status;
    }
    if (npy->type.dtype == FRIT_BOOL)
        normalise_bools((unsigned char *)data, npy->bytes);
    *out = data;
    return FRIT_OK;
}

/* `data` may be NULL: reads only the type. */
static frit_status read_file(const char *path, struct op_type *type, void **data, frit_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block before fstat */
    frit_status status;
    struct npy npy = {0};

    if (fd < 0)
        return fail(err, FRIT_IO, "%s: %s", path, strerror(errno));
    status = read_head(fd, &npy, err);
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

static bool write_all(int fd, const char *data, size_t count)
{
    while (count) {
        ssize_t put = write(fd, data, count);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        data += put;
        count -= (size_t)put;
    }
    return true;
}

/* Creates a temporary file in the folder of `path`; *name is its name, to be freed. */
static int create_beside(const char *path, char **name)
{
    size_t capacity = strlen(path) + 32;
    int fd = -1;

    *name = malloc(capacity);
    for (int i = 0; *name && fd < 0 && i < 1000; i++) {
        snprintf(*name, capacity, "%s.%ld-%d.tmp", path, (long)getpid(), i);
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

frit_status npy_write_file(const char *path, const struct op_type *type, const void *data,
                           frit_err *err)
{
    char head[NPY_HEAD_OUT];
    size_t head_bytes = npy_format(type, head);
    struct stat info;
    char *name;
    bool good;
    int fd;

    if (!head_bytes)
        return fail(err, FRIT_UNSUPPORTED, "%s: NumPy has no element type for %s; cast first", path,
                    dtype_name(type->dtype));
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return fail(err, FRIT_IO, "%s: not a regular file", path);
    fd = create_beside(path, &name);
    if (fd < 0) {
        int cause = errno;
        frit_status status = name ? fail(err, FRIT_IO, "%s: %s", path, strerror(cause))
                                  : fail_memory(err, strlen(path));

        free(name);
        return status;
    }
    good = write_all(fd, head, head_bytes) &&
           write_all(fd, data, frit_storage_bytes(type->dtype, op_elements(type)));
    good = !close(fd) && good;
    good = good && !rename(name, path);
    if (!good) {
        fail(err, FRIT_IO, "%s: %s", path, strerror(errno));
        unlink(name);
    }
    free(name);
    return good ? FRIT_OK : FRIT_IO;
}
