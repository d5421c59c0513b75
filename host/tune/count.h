/* SPDX-License-Identifier: Apache-2.0 */
/* How many decisions a file has, where no store is open. */
#ifndef TUNE_COUNT_H
#define TUNE_COUNT_H

#include <stddef.h>
#include <stdint.h>

struct tune_count_params {
    const char *path; /* of the file, which is only read */
    uint32_t wait_ms; /* that it may take */
    /* How well a namespace fits; 0: not at all. */
    size_t (*fit)(void *ctx, const char *space);
    void *ctx;
};

/* The keys that have records in the namespace that fits best; 0 where there is none, or no file
 * that can be read. */
uint64_t tune_count(const struct tune_count_params *params);

#endif
