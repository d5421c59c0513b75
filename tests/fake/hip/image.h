/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects: a header, which begins with the magic of an ELF file, followed by object code for
 * the host's processor. */
#ifndef FAKE_HIP_IMAGE_H
#define FAKE_HIP_IMAGE_H

#include <stdint.h>

#define IMAGE_MAGIC "\177ELFFAKE"

#ifdef FAKE_HIP
#define IMAGE_ARCH "gfx90a:sramecc+:xnack-"
#else
#define IMAGE_ARCH "sm_90a"
#endif

struct image {
    char magic[8];
    char arch[48];
    uint64_t bytes; /* of what follows */
};

#endif
