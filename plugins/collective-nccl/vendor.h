/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between NVIDIA and AMD. */
#ifndef NCCL_VENDOR_H
#define NCCL_VENDOR_H

#include <stdbool.h>

#include <frit/types.h>

#include "gpu.h"

enum { VENDOR_CUDA, VENDOR_HIP, VENDORS };

/* The calling thread's device before it was changed. */
struct scope {
    int previous;
};

struct vendor {
    frit_str space;               /* of pointers, by native.h */
    bool is_hip;                  /* which names functions of the runtime have */
    const char *name;             /* of the library, in texts */
    const char *const *libraries; /* file names */
    const char *stem;             /* what the names of its files begin with */
    const char *const *runtimes;  /* file names */
    const char *hint;             /* what to install */
    frit_str library_option, runtime_option;
    /* Makes `device`, the object of frit_group_params, the calling thread's. */
    int (*enter)(const struct gpu *gpu, void *device, struct scope *scope);
    void (*leave)(const struct gpu *gpu, const struct scope *scope);
    /* The number of the device that was entered. */
    int (*get_number)(const struct gpu *gpu, int *out);
};

extern const struct vendor vendors[VENDORS];

#endif
