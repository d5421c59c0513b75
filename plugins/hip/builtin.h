/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the driver itself, compiled when the first of them is launched. */
#ifndef HIP_BUILTIN_H
#define HIP_BUILTIN_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/status.h>

#include "api.h"

struct device;
struct frit_queue;

enum builtin {
    BUILTIN_FILL,  /* memory with a pattern of 8 bytes */
    BUILTIN_CLOCK, /* writes the device's clock */
    BUILTIN_STORE, /* writes words that come as parameters */
    N_BUILTINS
};

enum { BUILTIN_STORE_WORDS = 440 /* at most */ };

/* Protected by the device's `compile_lock` until `is_ready`. */
struct builtins {
    bool is_ready;
    gpu_module module;
    gpu_function functions[N_BUILTINS];
};

/* Enqueue on a stream.  The device must be entered. */
frit_status builtin_fill(struct frit_queue *queue, gpu_stream stream, uint64_t address,
                         uint64_t pattern, uint64_t n, frit_err *err);
frit_status builtin_clock(struct frit_queue *queue, uint64_t address, frit_err *err);
frit_status builtin_store(struct frit_queue *queue, uint64_t address, const uint64_t *words,
                          uint32_t n, frit_err *err);

void builtins_close(struct device *device);

#endif
