/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings (frit.capture/1): lists of commands that are recorded into command buffers once and
 * replayed with other arguments.
 *
 * The argument blocks of all kernels of a recording lie in one region of memory, which the kernels
 * read by address.  A replay writes that region and submits a command buffer.  Since the device may
 * still read the region for an earlier replay, a recording has several instances: a command buffer
 * and a region each, equal but for the region's address. */
#ifndef VULKAN_CAPTURE_H
#define VULKAN_CAPTURE_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/status.h>
#include <frit/types.h>

#include "gpu/capture.h"

#include "api.h"
#include "batch.h"
#include "buffer.h"
#include "compile.h"

enum { MAX_INSTANCES = 8 /* of a recording */ };

struct frit_recording {
    struct capture capture;
    frit_memory regions; /* of all instances, one after the other; mapped */
    VkCommandPool pool;
    uint32_t n_instances;
    struct batch instances[MAX_INSTANCES]; /* `pool` of each is NULL */
};

/* Bytes of a region, a multiple of CAPTURE_BLOCK_ALIGN. */
static inline uint64_t region_bytes(const frit_recording *recording)
{
    return recording->capture.n_words * sizeof(uint64_t);
}

/* Where a kernel of a recording reads its argument block: as submitted if no word changes, split if
 * only addresses do. */
enum block_mode capture_mode(const struct captured_kernel *kernel);

/* Slots `record` and `release` of frit.capture/1. */
frit_status capture_record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                           uint32_t stride, const frit_param *params, uint32_t n_params,
                           uint32_t param_stride, frit_recording **out, frit_err *err);
void capture_release(void *self, frit_recording *recording);

#endif
