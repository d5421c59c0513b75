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
    bool is_urgent;      /* the last batch is submitted at once */
    struct batch *batch; /* that is recorded at present */
    uint32_t n_cmds;     /* of this list in the batch */
    uint64_t cookie;     /* of the launch that begins these; 0: no launch */
    uint64_t value;      /* timeline value of the last batch that was submitted; 0: none */
};

/* Begins to record a list: in the open batch (gather.h) if there is one, else in a new batch. */
frit_status record_begin(struct recorder *r, frit_err *err);
/* Ends the recording, which went as `status` and `failure` report.  Submits the last batch or
 * leaves it open, and sets `value` to the list's timeline value.  A failure after which some
 * commands will run becomes a fault of the queue, and FRIT_OK is returned. */
frit_status record_end(struct recorder *r, frit_status status, frit_err *failure, uint64_t *value,
                       frit_err *err);
/* Counts a command that the caller records next; begins the next batch if this one is full. */
frit_status record_count(struct recorder *r, uint64_t cookie, frit_err *err);
/* Records a command that submit_check_command has accepted. */
frit_status record_command(struct recorder *r, const frit_cmd *cmd, frit_err *err);
/* Allocates bytes of the parameter ring, at a multiple of 16, for what the batch reads.  Submits
 * the batch and begins another one if it holds all of the ring itself. */
frit_status record_reserve(struct recorder *r, uint64_t bytes, uint64_t *offset, frit_err *err);
/* Allocates bytes of the staging ring in the same way, see ring_take. */
frit_status record_stage(struct recorder *r, uint64_t bytes, void *copy_to, uint64_t *offset,
                         frit_err *err);
/* Orders all commands so far before those that follow. */
void record_barrier(struct recorder *r);
/* Records a copy between buffers; none for 0 bytes. */
void record_copy(struct recorder *r, VkBuffer from, uint64_t from_offset, VkBuffer to,
                 uint64_t to_offset, uint64_t bytes);

#endif
