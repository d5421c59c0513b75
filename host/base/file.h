/* SPDX-License-Identifier: Apache-2.0 */
/* Files that others may have put there: opened without waiting for what they are not, believed only
 * where nobody else could have written them, replaced whole.  Threads: any. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum file_trust {
    FILE_NAMED,     /* named by the user: anybody's, through any link */
    FILE_INSTALLED, /* not a link, root's or the effective user's, writable by nobody else */
    FILE_OURS       /* the same, but not root's for another user: in a cache */
};

/* Opens a regular file for reading, relative to the folder `at` or AT_FDCWD; a pipe or a device in
 * its place is a failure and never waited for.  -1: failed, with errno and, as text, the reason in
 * *why. */
int file_open(int at, const char *path, enum file_trust trust, struct stat *info, const char **why);
/* Why a file is not one of ours; NULL: it is. */
const char *file_not_ours(const struct stat *info);
/* Reads exactly `n_bytes`; false: a failure, or the file ends before. */
bool file_read(int fd, void *bytes, size_t n_bytes);
/* Writes all bytes at the descriptor's position; false, with errno: not all. */
bool file_write(int fd, const void *bytes, size_t n_bytes);

/* Writes a file that the user named, of which other programs may read a part meanwhile: a pipe or a
 * device too, where somebody reads it already.  NULL, or why it cannot be written. */
const char *file_output(const char *path, const char *bytes, size_t n_bytes);

/* Opens a folder of ours, with `make` created with mode 0700 where it is not there, as are the
 * folders above it.  -1 with errno: it is not there, or belongs to another user, or is writable by
 * others; for the last two a warning is logged, once for each folder. */
int file_folder(const char *path, bool make);

struct file_part {
    const void *bytes;
    size_t n_bytes;
};

/* Modes of new files; the second as the user's umask makes it. */
enum { FILE_PRIVATE = 0600, FILE_SHARED = 0666 };
/* Writes a file whole or not at all, by way of a draft in the same folder; replaces an older one.
 * Returns 0 or errno. */
int file_replace(int at, const char *path, mode_t mode, const struct file_part *parts,
                 uint32_t n_parts);
/* The same in steps, for what is not in memory as a whole.  `at` and `path` stay valid until the
 * end.  After a failure the other steps do nothing. */
struct file_draft {
    int at;
    const char *path;
    int fd;
    int cause; /* errno of the first failure; 0: none */
    char name[PATH_MAX];
};
void file_draft_begin(struct file_draft *draft, int at, const char *path, mode_t mode);
void file_draft_write(struct file_draft *draft, const void *bytes, size_t n_bytes);
/* With `keep` and without a failure the draft becomes the file; otherwise it is removed.  Returns
 * 0 or errno. */
int file_draft_end(struct file_draft *draft, bool keep);
/* Whether the name is that of a draft; and removing a draft whose writer has ended without it. */
bool file_is_draft(const char *name);
void file_sweep(int folder, const char *name);

/* Between the two calls a write beyond RLIMIT_FSIZE fails with EFBIG; the process, which may have a
 * handler, gets no SIGXFSZ for it.  In one thread; may be nested. */
struct file_limit {
    sigset_t mask; /* as it was */
    bool pending;  /* the signal was pending before */
};
void file_limit_begin(struct file_limit *limit);
void file_limit_end(const struct file_limit *limit);

#endif
