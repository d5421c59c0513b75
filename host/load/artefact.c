/* SPDX-License-Identifier: Apache-2.0 */
/* A file: head, name, bytes.  It is written under another name and then renamed, so that readers
 * see all of it or nothing; the digest detects what a crash left. */
#include "load/artefact.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

enum { NAME_HEX = 32, FOLDER_MODE = 0700, FILE_MODE = 0600, TRIM_EVERY = 16 };
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

static bool read_all(int fd, void *to, size_t n_bytes)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = read(fd, (char *)to + done, n_bytes - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* Code that somebody else could have written is not run. */
static bool is_ours(int fd, uint64_t *size)
{
    struct stat st;

    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
        return false;
    *size = (uint64_t)st.st_size;
    return true;
}

static bool head_fits(const struct artefact_head *head, size_t n_name, uint64_t size)
{
    return memcmp(head->magic, magic, sizeof(magic)) == 0 && head->n_name == n_name &&
           size >= sizeof(*head) + n_name && head->n_bytes == size - sizeof(*head) - n_name;
}

/* NULL: not as it was written, or no memory. */
static unsigned char *read_file(int fd, const unsigned char *name, size_t n_name, uint64_t *n_bytes)
{
    unsigned char *all;
    struct artefact_head head;
    uint64_t size, check[2];

    if (!is_ours(fd, &size) || !read_all(fd, &head, sizeof(head)) ||
        !head_fits(&head, n_name, size))
        return NULL;
    all = malloc((size_t)(size - sizeof(head)) + 1);
    if (!all)
        return NULL;
    if (read_all(fd, all, (size_t)(size - sizeof(head))) && memcmp(all, name, n_name) == 0) {
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

frit_status artefact_get(const char *folder, const struct artefact_name *name, void **bytes,
                         uint64_t *n_bytes, frit_err *err)
{
    char file[NAME_HEX + sizeof(SUFFIX)], path[4096];
    unsigned char *joined;
    size_t n_name;
    int fd;

    *bytes = NULL;
    *n_bytes = 0;
    joined = name_join(name, &n_name);
    if (!joined)
        return fail_memory(err, n_name);
    file_name(joined, n_name, file);
    fd = (size_t)snprintf(path, sizeof(path), "%s/%s", folder, file) < sizeof(path)
             ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
             : -1;
    if (fd >= 0) {
        *bytes = read_file(fd, joined, n_name, n_bytes);
        if (*bytes)
            futimens(fd, NULL); /* for the trim */
        close(fd);
    }
    free(joined);
    return FRIT_OK;
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

/* Removes what was not used for longest until a quarter of the limit is free. */
static void trim(const char *path, uint64_t limit)
{
    uint32_t count = 0, capacity = 0;
    struct kept *kept = NULL;
    uint64_t bytes = 0;
    struct dirent *entry;
    DIR *folder = opendir(path);

    if (!folder)
        return;
    while ((entry = readdir(folder)) && array_grow(&kept, &capacity, count, 1, sizeof(*kept))) {
        if (look(dirfd(folder), entry->d_name, &kept[count]))
            bytes += kept[count++].bytes;
    }
    if (bytes > limit) {
        qsort(kept, count, sizeof(*kept), by_use);
        for (uint32_t i = 0; i < count && bytes > limit / 4 * 3; i++) {
            unlinkat(dirfd(folder), kept[i].file, 0);
            bytes -= kept[i].bytes;
        }
    }
    free(kept);
    closedir(folder);
}

/* ---- writing ---- */

static frit_status make_folder(const char *folder, frit_err *err)
{
    char path[4096];
    size_t length = strlen(folder);

    if (length >= sizeof(path))
        return fail(err, FRIT_INVALID, "the folder's name is too long");
    memcpy(path, folder, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        path[i] = '\0';
        if (mkdir(path, FOLDER_MODE) && errno != EEXIST)
            return fail(err, FRIT_IO, "cannot make %s: %s", path, strerror(errno));
        path[i] = folder[i];
    }
    return FRIT_OK;
}

static bool write_all(int fd, const void *from, size_t n_bytes)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = write(fd, (const char *)from + done, n_bytes - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static frit_status write_file(const char *folder, const char *file,
                              const struct artefact_head *head, const unsigned char *name,
                              const void *bytes, frit_err *err)
{
    char path[4096], draft[4096];
    bool ok;
    int fd;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, file) >= sizeof(path) ||
        (size_t)snprintf(draft, sizeof(draft), "%s/.%s.XXXXXX", folder, file) >= sizeof(draft))
        return fail(err, FRIT_INVALID, "the folder's name is too long");
    fd = mkstemp(draft); /* mode 0600 */
    if (fd < 0)
        return fail(err, FRIT_IO, "cannot write in %s: %s", folder, strerror(errno));
    ok = write_all(fd, head, sizeof(*head)) && write_all(fd, name, (size_t)head->n_name) &&
         write_all(fd, bytes, (size_t)head->n_bytes);
    ok = !close(fd) && ok && !rename(draft, path);
    if (ok)
        return FRIT_OK;
    (void)fail(err, FRIT_IO, "cannot write %s: %s", path, strerror(errno));
    unlink(draft);
    return FRIT_IO;
}

frit_status artefact_put(const char *folder, uint64_t limit, const struct artefact_name *name,
                         const void *bytes, uint64_t n_bytes, frit_err *err)
{
    char file[NAME_HEX + sizeof(SUFFIX)];
    struct artefact_head head = {.n_bytes = n_bytes};
    unsigned char *joined;
    size_t n_name;
    frit_status st;

    if (n_bytes > limit / 4)
        return fail(err, FRIT_UNSUPPORTED, "%llu bytes are too many to be kept",
                    (unsigned long long)n_bytes);
    joined = name_join(name, &n_name);
    if (!joined)
        return fail_memory(err, n_name);
    memcpy(head.magic, magic, sizeof(magic));
    head.n_name = n_name;
    digest(joined, n_name, bytes, (size_t)n_bytes, head.digest);
    file_name(joined, n_name, file);
    st = make_folder(folder, err);
    if (!st)
        st = write_file(folder, file, &head, joined, bytes, err);
    if (!st && head.digest[0] % TRIM_EVERY == 0) /* now and then */
        trim(folder, limit);
    free(joined);
    return st;
}
