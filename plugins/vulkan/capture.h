/* SPDX-License-Identifier: Apache-2.0 */
/* frit.capture/1.  A recording has the words of all its kernels (addresses, then parameters) in one
 * block, which they read by address.  A few command buffers of equal commands, each with a block of
 * its own in memory that the host writes, are made as replays overlap; a replay puts its words in
 * place and submits one. */
#ifndef VULKAN_CAPTURE_H
#define VULKAN_CAPTURE_H

#include "record.h"

enum { INSTANCES = 8, BLOCK_ALIGN = 16, MOST_BYTES = 1 << 22 };

/* A kernel of a launch, and its part of the block. */
struct kernel {
    struct kernels_launch is; /* but for its words */
    uint64_t first;           /* word of the block */
    bool aligned;
    enum kernel_words {
        WORDS_FAR,    /* all are read from the block */
        WORDS_PUSHED, /* what follows the addresses is constant and stands in push constants */
        WORDS_NEAR    /* all are constant: the kernel is that of a launch which is submitted */
    } form;
};

/* A launch whose words change. */
struct captured {
    frit_launch launch; /* without arguments; points into what follows */
    frit_program program;
    frit_launch_spec spec;
    frit_scalar *scalars;
    int64_t *bounds;
    uint32_t first, n_kernels;
    bool late; /* scalars or bounds are parameters */
};

/* A word that is an address. */
struct address {
    uint64_t at; /* in the block of parameters */
    uint64_t origin, extent;
    uint64_t word;
    bool aligned; /* must be a multiple of SPIRV_ALIGN */
};

/* Eight bytes of a launch. */
struct number {
    uint64_t at;
    void *to;
};

struct frit_recording {
    frit_cmd *cmds; /* LAUNCH: `launch` is not used */
    struct captured *launches;
    struct kernel *kernels;
    struct address *addresses;
    struct number *numbers;
    uint64_t *words; /* of the block, as the last replay left them */
    uint64_t n_words, n_addresses;
    uint32_t n_cmds, n_launches, n_kernels, n_numbers;
    frit_memory blocks; /* one for each instance, mapped */
    VkCommandPool pool;
    uint32_t n_instances;
    struct batch instances[INSTANCES];
};

static inline uint64_t block_bytes(const frit_recording *recording)
{
    return recording->n_words * sizeof(uint64_t); /* a multiple of BLOCK_ALIGN */
}

#endif
