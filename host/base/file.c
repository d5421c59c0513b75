/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever may write in a folder may exchange its files at any time, so a folder of ours is checked
 * as a file is, and then files are opened relative to its descriptor. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

enum {
    FOLDER_MODE = 0700,
    OTHERS_WRITE = S_IWGRP | S_IWOTH,
    MAX_DRAFTS = 100,       /* names that are tried */
    DRAFT_SECONDS = 15 * 60 /* after which a draft has no writer any more */
};
#define DRAFT ".draft"

/* ---- reading ---- */

/* NULL: none. */
static const char *objection(const struct stat *info, enum file_trust trust)
{
    if (!S_ISREG(info->st_mode))
        return "not a regular file";
    if (trust == FILE_NAMED)
        return NULL;
    if (info->st_uid != geteuid() && (trust == FILE_OURS || info->st_uid != 0))
        return "it belongs to another user";
    return info->st_mode & OTHERS_WRITE ? "others may write it" : NULL;
}

const char *file_not_ours(const struct stat *info)
{
    return objection(info, FILE_OURS);
}

int file_open(int at, const char *path, enum file_trust trust, struct stat *info, const char **why)
{
    const int links = trust == FILE_NAMED ? 0 : O_NOFOLLOW;
    int fd = openat(at, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | links);

    if (fd < 0 || fstat(fd, info)) {
        int cause = errno;

        if (fd >= 0)
            close(fd);
        *why = strerror(cause);
        errno = cause;
        return -1;
    }
    *why = objection(info, trust);
    if (!*why)
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

bool file_read(int fd, void *bytes, size_t n_bytes)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = read(fd, (char *)bytes + done, n_bytes - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* ---- folders ---- */

/* False where a warning was logged for this folder before. */
static bool is_news(const struct stat *info)
{
    static atomic_uint_fast64_t warned[16];
    uint64_t key = ((uint64_t)info->st_dev << 40 ^ (uint64_t)info->st_ino) | 1;
    atomic_uint_fast64_t *entry = &warned[key / 2 % (sizeof(warned) / sizeof(warned[0]))];

    return atomic_exchange(entry, key) != key;
}

static bool is_folder_of_ours(const char *path, const struct stat *info)
{
    const bool foreign = info->st_uid != geteuid();

    if (!foreign && !(info->st_mode & OTHERS_WRITE))
        return true;
    if (is_news(info))
        log_write(FRIT_LOG_WARN, "file",
                  "%s: nothing is kept there, since %s; %s a folder of your own in [frit] "
                  "artefacts and [fusion] store",
                  path, foreign ? "it belongs to another user" : "others may write in it",
                  foreign ? "name" : "chmod go-w it, or name");
    return false;
}

static bool make_folder(const char *folder)
{
    char path[PATH_MAX];
    size_t length = strlen(folder);

    if (length >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(path, folder, length + 1);
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        path[i] = '\0';
        if (mkdir(path, FOLDER_MODE) && errno != EEXIST)
            return false;
        path[i] = folder[i];
    }
    return true;
}

int file_folder(const char *path, bool make)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    struct stat info;
    int fd = open(path, flags);

    if (fd < 0 && errno == ENOENT && make && make_folder(path))
        fd = open(path, flags);
    if (fd < 0 || (!fstat(fd, &info) && is_folder_of_ours(path, &info)))
        return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

/* ---- writing ---- */

bool file_write(int fd, const void *bytes, size_t n_bytes)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = write(fd, (const char *)bytes + done, n_bytes - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

const char *file_output(const char *path, const char *bytes, size_t n_bytes)
{
    struct file_limit limit;
    int cause = 0, fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                             FILE_SHARED);

    if (fd < 0)
        return strerror(errno);
    (void)fcntl(fd, F_SETFL, O_WRONLY); /* a pipe with a reader may be waited for */
    file_limit_begin(&limit);
    if (!file_write(fd, bytes, n_bytes))
        cause = errno;
    file_limit_end(&limit);
    if (close(fd) && !cause)
        cause = errno;
    return cause ? strerror(cause) : NULL;
}

bool file_is_draft(const char *name)
{
    size_t length = strlen(name);

    return name[0] == '.' && length > sizeof(DRAFT) &&
           strcmp(name + length - (sizeof(DRAFT) - 1), DRAFT) == 0;
}

/* Creates .NAME.PROCESS-NUMBER.draft beside the file; `draft` has a capacity of PATH_MAX. */
static int create_draft(int at, const char *path, mode_t mode, char *draft)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int fd = -1;

    for (int i = 0; i < MAX_DRAFTS && fd < 0; i++) {
        if (snprintf(draft, PATH_MAX, "%.*s.%s.%ld-%d" DRAFT, (int)(name - path), path, name,
                     (long)getpid(), i) >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = openat(at, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

void file_draft_begin(struct file_draft *draft, int at, const char *path, mode_t mode)
{
    draft->at = at;
    draft->path = path;
    draft->fd = create_draft(at, path, mode, draft->name);
    draft->cause = draft->fd < 0 ? errno : 0;
}

void file_draft_write(struct file_draft *draft, const void *bytes, size_t n_bytes)
{
    struct file_limit limit;

    if (draft->cause)
        return;
    file_limit_begin(&limit);
    if (!file_write(draft->fd, bytes, n_bytes))
        draft->cause = errno;
    file_limit_end(&limit);
}

int file_draft_end(struct file_draft *draft, bool keep)
{
    if (draft->fd < 0)
        return draft->cause;
    if (close(draft->fd) && !draft->cause)
        draft->cause = errno;
    if (keep && !draft->cause && renameat(draft->at, draft->name, draft->at, draft->path))
        draft->cause = errno;
    if (!keep || draft->cause)
        unlinkat(draft->at, draft->name, 0);
    return draft->cause;
}

int file_replace(int at, const char *path, mode_t mode, const struct file_part *parts,
                 uint32_t n_parts)
{
    struct file_draft draft;

    file_draft_begin(&draft, at, path, mode);
    for (uint32_t i = 0; i < n_parts; i++)
        file_draft_write(&draft, parts[i].bytes, parts[i].n_bytes);
    return file_draft_end(&draft, true);
}

void file_sweep(int folder, const char *name)
{
    struct stat info;

    if (file_is_draft(name) && !fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) &&
        S_ISREG(info.st_mode) && info.st_mtim.tv_sec < time(NULL) - DRAFT_SECONDS)
        unlinkat(folder, name, 0);
}

/* ---- the limit of file sizes ---- */

static void only_size_signal(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGXFSZ);
}

void file_limit_begin(struct file_limit *limit)
{
    sigset_t ours, pending;

    only_size_signal(&ours);
    pthread_sigmask(SIG_BLOCK, &ours, &limit->mask);
    limit->pending = !sigpending(&pending) && sigismember(&pending, SIGXFSZ) == 1;
}

/* The kernel sends the signal to the thread that writes, so only that one takes it. */
void file_limit_end(const struct file_limit *limit)
{
    const struct timespec none = {0};
    int cause = errno;
    sigset_t ours;

    only_size_signal(&ours);
    if (!limit->pending)
        while (sigtimedwait(&ours, NULL, &none) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &limit->mask, NULL);
    errno = cause;
}
