/* SPDX-License-Identifier: Apache-2.0 */
/* Launches. */
#ifndef VULKAN_LAUNCH_H
#define VULKAN_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/program.h>
#include <frit/status.h>

#include "record.h"

struct device;
struct kernels_launch;
struct recording;

/* Whether the launch is one of ours, inside its buffers. */
frit_status launch_check(struct device *device, const frit_launch *launch, frit_err *err);
/* The latter alone. */
frit_status launch_check_ranges(struct device *device, const frit_launch *launch, frit_err *err);
/* The first kernel of a launch, for kernels_next; its words are the queue's. */
frit_status launch_kernels(struct device *device, const frit_launch *launch,
                           struct kernels_launch *out, frit_err *err);
frit_status record_launch(struct recording *r, const frit_launch *launch, frit_err *err);
/* The bound pipeline over a grid: beyond the device's limits several dispatches, each with its base
 * in the first 16 bytes of push constants. */
void record_grid(struct recording *r, const uint32_t grid[3]);
struct block block_of(const struct kernels_launch *kernel);
/* Whether all addresses are aligned. */
bool block_fill(const struct block *b, const struct kernels_launch *kernel,
                const frit_launch *launch, void *to);
/* A kernel that has its block inside, with all words of it. */
void record_pushed(struct recording *r, const struct kernels_launch *kernel, const uint64_t *words,
                   bool aligned);
/* A kernel whose block lies at an address, after code_make_far; `params`: the words of the block
 * that follow its addresses, if these are constant and the block is `inside`, else NULL. */
void record_by_address(struct recording *r, const struct kernels_launch *kernel, uint64_t address,
                       const uint64_t *params, bool aligned);

#endif
