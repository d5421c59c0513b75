/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Device memory that is host memory: what util/serial.h and util/hosted.h work on.  A driver with
 * memory of another kind completes struct frit_memory itself, and does not include this file. */
#ifndef UTIL_MEMORY_H
#define UTIL_MEMORY_H

#include <stdbool.h>

#include <frit/types.h>

struct frit_memory {
    char *data;
    uint64_t bytes;
    bool is_imported; /* the application's: not in the device's budget, and not to be freed */
};

#endif
