/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of programs that the kernel compiler made. */
#ifndef HIP_LAUNCH_H
#define HIP_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/program.h>
#include <frit/status.h>

#include "api.h"

struct code_form;
struct device;
struct frit_queue;
struct kernels_launch;

/* Enqueues all kernels of a launch.  Needs the queue's lock. */
frit_status launch_enqueue(struct frit_queue *queue, const frit_launch *launch, frit_err *err);

/* Where a launch goes. */
struct launch_target {
    struct device *device;
    gpu_stream stream;
};

/* Enqueues all phases of a kernel.  `words`, `n` of them, are its parameters after the first word:
 * the argument block or what refers to it, as the form wants. */
frit_status launch_phases(const struct launch_target *target, const struct kernels_launch *kernel,
                          const struct code_form *form, const uint64_t *words, uint32_t n,
                          frit_err *err);
/* Enqueues a grid of a function, in several parts where it exceeds the device's limits.  The first
 * word of `params` is set to the number of each part's first block along y and z. */
frit_status launch_grid(const struct launch_target *target, gpu_function function,
                        const uint32_t grid[3], const uint32_t group[3], uint32_t shared_bytes,
                        uint64_t *params, uint32_t n_params, frit_err *err);

#endif
