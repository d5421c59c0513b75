/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of programs that the kernel compiler made.  All functions need the queue's lock. */
#ifndef VULKAN_LAUNCH_H
#define VULKAN_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frit/program.h>
#include <frit/status.h>

struct device;
struct kernels_launch;
struct recorder;

/* Records all kernels of a launch. */
frit_status launch_record(struct recorder *r, const frit_launch *launch, frit_err *err);
/* Records a grid of the bound pipeline: one dispatch, or several if it exceeds the device's limits.
 * The first 12 bytes of push constants are the index of the dispatch's first workgroup. */
void launch_record_grid(struct recorder *r, const uint32_t grid[3]);
/* Records a kernel whose argument block, `words`, is put into push constants. */
void launch_record_pushed(struct recorder *r, const struct kernels_launch *kernel,
                          const uint64_t *words, bool aligned);
/* Records a kernel that reads its argument block at `address` when it runs.  `params` are the
 * parameters of the block, which are put into push constants; NULL: the kernel reads them at
 * `address` too.  compile_for_capture has made the pipelines for that. */
void launch_record_by_address(struct recorder *r, const struct kernels_launch *kernel,
                              uint64_t address, const uint64_t *params, bool aligned);

#endif
