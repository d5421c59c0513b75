/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors files on disk.  The header is read into memory, where nobody changes it after it was
 * checked; the elements are mapped. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/str.h"
#include "file/safetensors.h"

/* ---- the map ---- */

struct safetensors_map {
    atomic_uint_fast32_t references;
    void *at;
    size_t n_bytes;
};

static frit_status map_create(int fd, size_t n_bytes, struct safetensors_map **out, frit_err *err)
{
    struct safetensors_map *map = malloc(sizeof(*map));

    if (!map)
        return fail_memory(err, sizeof(*map));
    atomic_init(&map->references, 1);
    map->n_bytes = n_bytes;
    map->at = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map->at == MAP_FAILED) {
        free(map);
        return fail(err, errno == ENOMEM ? FRIT_NO_HOST_MEMORY : FRIT_IO, "cannot be mapped: %s",
                    strerror(errno));
    }
    *out = map;
    return FRIT_OK;
}

void safetensors_map_keep(struct safetensors_map *map)
{
    atomic_fetch_add(&map->references, 1);
}

void safetensors_map_drop(void *map)
{
    struct safetensors_map *dropped = map;

    if (!dropped || atomic_fetch_sub(&dropped->references, 1) > 1)
        return;
    munmap(dropped->at, dropped->n_bytes);
    free(dropped);
}

/* ---- reading ---- */

static frit_status read_length(int fd, uint64_t file_bytes, uint64_t *length, frit_err *err)
{
    unsigned char bytes[SAFETENSORS_LENGTH_BYTES];
    const uint64_t rest = file_bytes - sizeof(bytes);

    if (file_bytes < sizeof(bytes))
        return fail(err, FRIT_INVALID,
                    "not a safetensors file: it has %" PRIu64 " bytes, fewer than the length of a "
                    "header",
                    file_bytes);
    if (!file_read(fd, bytes, sizeof(bytes)))
        return fail(err, FRIT_IO, "cannot be read, or became shorter meanwhile");
    *length = 0;
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++)
        *length |= (uint64_t)bytes[i] << 8 * i;
    if (*length > SAFETENSORS_HEADER_MAX)
        return fail(err, FRIT_INVALID,
                    "not a safetensors file: it begins with a header of %" PRIu64
                    " bytes, the format's limit is %d",
                    *length, SAFETENSORS_HEADER_MAX);
    if (*length > rest)
        return fail(err, FRIT_INVALID,
                    "truncated: a header of %" PRIu64 " bytes, of which the file holds %" PRIu64,
                    *length, rest);
    return FRIT_OK;
}

static frit_status read_header(int fd, uint64_t file_bytes, struct safetensors_file *out,
                               frit_err *err)
{
    uint64_t length = 0, offset;

    TRY(read_length(fd, file_bytes, &length, err));
    out->header = malloc(length + 1);
    if (!out->header)
        return fail_memory(err, length);
    if (!file_read(fd, out->header, length))
        return fail(err, FRIT_IO, "cannot be read, or became shorter meanwhile");
    offset = SAFETENSORS_LENGTH_BYTES + length;
    TRY(safetensors_parse(out->header, length, file_bytes - offset, &out->parsed, err));
    TRY(map_create(fd, file_bytes, &out->map, err));
    out->data = (const char *)out->map->at + offset;
    return FRIT_OK;
}

frit_status safetensors_open_file(const char *path, struct safetensors_file *out, frit_err *err)
{
    struct stat info;
    const char *why;
    int fd = file_open(AT_FDCWD, path, FILE_NAMED, &info, &why);
    frit_status st;

    *out = (struct safetensors_file){0};
    if (fd < 0)
        return fail(err, FRIT_IO, "%s: %s", path, why);
    st = read_header(fd, (uint64_t)info.st_size, out, err);
    close(fd);
    if (!st)
        return FRIT_OK;
    safetensors_close_file(out);
    if (st == FRIT_INVALID)
        fail_append(err, "; copy the file again, or save it again");
    fail_context(err, "%s", path);
    return st;
}

void safetensors_close_file(struct safetensors_file *file)
{
    safetensors_fini(&file->parsed);
    safetensors_map_drop(file->map);
    free(file->header);
    *file = (struct safetensors_file){0};
}

/* ---- writing ---- */

enum { GROUP_BYTES = 64 << 20 }; /* read from the source at a time, if one tensor is not larger */

struct writer {
    const struct safetensors_entry *entries;
    const uint32_t *order;
    uint32_t n_entries;
    const struct safetensors_source *source;
    struct file_draft draft;
    void *buffer;
};

/* The entries from `first` that are read together, and their bytes. */
static uint32_t group_at(const struct writer *writer, uint32_t first, uint64_t *bytes)
{
    const uint64_t begin = writer->entries[writer->order[first]].begin;
    uint32_t n = 0;

    do {
        *bytes = writer->entries[writer->order[first + n]].end - begin;
        n++;
    } while (first + n < writer->n_entries &&
             writer->entries[writer->order[first + n]].end - begin <= GROUP_BYTES);
    return n;
}

static frit_status create_buffer(struct writer *writer, frit_err *err)
{
    uint64_t largest = 1, bytes;

    for (uint32_t i = 0; i < writer->n_entries; i += group_at(writer, i, &bytes)) {
        group_at(writer, i, &bytes);
        largest = bytes > largest ? bytes : largest;
    }
    writer->buffer = malloc(largest);
    return writer->buffer ? FRIT_OK : fail_memory(err, largest);
}

static frit_status write_elements(struct writer *writer, frit_err *err)
{
    const struct safetensors_source *source = writer->source;
    uint64_t bytes;

    for (uint32_t i = 0, n; i < writer->n_entries && !writer->draft.cause; i += n) {
        n = group_at(writer, i, &bytes);
        TRY(source->read(source->ctx, &writer->order[i], n, writer->buffer, err));
        file_draft_write(&writer->draft, writer->buffer, bytes);
    }
    return FRIT_OK;
}

static frit_status write_draft(struct writer *writer, const char *path, const struct str *header,
                               frit_err *err)
{
    struct stat info;
    frit_status st;
    int cause;

    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return fail(err, FRIT_IO, "not a regular file");
    TRY(create_buffer(writer, err));
    file_draft_begin(&writer->draft, AT_FDCWD, path, FILE_SHARED);
    file_draft_write(&writer->draft, header->text, header->length);
    st = write_elements(writer, err);
    cause = file_draft_end(&writer->draft, st == FRIT_OK);
    if (st)
        return st;
    return cause ? fail(err, FRIT_IO, "%s", strerror(cause)) : FRIT_OK;
}

frit_status safetensors_write_file(const char *path, struct safetensors_entry *entries,
                                   uint32_t n_entries, const frit_metadata *metadata,
                                   uint32_t n_metadata, const struct safetensors_source *source,
                                   frit_err *err)
{
    uint32_t *order = malloc(n_entries * sizeof(*order) + 1);
    struct writer writer = {
        .entries = entries, .order = order, .n_entries = n_entries, .source = source};
    struct str header = {0};
    frit_status st;

    if (!order)
        return fail_memory(err, n_entries * sizeof(*order));
    st = safetensors_place(entries, n_entries, metadata, n_metadata, order, err);
    if (!st)
        st = safetensors_format(entries, n_entries, metadata, n_metadata, &header, err);
    if (!st)
        st = write_draft(&writer, path, &header, err);
    free(writer.buffer);
    str_fini(&header);
    free(order);
    if (st)
        fail_context(err, "%s", path);
    return st;
}
