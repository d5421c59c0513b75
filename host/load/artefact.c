/* SPDX-License-Identifier: Apache-2.0 */
/* A file: head, name, bytes.  Readers see all of it or nothing (file_replace); the digest detects
 * what is not as it was written. */
#include "load/artefact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/fail.h"
#include "base/file.h"

enum { NAME_HEX = 32, TRIM_EVERY = 16 };
#define SUFFIX ".art"

struct artefact_head {
    char magic[8];
    uint64_t n_name, n_bytes;
    uint64_t digest[2]; /* of name and bytes */
};

static const char magic[8] = "FritArt1";

/* ---- names ---- */

/* malloc'd: the parts with their lengths, so that no two names are alike. */
static unsigned char *name_join(const struct artefact_name *name, size_t *length)
{
    const uint64_t parts[] = {strlen(name->space), name->subspace.len, name->n_key};
    unsigned char *out, *at;

    *length = sizeof(parts) + (size_t)(parts[0] + parts[1] + parts[2]);
    out = at = malloc(*length);
    if (!out)
        return NULL;
    memcpy(at, parts, sizeof(parts));
    at += sizeof(parts);
    memcpy(at, name->space, (size_t)parts[0]);
    at += parts[0];
    if (parts[1])
        memcpy(at, name->subspace.ptr, (size_t)parts[1]);
    at += parts[1];
    if (parts[2])
        memcpy(at, name->key, (size_t)parts[2]);
    return out;
}

