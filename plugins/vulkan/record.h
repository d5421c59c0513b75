/* SPDX-License-Identifier: Apache-2.0 */
/* A recording on its way: what the commands of one submit become.  Under the queue's lock. */
#ifndef VULKAN_RECORD_H
#define VULKAN_RECORD_H

#include "driver.h"

struct recording {
    struct device *device;
    struct batch *batch;
    uint32_t n;     /* commands in the batch */
    bool dirty;     /* some of them since the last barrier */
    uint64_t value; /* of the last part handed over, 0: none */
};

/* A first part, to be ended by batch_end. */
frit_status record_begin(struct recording *r, frit_err *err);
/* One command that was checked. */
frit_status record_command(struct recording *r, const frit_cmd *cmd, frit_err *err);

/* Bytes of the ring of parameters at a multiple of 16.  What the part itself holds of it is free
 * once it runs, so that the part may be handed over here. */
frit_status record_take(struct recording *r, uint64_t bytes, uint64_t *offset, frit_err *err);
void record_copy(struct recording *r, VkBuffer from, uint64_t from_offset, VkBuffer to,
                 uint64_t to_offset, uint64_t bytes);
frit_status record_fill(struct recording *r, const frit_cmd *cmd, frit_err *err);

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

/* A DISPATCH of a kernel of foreign_load. */
frit_status foreign_check(struct device *device, const frit_cmd *cmd, frit_err *err);
frit_status record_foreign(struct recording *r, const frit_cmd *cmd, frit_err *err);

/* What a kernel reads: the words of its spaces, then how spaces are found by the numbers of groups;
 * see spirv.h. */
struct block {
    uint32_t n_words;
    uint32_t shift, n_first, n_table;
    uint64_t bytes;
};

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

/* What could be wrong with a command. */
frit_status submit_check(struct device *device, const frit_cmd *cmd, frit_err *err);

#endif
