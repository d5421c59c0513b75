/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: the bytes of an entry come from a reader that unpacks as far as somebody wants to read:
 * only the header when the archive is opened. */
#include "file/npz.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/file.h"
#include "graph/dtype.h"

enum {
    DIRECTORY_MAX = 64 << 20,
    CHUNK = 64 << 10,
    DEFLATE_RATIO = 1032, /* the most that a byte can unpack to */
};

static frit_status read_at(int fd, void *data, uint64_t count, uint64_t offset, frit_err *err)
{
    char *at = data;

    while (count) {
        ssize_t got = pread(fd, at, count < INT32_MAX ? (size_t)count : INT32_MAX, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return fail(err, FRIT_IO, "%s",
                        got ? strerror(errno) : "the file became shorter while it was read");
        at += got;
        offset += (uint64_t)got;
        count -= (uint64_t)got;
    }
    return FRIT_OK;
}

/* ---- unpacking ---- */

struct reader {
    int fd;
    const struct zip_entry *entry;
    uint64_t offset, left; /* packed bytes in the file that were not read yet */
    uint32_t crc;          /* of what was unpacked */
    z_stream z;
    unsigned char chunk[CHUNK];
};

static frit_status reader_open(const struct npz_file *file, const struct zip_entry *entry,
                               struct reader **out, frit_err *err)
{
    struct reader *reader = calloc(1, sizeof(*reader));
    unsigned char local[ZIP_LOCAL];
    frit_status st;

    *out = NULL;
    if (!reader)
        return fail_memory(err, sizeof(*reader));
    reader->fd = file->fd;
    reader->entry = entry;
    reader->left = entry->packed;
    st = file->bytes - entry->local < ZIP_LOCAL
             ? fail(err, FRIT_INVALID, "damaged: the entry does not lie in the file")
             : read_at(file->fd, local, sizeof(local), entry->local, err);
    if (!st)
        st = zip_data(entry, local, file->bytes, &reader->offset, err);
    if (!st && entry->method == ZIP_DEFLATED && inflateInit2(&reader->z, -MAX_WBITS) != Z_OK)
        st = fail_memory(err, sizeof(*reader));
    if (st)
        free(reader);
    else
        *out = reader;
    return st;
}

static void reader_close(struct reader *reader)
{
    if (reader && reader->entry->method == ZIP_DEFLATED)
        inflateEnd(&reader->z);
    free(reader);
}

static frit_status refill(struct reader *reader, frit_err *err)
{
    uint64_t n = reader->left < CHUNK ? reader->left : CHUNK;

    if (n == 0)
        return fail(err, FRIT_INVALID, "damaged: its packed bytes end early");
    TRY(read_at(reader->fd, reader->chunk, n, reader->offset, err));
    reader->z.next_in = reader->chunk;
    reader->z.avail_in = (uInt)n;
    reader->offset += n;
    reader->left -= n;
    return FRIT_OK;
}

/* At most CHUNK bytes. */
static frit_status unpack(struct reader *reader, unsigned char *to, uInt count, frit_err *err)
{
    reader->z.next_out = to;
    reader->z.avail_out = count;
    while (reader->z.avail_out) {
        int code;

        if (!reader->z.avail_in)
            TRY(refill(reader, err));
        code = inflate(&reader->z, Z_NO_FLUSH);
        if (code == Z_MEM_ERROR)
            return fail_memory(err, CHUNK);
        if (code != Z_OK && (code != Z_STREAM_END || reader->z.avail_out))
            return fail(err, FRIT_INVALID, "damaged: its packed bytes %s",
                        code == Z_STREAM_END ? "end early" : "cannot be unpacked");
    }
    return FRIT_OK;
}

/* The next `count` bytes of the entry, which has them by its directory. */
static frit_status reader_take(struct reader *reader, void *data, uint64_t count, frit_err *err)
{
    unsigned char *to = data;

    while (count) {
        uInt n = (uInt)(count < CHUNK ? count : CHUNK);

        if (reader->entry->method == ZIP_DEFLATED) {
            TRY(unpack(reader, to, n, err));
        } else {
            TRY(read_at(reader->fd, to, n, reader->offset, err));
            reader->offset += n;
        }
        reader->crc = (uint32_t)crc32(reader->crc, to, n);
        to += n;
        count -= n;
    }
    return FRIT_OK;
}

/* ---- opening ---- */

static frit_status read_header(const struct npz_file *file, struct npz_entry *entry, frit_err *err)
{
    const struct zip_entry *zip = &entry->zip;
    size_t count = zip->bytes < NPY_HEAD_MAX ? (size_t)zip->bytes : NPY_HEAD_MAX;
    struct reader *reader;
    void *head;
    frit_status st;

    if (zip->method == ZIP_DEFLATED && zip->bytes / DEFLATE_RATIO > zip->packed)
        return fail(err, FRIT_INVALID, "damaged: %" PRIu64 " packed bytes cannot hold %" PRIu64,
                    zip->packed, zip->bytes);
    head = malloc(count + 1);
    if (!head)
        return fail_memory(err, count);
    st = reader_open(file, zip, &reader, err);
    if (!st)
        st = reader_take(reader, head, count, err);
    if (!st)
        st = npy_parse(head, count, zip->bytes, &entry->npy, err);
    reader_close(reader);
    free(head);
    return st;
}

static bool is_npy(const struct zip_entry *entry)
{
    return entry->name_length > 4 && !memcmp(entry->name + entry->name_length - 4, ".npy", 4) &&
           !memchr(entry->name, '\0', entry->name_length);
}

static frit_status add_entry(struct npz_file *file, const struct zip_entry *zip, uint32_t *capacity,
                             frit_err *err)
{
    size_t length = zip->name_length - 4u;
    struct npz_entry *entry;
    frit_status st;

    if (!array_grow(&file->entries, capacity, file->n_entries, 1, sizeof(*file->entries)))
        return fail_memory(err, sizeof(*entry));
    entry = &file->entries[file->n_entries];
    *entry = (struct npz_entry){.name = strndup(zip->name, length), .zip = *zip};
    if (!entry->name)
        return fail_memory(err, length);
    file->n_entries++;
    st = read_header(file, entry, err);
    if (st)
        fail_context(err, "'%.60s'", entry->name);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static frit_status check_names(const struct npz_file *file, frit_err *err)
{
    const char **names = malloc(file->n_entries * sizeof(*names) + 1);
    frit_status st = FRIT_OK;

    if (!names)
        return fail_memory(err, file->n_entries * sizeof(*names));
    for (uint32_t i = 0; i < file->n_entries; i++)
        names[i] = file->entries[i].name;
    qsort(names, file->n_entries, sizeof(*names), by_name);
    for (uint32_t i = 1; i < file->n_entries && !st; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            st = fail(err, FRIT_INVALID, "'%.60s' is there twice", names[i]);
    free(names);
    return st;
}

static frit_status read_entries(struct npz_file *file, const struct zip_directory *directory,
                                const void *bytes, frit_err *err)
{
    uint32_t capacity = 0;
    uint64_t at = 0;

    for (uint64_t i = 0; i < directory->count; i++) {
        struct zip_entry zip;

        TRY(zip_next(bytes, directory->bytes, file->bytes, &at, &zip, err));
        if (is_npy(&zip))
            TRY(add_entry(file, &zip, &capacity, err));
    }
    return check_names(file, err);
}

/* Reads `count` bytes into memory of their own. */
static frit_status read_part(int fd, uint64_t offset, uint64_t count, void **out, frit_err *err)
{
    frit_status st;

    *out = malloc(count + 1);
    if (!*out)
        return fail_memory(err, count);
    st = read_at(fd, *out, count, offset, err);
    if (st) {
        free(*out);
        *out = NULL;
    }
    return st;
}

static frit_status read_directory(struct npz_file *file, frit_err *err)
{
    uint64_t count = file->bytes < ZIP_TAIL_MAX ? file->bytes : ZIP_TAIL_MAX;
    struct zip_directory directory;
    void *bytes;
    frit_status st;

    TRY(read_part(file->fd, file->bytes - count, count, &bytes, err));
    st = zip_find(bytes, count, file->bytes, &directory, err);
    free(bytes);
    if (st)
        return st;
    if (directory.bytes > DIRECTORY_MAX)
        return fail(err, FRIT_UNSUPPORTED, "a directory of %" PRIu64 " bytes; at most %d",
                    directory.bytes, DIRECTORY_MAX);
    TRY(read_part(file->fd, directory.offset, directory.bytes, &bytes, err));
    st = read_entries(file, &directory, bytes, err);
    free(bytes);
    for (uint32_t i = 0; i < file->n_entries; i++)
        file->entries[i].zip.name = NULL; /* it was in there */
    return st;
}

frit_status npz_open(const char *path, struct npz_file *out, frit_err *err)
{
    struct stat info;
    const char *why;
    frit_status st;

    *out = (struct npz_file){.fd = file_open(AT_FDCWD, path, FILE_NAMED, &info, &why)};
    if (out->fd < 0)
        return fail(err, FRIT_IO, "%s: %s", path, why);
    out->bytes = (uint64_t)info.st_size;
    st = read_directory(out, err);
    if (st) {
        fail_context(err, "%s", path);
        npz_close(out);
    }
    return st;
}

void npz_close(struct npz_file *file)
{
    for (uint32_t i = 0; i < file->n_entries; i++)
        free(file->entries[i].name);
    free(file->entries);
    if (file->fd >= 0)
        close(file->fd);
    *file = (struct npz_file){.fd = -1};
}

/* ---- elements ---- */

static frit_status take_elements(struct reader *reader, const struct npz_entry *entry, void *head,
                                 void *data, frit_err *err)
{
    const struct npy *npy = &entry->npy;

    TRY(reader_take(reader, head, npy->offset, err));
    TRY(reader_take(reader, data, npy->bytes, err));
    for (uint64_t rest = entry->zip.bytes - npy->offset - npy->bytes; rest;) {
        uint64_t n = rest < npy->offset ? rest : npy->offset;

        TRY(reader_take(reader, head, n, err)); /* what the header says nothing of */
        rest -= n;
    }
    return reader->crc == entry->zip.crc
               ? FRIT_OK
               : fail(err, FRIT_INVALID, "damaged: its checksum is another one");
}

frit_status npz_read(const struct npz_file *file, const struct npz_entry *entry, void **data,
                     frit_err *err)
{
    void *head = malloc(entry->npy.offset);
    struct reader *reader = NULL;
    frit_status st = FRIT_OK;

    *data = malloc(entry->npy.bytes + 1);
    if (!head || !*data)
        st = fail_memory(err, entry->npy.bytes);
    if (!st)
        st = reader_open(file, &entry->zip, &reader, err);
    if (!st)
        st = take_elements(reader, entry, head, *data, err);
    if (!st)
        st = npy_arrange(&entry->npy, data, err);
    reader_close(reader);
    free(head);
    if (st) {
        free(*data);
        *data = NULL;
    }
    return st;
}

/* ---- by a path ---- */

const char *npz_member(const char *path)
{
    const char *end = strstr(path, ".npz:");

    return end ? end + 5 : NULL;
}

static frit_status read_member(const struct npz_file *file, const char *member,
                               struct op_type *type, void **data, frit_err *err)
{
    for (uint32_t i = 0; i < file->n_entries; i++) {
        const struct npz_entry *entry = &file->entries[i];

        if (strcmp(entry->name, member) != 0)
            continue;
        *type = entry->npy.type;
        return data ? npz_read(file, entry, data, err) : FRIT_OK;
    }
    return fail(err, FRIT_INVALID, "the archive has no tensor of this name");
}

frit_status npz_read_member(const char *path, const char *member, struct op_type *type, void **data,
                            frit_err *err)
{
    char *archive = strndup(path, (size_t)(member - path) - 1);
    struct npz_file file;
    frit_status st = archive ? npz_open(archive, &file, err) : fail_memory(err, strlen(path));

    free(archive);
    if (st)
        return st;
    st = read_member(&file, member, type, data, err);
    npz_close(&file);
    return st ? fail_context(err, "%s", path) : FRIT_OK;
}

/* ---- writing ---- */

struct npz_draft {
    struct file_draft file;
    uint64_t bytes; /* so far */
    uint64_t count;
    unsigned char *directory;
    uint32_t directory_bytes, capacity;
};

static void write_bytes(struct npz_draft *draft, const void *bytes, size_t count)
{
    file_draft_write(&draft->file, bytes, count);
    draft->bytes += count;
}

frit_status npz_begin(const char *path, struct npz_draft **out, frit_err *err)
{
    struct stat info;

    *out = NULL;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return fail(err, FRIT_IO, "%s: not a regular file", path);
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    file_draft_begin(&(*out)->file, AT_FDCWD, path, FILE_SHARED);
    return FRIT_OK;
}

/* Appends a header with the name in its middle to the directory. */
static bool add_to_directory(struct npz_draft *draft, const struct zip_entry *entry)
{
    unsigned char bytes[ZIP_FORMAT_MAX];
    size_t head, length = zip_format_entry(entry, bytes, &head);
    unsigned char *at;

    if (!array_grow(&draft->directory, &draft->capacity, draft->directory_bytes,
                    (uint32_t)(length + entry->name_length), 1))
        return false;
    at = draft->directory + draft->directory_bytes;
    memcpy(at, bytes, head);
    memcpy(at + head, entry->name, entry->name_length);
    memcpy(at + head + entry->name_length, bytes + head, length - head);
    draft->directory_bytes += (uint32_t)(length + entry->name_length);
    draft->count++;
    return true;
}

static uint32_t checksum(uint32_t crc, const void *data, uint64_t count)
{
    const unsigned char *at = data;

    while (count) {
        uInt n = (uInt)(count < INT32_MAX ? count : INT32_MAX);

        crc = (uint32_t)crc32(crc, at, n);
        at += n;
        count -= n;
    }
    return crc;
}

frit_status npz_add(struct npz_draft *draft, const char *name, const struct op_type *type,
                    const void *data, frit_err *err)
{
    const uint64_t bytes = frit_storage_bytes(type->dtype, op_elements(type));
    struct zip_entry entry = {.local = draft->bytes, .method = ZIP_STORED};
    char npy[NPY_HEAD_OUT], full[512];
    unsigned char head[ZIP_FORMAT_MAX];
    size_t npy_bytes = npy_format(type, npy), split, length;

    if (!npy_bytes)
        return fail(err, FRIT_UNSUPPORTED, "'%.60s': NumPy has no element type for %s; cast first",
                    name, dtype_name(type->dtype));
    if (!*name || strlen(name) > sizeof(full) - 5)
        return fail(err, FRIT_INVALID, "'%.60s...': a name has 1 to %zu bytes", name,
                    sizeof(full) - 5);
    entry.name_length = (uint16_t)snprintf(full, sizeof(full), "%s.npy", name);
    entry.name = full;
    entry.bytes = entry.packed = npy_bytes + bytes;
    entry.crc = checksum(checksum(0, npy, npy_bytes), data, bytes);
    length = zip_format_local(&entry, head, &split);
    write_bytes(draft, head, split);
    write_bytes(draft, full, entry.name_length);
    write_bytes(draft, head + split, length - split);
    write_bytes(draft, npy, npy_bytes);
    write_bytes(draft, data, bytes);
    return add_to_directory(draft, &entry) ? FRIT_OK : fail_memory(err, length);
}

frit_status npz_end(struct npz_draft *draft, bool keep, frit_err *err)
{
    const struct zip_directory directory = {
        .offset = draft->bytes, .bytes = draft->directory_bytes, .count = draft->count};
    const char *path = draft->file.path;
    unsigned char end[2 * ZIP_FORMAT_MAX];
    int cause;

    if (keep) {
        write_bytes(draft, draft->directory, draft->directory_bytes);
        write_bytes(draft, end, zip_format_end(&directory, end));
    }
    cause = file_draft_end(&draft->file, keep);
    free(draft->directory);
    free(draft);
    return keep && cause ? fail(err, FRIT_IO, "%s: %s", path, strerror(cause)) : FRIT_OK;
}
