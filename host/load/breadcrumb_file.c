/* SPDX-License-Identifier: Apache-2.0 */
/* flock and not fcntl: it belongs to the open file, so that another host of the same process sees
 * that this one is alive. */
#include "load/breadcrumb_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "load/breadcrumb.h"

enum { SLOT_BYTES = 28, CALL_PATH_BYTES = 992, ATTEMPTS = 4 };

static const char magic[8] = "FritRun1";
static const char prefix[] = "process-";

/* As it lies in the file. */
struct breadcrumb_layout {
    char magic[8];
    struct {
        atomic_uint set; /* the texts are whole */
        char slot[SLOT_BYTES], path[CALL_PATH_BYTES];
    } calls[BREADCRUMB_CALLS];
};

struct breadcrumb_file {
    int folder, fd;
    struct breadcrumb_layout *layout;
    char name[64];
};

/* ---- the file of this process ---- */

static int open_running(const char *folder, bool make)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof(path), "%s/running", folder) < PATH_MAX ? file_folder(path, make)
                                                                         : -1;
}

/* Another process may find the file before it is locked, and remove it. */
static bool is_locked_in_place(int fd)
{
    struct stat st;

    return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink == 1;
}

static int open_new(struct breadcrumb_file *file)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        struct timespec time;
        int fd;

        clock_gettime(CLOCK_MONOTONIC, &time);
        snprintf(file->name, sizeof(file->name), "%s%ld-%lx", prefix, (long)getpid(), time.tv_nsec);
        fd = openat(file->folder, file->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    0600);
        if (fd >= 0 && is_locked_in_place(fd))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

static struct breadcrumb_layout *map_new(int fd)
{
    struct file_limit limit;
    void *map = MAP_FAILED;

    file_limit_begin(&limit);
    if (posix_fallocate(fd, 0, sizeof(struct breadcrumb_layout)) == 0)
        map =
            mmap(NULL, sizeof(struct breadcrumb_layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    file_limit_end(&limit);
    return map == MAP_FAILED ? NULL : map;
}

struct breadcrumb_file *breadcrumb_file_create(const char *folder)
{
    struct breadcrumb_file *file = calloc(1, sizeof(*file));

    if (!file)
        return NULL;
    file->folder = open_running(folder, true);
    file->fd = file->folder >= 0 ? open_new(file) : -1;
    file->layout = file->fd >= 0 ? map_new(file->fd) : NULL;
    if (!file->layout) {
        breadcrumb_file_remove(file);
        return NULL;
    }
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
        (void)unlinkat(file->folder, file->name, 0);
        close(file->fd);
    }
    if (file->folder >= 0)
        close(file->folder);
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

static void report(struct breadcrumb_layout *dead, on_death *died, void *ctx)
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
    const char *why;
    struct stat info;
    struct breadcrumb_layout *dead;
    const int fd = file_open(folder, name, FILE_OURS, &info, &why);

    if (fd < 0)
        return;
    dead = malloc(sizeof(*dead));
    if (dead && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(folder, name, 0) == 0 &&
        file_read(fd, dead, sizeof(*dead)))
        report(dead, died, ctx);
    free(dead);
    close(fd);
}

void breadcrumb_collect(const char *folder, on_death *died, void *ctx)
{
    const int running = folder ? open_running(folder, false) : -1;
    struct dirent *entry;
    DIR *list;

    list = running >= 0 ? fdopendir(running) : NULL;
    if (!list) {
        if (running >= 0)
            close(running);
        return;
    }
    while ((entry = readdir(list)) != NULL)
        if (strncmp(entry->d_name, prefix, sizeof(prefix) - 1) == 0)
            collect(running, entry->d_name, died, ctx);
    closedir(list);
}
