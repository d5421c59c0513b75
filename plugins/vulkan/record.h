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

/* What a kernel reads: the words of its spaces, then how spaces are found by the numbers of groups;
 * see spirv.h. */
struct block {
    uint32_t n_words;
    uint32_t shift, n_first, n_table;
    uint64_t bytes;
};

#endif
