/* SPDX-License-Identifier: Apache-2.0 */
#include "census.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Entries of a folder of /proc, without those of the look itself. */
static uint32_t count_entries(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    uint32_t count = 0;

    if (!folder)
        return 0;
    while ((entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static uint64_t anonymous_bytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long kilobytes = 0;
    char line[256];

    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file) && sscanf(line, "RssAnon: %lu", &kilobytes) != 1)
        ;
    (void)fclose(file);
    return (uint64_t)kilobytes << 10;
}

void census_take(struct census *out)
{
    const struct mallinfo2 heap = mallinfo2();

    (void)malloc_trim(0);
    *out = (struct census){.heap_bytes = heap.uordblks + heap.hblkhd,
                           .rss_bytes = anonymous_bytes(),
                           .descriptors = count_entries("/proc/self/fd"),
                           .threads = count_entries("/proc/self/task")};
}

/* ---- folders; nftw has no context ---- */

static struct folder_census folder;
static long older_by;

static int count_file(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    const char *name = path + where->base;

    if (kind != FTW_F)
        return 0;
    folder.files++;
    folder.bytes += (uint64_t)info->st_size;
    folder.drafts += strstr(name, ".draft") != NULL;
    folder.running += strstr(path, "/running/") != NULL;
    return 0;
}

void census_folder(const char *path, struct folder_census *out)
{
    folder = (struct folder_census){0};
    (void)nftw(path, count_file, 16, FTW_PHYS);
    *out = folder;
}

static int age_file(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    const time_t then = info->st_mtime - older_by;
    const struct timespec times[2] = {{.tv_sec = then}, {.tv_sec = then}};

    (void)where;
    if (kind == FTW_F)
        (void)utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
    return 0;
}

void census_age(const char *path, long seconds)
{
    older_by = seconds;
    (void)nftw(path, age_file, 16, FTW_PHYS);
}

static const char *removed_end;

static int remove_file(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    const size_t length = strlen(path), end = strlen(removed_end);

    (void)info;
    (void)where;
    if (kind == FTW_F && length > end && strcmp(path + length - end, removed_end) == 0)
        (void)unlink(path);
    return 0;
}

void census_remove(const char *path, const char *end)
{
    removed_end = end;
    (void)nftw(path, remove_file, 16, FTW_PHYS);
}
