/* SPDX-License-Identifier: Apache-2.0 */
/* Recording of commands into batches.  Everything here needs the queue's lock. */
#ifndef VULKAN_RECORD_H
#define VULKAN_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>

#include "api.h"

struct batch;
struct device;

/* The recording of one list of commands.  A long list becomes several batches: when one is full it
 * is submitted and the next one begins. */
struct recorder {
    struct device *device;
    struct batch *batch; /* that is recorded at present */
    uint32_t n_cmds;     /* in the batch */
    bool needs_barrier;  /* there are commands after the last barrier */
    uint64_t value;      /* timeline value of the last batch that was submitted; 0: none */
};

/* Begins the first batch, or the next one.  The caller submits the last one by batch_flush. */
frit_status record_begin(struct recorder *r, frit_err *err);
/* Records a command that submit_check_command has accepted. */
frit_status record_command(struct recorder *r, const frit_cmd *cmd, frit_err *err);
/* Allocates bytes of the parameter ring, at a multiple of 16, for what the batch reads.  Submits
 * the batch and begins another one if it holds all of the ring itself. */
frit_status record_reserve(struct recorder *r, uint64_t bytes, uint64_t *offset, frit_err *err);
/* Records a copy between buffers; none for 0 bytes. */
void record_copy(struct recorder *r, VkBuffer from, uint64_t from_offset, VkBuffer to,
                 uint64_t to_offset, uint64_t bytes);

#endif