static void file_name(const unsigned char *name, size_t length, char out[NAME_HEX + sizeof(SUFFIX)])
{
    XXH128_hash_t hash = XXH3_128bits(name, length);

    snprintf(out, NAME_HEX + sizeof(SUFFIX), "%016llx%016llx" SUFFIX,
             (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

static void digest(const unsigned char *name, size_t n_name, const void *bytes, size_t n_bytes,
                   uint64_t out[2])
{
    XXH128_hash_t first = XXH3_128bits(name, n_name);
    XXH128_hash_t all = XXH3_128bits_withSeed(bytes, n_bytes, first.low64 ^ first.high64);

    out[0] = all.low64;
    out[1] = all.high64;
}

/* ---- reading ---- */

static bool head_fits(const struct artefact_head *head, size_t n_name, uint64_t size)
{
    return memcmp(head->magic, magic, sizeof(magic)) == 0 && head->n_name == n_name &&
           size >= sizeof(*head) + n_name && head->n_bytes == size - sizeof(*head) - n_name;
}

/* NULL: not as it was written, or no memory. */
static unsigned char *read_file(int fd, uint64_t size, const unsigned char *name, size_t n_name,
                                uint64_t *n_bytes)
{
    unsigned char *all;
    struct artefact_head head;
    uint64_t check[2];

    if (!file_read(fd, &head, sizeof(head)) || !head_fits(&head, n_name, size))
        return NULL;
    all = malloc((size_t)(size - sizeof(head)) + 1);
    if (!all)
        return NULL;
    if (file_read(fd, all, (size_t)(size - sizeof(head))) && memcmp(all, name, n_name) == 0) {
        digest(name, n_name, all + n_name, (size_t)head.n_bytes, check);
        if (memcmp(check, head.digest, sizeof(check)) == 0) {
            memmove(all, all + n_name, (size_t)head.n_bytes);
            *n_bytes = head.n_bytes;
            return all;
        }
    }
    free(all);
    return NULL;
}

/* -1: there is no such file, or somebody else could have written it. */
static int open_file(const char *path, const char *file, uint64_t *size)
{
    int folder = file_folder(path, false), fd;
    struct stat info;
    const char *why;

    if (folder < 0)
        return -1;
    fd = file_open(folder, file, FILE_OURS, &info, &why);
    close(folder);
    if (fd >= 0)
        *size = (uint64_t)info.st_size;
    return fd;
}

frit_status artefact_get(const char *folder, const struct artefact_name *name, void **bytes,
                         uint64_t *n_bytes, frit_err *err)
{
    char file[NAME_HEX + sizeof(SUFFIX)];
    unsigned char *joined;
    uint64_t size;
    size_t n_name;
    int fd;

    *bytes = NULL;
    *n_bytes = 0;
    joined = name_join(name, &n_name);
    if (!joined)
        return fail_memory(err, n_name);
    file_name(joined, n_name, file);
    fd = open_file(folder, file, &size);
    if (fd >= 0) {
        *bytes = read_file(fd, size, joined, n_name, n_bytes);
        if (*bytes)
            futimens(fd, NULL); /* for the trim */
        close(fd);
    }
    free(joined);
    return FRIT_OK;
}

bool artefact_get_record(const char *folder, const struct artefact_name *name, void *out,
                         uint64_t n_bytes)
{
    uint64_t kept_bytes = 0;
    void *kept = NULL;
    bool good;

    if (!folder || artefact_get(folder, name, &kept, &kept_bytes, NULL) || !kept)
        return false;
    good = kept_bytes == n_bytes;
    if (good)
        memcpy(out, kept, (size_t)n_bytes);
    free(kept);
    return good;
}

/* ---- the limit ---- */

struct kept {
    struct timespec used;
    uint64_t bytes;
    char file[NAME_HEX + sizeof(SUFFIX)];
};

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct kept *)a)->used,
                          *y = &((const struct kept *)b)->used;

    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Of one of our files; false: something else. */
static bool look(int folder, const char *file, struct kept *out)
{
    struct stat st;

    if (strlen(file) != sizeof(out->file) - 1 || strcmp(file + NAME_HEX, SUFFIX) != 0 ||
        fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
        return false;
    out->used = st.st_mtim;
    out->bytes = (uint64_t)st.st_size;
    memcpy(out->file, file, sizeof(out->file));
    return true;
}

/* Removes what was not used for longest until a quarter of the limit is free, and drafts of writers
 * that ended before they were done.  Takes the descriptor. */
static void trim(int fd, uint64_t limit)
{
    uint32_t count = 0, capacity = 0;
    struct kept *kept = NULL;
    uint64_t bytes = 0;
    struct dirent *entry;
    DIR *folder = fdopendir(fd);

    if (!folder) {
        close(fd);
        return;
    }
    while ((entry = readdir(folder)) && array_grow(&kept, &capacity, count, 1, sizeof(*kept))) {
        file_sweep(fd, entry->d_name);
        if (look(fd, entry->d_name, &kept[count]))
            bytes += kept[count++].bytes;
    }
    if (bytes > limit) {
        qsort(kept, count, sizeof(*kept), by_use);
        for (uint32_t i = 0; i < count && bytes > limit / 4 * 3; i++) {
            unlinkat(fd, kept[i].file, 0);
            bytes -= kept[i].bytes;
        }
    }
    free(kept);
    closedir(folder);
}

/* ---- writing ---- */

static frit_status write_file(const char *path, int folder, const char *file,
                              const struct artefact_head *head, const unsigned char *name,
                              const void *bytes, frit_err *err)
{
    const struct file_part parts[] = {
        {head, sizeof(*head)}, {name, (size_t)head->n_name}, {bytes, (size_t)head->n_bytes}};
    int cause = file_replace(folder, file, FILE_PRIVATE, parts, 3);

    return cause ? fail(err, FRIT_IO, "cannot write %s/%s: %s", path, file, strerror(cause))
                 : FRIT_OK;
}

/* A process looks when it first writes, so that what writers left that were killed does not stay,
 * and then now and then. */
static bool is_time_to_trim(uint64_t digest)
{
    static atomic_flag has_trimmed = ATOMIC_FLAG_INIT;

    return !atomic_flag_test_and_set(&has_trimmed) || digest % TRIM_EVERY == 0;
}

frit_status artefact_put(const char *folder, uint64_t limit, const struct artefact_name *name,
                         const void *bytes, uint64_t n_bytes, frit_err *err)
{
    char file[NAME_HEX + sizeof(SUFFIX)];
    struct artefact_head head = {.n_bytes = n_bytes};
    unsigned char *joined;
    size_t n_name;
    frit_status st;
    int fd;

    if (n_bytes > limit / 4)
        return fail(err, FRIT_UNSUPPORTED, "%llu bytes are too many to be kept",
                    (unsigned long long)n_bytes);
    fd = file_folder(folder, true);
    if (fd < 0)
        return fail(err, FRIT_IO, "cannot write in %s: %s", folder, strerror(errno));
    joined = name_join(name, &n_name);
    if (!joined) {
        close(fd);
        return fail_memory(err, n_name);
    }
    memcpy(head.magic, magic, sizeof(magic));
    head.n_name = n_name;
    digest(joined, n_name, bytes, (size_t)n_bytes, head.digest);
    file_name(joined, n_name, file);
    st = write_file(folder, fd, file, &head, joined, bytes, err);
    free(joined);
    if (!st && is_time_to_trim(head.digest[0]))
        trim(fd, limit);
    else
        close(fd);
    return st;
}

/* ---- whole files ---- */

/* Whether it is as it was written, and its name is in the space. */
static bool is_sound(const unsigned char *file, size_t size, const char *space,
                     struct artefact_head *head)
{
    const unsigned char *name = file + sizeof(*head);
    uint64_t parts[3], check[2];

    if (size < sizeof(*head) + sizeof(parts))
        return false;
    memcpy(head, file, sizeof(*head));
    if (head->n_name < sizeof(parts) || head->n_name > size - sizeof(*head) ||
        !head_fits(head, (size_t)head->n_name, size))
        return false;
    digest(name, (size_t)head->n_name, name + head->n_name, (size_t)head->n_bytes, check);
    memcpy(parts, name, sizeof(parts));
    return memcmp(check, head->digest, sizeof(check)) == 0 && parts[0] == strlen(space) &&
           parts[0] <= head->n_name - sizeof(parts) &&
           memcmp(name + sizeof(parts), space, (size_t)parts[0]) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct kept *)a)->file, ((const struct kept *)b)->file);
}

