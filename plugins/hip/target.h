/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel compiler and its emitter need to know about an adapter.  Threads: any. */
#ifndef HIP_TARGET_H
#define HIP_TARGET_H

#include "emit/c/ctext.h"

struct adapter;
struct kir_target;

/* Limits that the driver sets itself. */
enum {
    TARGET_MAX_LANES = 2048,  /* of the largest groups */
    TARGET_LANES = 1024,      /* of a group: 256 threads with 4 lanes each */
    TARGET_VALUE_WORDS = 448, /* words of an argument block in a kernel's parameters (4 KiB) */
    TARGET_MAX_WORDS = 65536, /* arguments and parameters of all spaces of a kernel */
    TARGET_MAX_ARGS = 16384   /* arguments of all spaces of a launch */
};

void target_fill_text(const struct adapter *adapter, struct ctext_target *out);
void target_fill_kernels(const struct adapter *adapter, struct kir_target *out);

#endif
