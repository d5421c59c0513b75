/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording (frit.capture/1) keeps of its commands, whatever the driver: copies of the
 * commands, the argument blocks of all kernels, laid out in one region of words, and which of these
 * words each replay changes.  Threads: the owner locks. */
#ifndef GPU_CAPTURE_H
#define GPU_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/program.h>
#include <frit/status.h>
#include <frit/types.h>

#include "kernels.h"

struct launch_words;
struct plug;

enum {
    CAPTURE_BLOCK_ALIGN = 16,   /* bytes, of an argument block in the region */
    CAPTURE_MAX_BYTES = 1 << 22 /* of the region */
};

/* A kernel of a launch, or a product, whose words are PRODUCT_WORDS addresses. */
struct captured_kernel {
    struct kernels_launch launch; /* except `words`, which is not valid */
    uint64_t first_word;          /* index in the region of its argument block's first word */
    bool aligned;                 /* addresses of its arguments are multiples of ARG_ALIGN */
    bool addresses_change;        /* replays set addresses of arguments */
    bool params_change;           /* replays may set parameters */
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
    bool aligned;          /* the address must be a multiple of ARG_ALIGN */
};

/* A scalar or a bound of a launch, 8 bytes, that each replay sets. */
struct scalar_patch {
    uint64_t param_offset; /* of the value in the parameters of a replay */
    void *target;          /* in `scalars` or `bounds` of a captured launch */
};

struct capture {
    const struct plug *plug;
    frit_cmd *cmds; /* `launch` of a LAUNCH is not valid: see `launches` */
    struct captured_launch *launches;
    struct captured_kernel *kernels;
    struct address_patch *address_patches;
    struct scalar_patch *scalar_patches;
    uint64_t *words; /* of the region, with the values of the last replay */
    uint64_t n_words, n_address_patches;
    uint32_t n_cmds, n_launches, n_kernels, n_scalar_patches;
};

/* The arguments of the slot `record`. */
struct capture_source {
    const frit_cmd *cmds;
    uint32_t count, stride;
    const frit_param *params;
    uint32_t n_params, param_stride;
    /* FRIT_UNSUPPORTED with a message for a command that the driver cannot record. */
    frit_status (*check)(void *ctx, const frit_cmd *cmd, frit_err *err);
    void *ctx;
};

/* Copies the commands, each after `check`.  On failure nothing is left to be freed. */
frit_status capture_init(struct capture *capture, const struct plug *plug,
                         const struct capture_source *source, struct launch_words *buffer,
                         frit_err *err);
void capture_fini(struct capture *capture);

/* Whether replays change any word. */
bool capture_changes(const struct capture *capture);
/* Sets the words to those of a replay with the parameters `block`. */
frit_status capture_patch(struct capture *capture, const void *block, struct launch_words *buffer,
                          frit_err *err);

#endif
