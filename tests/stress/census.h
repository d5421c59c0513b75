/* SPDX-License-Identifier: Apache-2.0 */
/* What a process and a folder hold. */
#ifndef TESTS_STRESS_CENSUS_H
#define TESTS_STRESS_CENSUS_H

#include <stdint.h>

struct census {
    uint64_t heap_bytes; /* allocated and not freed */
    uint64_t rss_bytes;  /* resident and of no file, after free memory was given back */
    uint32_t descriptors, threads;
};

void census_take(struct census *out);

struct folder_census {
    uint32_t files, drafts,
        running; /* drafts: of writers; running: of processes that are, or died */
    uint64_t bytes;
};

/* Of the folder and those in it. */
void census_folder(const char *path, struct folder_census *out);
/* Makes every file look older by some seconds. */
void census_age(const char *path, long seconds);
/* Removes the files whose names end so. */
void census_remove(const char *path, const char *end);

#endif
