/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads there are. */
#ifndef TESTS_THREADS_H
#define TESTS_THREADS_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

enum { EXITING = 4 /* PF_EXITING of Linux */ };

/* A thread that was joined may be listed for a while yet, but is on its way out. */
static inline bool is_alive(int tasks, const char *thread)
{
    char name[64], text[512] = "";
    unsigned flags = EXITING;
    const char *behind;
    ssize_t n = -1;
    int file;

    snprintf(name, sizeof(name), "%.20s/stat", thread);
    file = openat(tasks, name, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        n = read(file, text, sizeof(text) - 1);
        close(file);
    }
    behind = n > 0 ? strrchr(text, ')') : NULL; /* of its name */
    if (behind)
        sscanf(behind, ") %*c %*d %*d %*d %*d %*d %u", &flags);
    return !(flags & EXITING);
}

/* Of the process. */
static inline uint32_t count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    uint32_t count = 0;

    assert_non_null(tasks);
    while ((entry = readdir(tasks)))
        count += entry->d_name[0] != '.' && is_alive(dirfd(tasks), entry->d_name);
    closedir(tasks);
    return count;
}

#endif
