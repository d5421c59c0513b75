/* SPDX-License-Identifier: Apache-2.0 */
/* flock and not fcntl: it belongs to the open file, so that another host of the same process sees
 * that this one is alive. */
#include "load/breadcrumb_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load/artefact.h"
#include "load/breadcrumb.h"

enum { SLOT_BYTES = 28, CALL_PATH_BYTES = 992, ATTEMPTS = 4 };

static const char magic[8] = "FritRun1";
static const char prefix[] = "process-";

/* As it lies in the file. */
struct layout {
    char magic[8];
    struct {
        atomic_uint set; /* the texts are whole */
        char slot[SLOT_BYTES], path[CALL_PATH_BYTES];
    } calls[BREADCRUMB_CALLS];
};

struct breadcrumb_file {
    int fd;
    struct layout *layout;
    char path[PATH_MAX];
};

/* ---- the file of this process ---- */

/* Another process may find the file before it is locked, and remove it. */
static bool is_locked_in_place(int fd)
{
    struct stat st;

    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink == 1;
}

static int open_new(const char *folder, char path[PATH_MAX])
{
    for (int i = 0; i < ATTEMPTS; i++) {
        int fd;

        if (snprintf(path, PATH_MAX, "%s/running/%sXXXXXX", folder, prefix) >= PATH_MAX)
            return -1;
        fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
            return -1;
        if (is_locked_in_place(fd))
            return fd;
        close(fd);
    }
    return -1;
}

struct breadcrumb_file *breadcrumb_file_create(const char *folder)
{
    struct breadcrumb_file *file = calloc(1, sizeof(*file));
    char running[PATH_MAX];
    void *map = MAP_FAILED;

    if (!file)
        return NULL;
    file->fd = -1;
    if (snprintf(running, sizeof(running), "%s/running", folder) < PATH_MAX &&
        artefact_make_folder(running, NULL) == FRIT_OK)
        file->fd = open_new(folder, file->path);
    if (file->fd >= 0 && posix_fallocate(file->fd, 0, sizeof(*file->layout)) == 0)
        map = mmap(NULL, sizeof(*file->layout), PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    if (map == MAP_FAILED) {
        breadcrumb_file_remove(file);
        return NULL;
    }
    file->layout = map;
    memcpy(file->layout->magic, magic, sizeof(magic));
    return file;
}

void breadcrumb_file_remove(struct breadcrumb_file *file)
{
    if (!file)
        return;
    if (file->layout)
        munmap(file->layout, sizeof(*file->layout));
    if (file->fd >= 0) {
        unlink(file->path);
        close(file->fd);
    }
    free(file);
}

void breadcrumb_file_set(struct breadcrumb_file *file, unsigned place, const char *path,
                         const char *slot)
{
    if (!file || strlen(path) >= CALL_PATH_BYTES)
        return;
    snprintf(file->layout->calls[place].slot, SLOT_BYTES, "%s", slot);
    snprintf(file->layout->calls[place].path, CALL_PATH_BYTES, "%s", path);
    atomic_store(&file->layout->calls[place].set, 1);
}

void breadcrumb_file_clear(struct breadcrumb_file *file, unsigned place)
{
    if (file)
        atomic_store(&file->layout->calls[place].set, 0);
}

/* ---- files of processes that are gone ---- */

typedef void on_death(void *ctx, const char *path, const char *slot);

static bool is_ours(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           !(st.st_mode & 077);
}

static void report(struct layout *dead, on_death *died, void *ctx)
{
    if (memcmp(dead->magic, magic, sizeof(magic)) != 0)
        return;
    for (unsigned i = 0; i < BREADCRUMB_CALLS; i++) {
        char *slot = dead->calls[i].slot, *path = dead->calls[i].path;

        slot[SLOT_BYTES - 1] = path[CALL_PATH_BYTES - 1] = '\0';
        if (atomic_load(&dead->calls[i].set) == 1 && path[0] == '/')
            died(ctx, path, slot);
    }
}

/* A file that is being made is shorter, and goes too: its process makes another. */
static void collect(int folder, const char *name, on_death *died, void *ctx)
{
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct layout *dead;

    if (fd < 0)
        return;
    if (is_ours(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(folder, name, 0) == 0 &&
        (dead = malloc(sizeof(*dead))) != NULL) {
        if (read(fd, dead, sizeof(*dead)) == (ssize_t)sizeof(*dead))
            report(dead, died, ctx);
        free(dead);
    }
    close(fd);
}

void breadcrumb_collect(const char *folder, on_death *died, void *ctx)
{
    char running[PATH_MAX];
    struct dirent *entry;
    DIR *list;

    if (!folder || snprintf(running, sizeof(running), "%s/running", folder) >= PATH_MAX)
        return;
    list = opendir(running);
    if (!list)
        return;
    while ((entry = readdir(list)) != NULL)
        if (strncmp(entry->d_name, prefix, sizeof(prefix) - 1) == 0)
            collect(dirfd(list), entry->d_name, died, ctx);
    closedir(list);
}
