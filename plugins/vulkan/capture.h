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

#include <stdbool.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/program.h>
#include <frit/status.h>
#include <frit/types.h>

#include "kernels.h"

#include "api.h"
#include "batch.h"
#include "buffer.h"
#include "compile.h"

enum {
    MAX_INSTANCES = 8,         /* of a recording */
    BLOCK_ALIGN = 16,          /* bytes, of an argument block in its region */
    MAX_REGION_BYTES = 1 << 22 /* of a region */
};

/* A kernel of a launch. */
struct captured_kernel {
    struct kernels_launch launch; /* except `words`, which is not valid */
    uint64_t first_word;          /* index in the region of its argument block's first word */
    bool aligned;                 /* addresses of its arguments are multiples of SPIRV_ALIGN */
    enum block_mode mode;
};

/* A launch with copies of what it points to, without arguments. */
struct captured_launch {
    frit_launch launch;
    frit_program program;
    frit_launch_spec spec;
    frit_scalar *scalars; /* owned */
    int64_t *bounds;      /* owned */
    uint32_t first_kernel, n_kernels;
    bool has_scalar_patches; /* scalars or bounds differ between replays */
};

/* A word of the region that each replay sets to the address of an argument or a workspace. */
struct address_patch {
    uint64_t param_offset; /* of the frit_place in the parameters of a replay */
    uint64_t origin;       /* bytes from the address in the frit_place to element 0 */
    uint64_t extent;       /* bytes from that address on that the kernel may access */
    uint64_t word;         /* index in the region */
    bool aligned;          /* the address must be a multiple of SPIRV_ALIGN */
};

/* A scalar or a bound of a launch, 8 bytes, that each replay sets. */
struct scalar_patch {
    uint64_t param_offset; /* of the value in the parameters of a replay */
    void *target;          /* in `scalars` or `bounds` of a captured launch */
};

struct frit_recording {
    frit_cmd *cmds; /* `launch` of a LAUNCH is not valid: see `launches` */
    struct captured_launch *launches;
    struct captured_kernel *kernels;
    struct address_patch *address_patches;
    struct scalar_patch *scalar_patches;
    uint64_t *words; /* of the region, with the values of the last replay */
    uint64_t n_words, n_address_patches;
    uint32_t n_cmds, n_launches, n_kernels, n_scalar_patches;
    frit_memory regions; /* of all instances, one after the other; mapped */
    VkCommandPool pool;
    uint32_t n_instances;
    struct batch instances[MAX_INSTANCES]; /* `pool` of each is NULL */
};

/* Bytes of a region, a multiple of BLOCK_ALIGN. */
static inline uint64_t region_bytes(const frit_recording *recording)
{
    return recording->n_words * sizeof(uint64_t);
}

/* Slots `record` and `release` of frit.capture/1. */
frit_status capture_record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                           uint32_t stride, const frit_param *params, uint32_t n_params,
                           uint32_t param_stride, frit_recording **out, frit_err *err);
void capture_release(void *self, frit_recording *recording);

#endif