/* malloc'd, in order; takes the descriptor. */
static struct kept *list_files(int fd, uint32_t *count)
{
    uint32_t capacity = 0;
    struct kept *list = NULL;
    struct dirent *entry;
    DIR *folder = fdopendir(fd);

    *count = 0;
    if (!folder)
        close(fd);
    while (folder && (entry = readdir(folder)) &&
           array_grow(&list, &capacity, *count, 1, sizeof(*list)))
        *count += look(fd, entry->d_name, &list[*count]);
    if (folder)
        closedir(folder);
    if (list)
        qsort(list, *count, sizeof(*list), by_name);
    return list;
}

static frit_status visit_file(const char *folder, const char *name, const char *space,
                              artefact_visit *visit, void *ctx, frit_err *err)
{
    frit_status status = FRIT_OK;
    struct artefact_head head;
    unsigned char *file;
    uint64_t size;
    int fd = open_file(folder, name, &size);

    if (fd < 0)
        return FRIT_OK;
    file = malloc((size_t)size + 1);
    if (!file)
        status = fail_memory(err, (size_t)size);
    else if (file_read(fd, file, (size_t)size) && is_sound(file, (size_t)size, space, &head))
        status = visit(ctx, file, (size_t)size, err);
    free(file);
    close(fd);
    return status;
}

frit_status artefact_each(const char *folder, const char *space, artefact_visit *visit, void *ctx,
                          frit_err *err)
{
    frit_status status = FRIT_OK;
    struct kept *list;
    uint32_t count;
    int fd = file_folder(folder, false);

    if (fd < 0)
        return FRIT_OK;
    list = list_files(fd, &count);
    for (uint32_t i = 0; i < count && !status; i++)
        status = visit_file(folder, list[i].file, space, visit, ctx, err);
    free(list);
    return status;
}

frit_status artefact_put_file(const char *folder, uint64_t limit, const char *space,
                              const void *file, size_t n_bytes, frit_err *err)
{
    const unsigned char *name = (const unsigned char *)file + sizeof(struct artefact_head);
    char path[NAME_HEX + sizeof(SUFFIX)];
    struct artefact_head head;
    frit_status status;
    int fd;

    if (!is_sound(file, n_bytes, space, &head))
        return fail(err, FRIT_INVALID, "an artefact is damaged, or of another build of the plugin");
    fd = file_folder(folder, true);
    if (fd < 0)
        return fail(err, FRIT_IO, "cannot write in %s: %s", folder, strerror(errno));
    file_name(name, (size_t)head.n_name, path);
    status = write_file(folder, fd, path, &head, name, name + head.n_name, err);
    if (!status && is_time_to_trim(head.digest[0]))
        trim(fd, limit);
    else
        close(fd);
    return status;
}
