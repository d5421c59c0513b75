/* SPDX-License-Identifier: Apache-2.0 */
/* A Vulkan loader that hands everything to the real one, but fails calls and claims small limits as
 * it is told.  A test reaches `fake_loader` in the loaded library. */
#ifndef FAKE_LOADER_H
#define FAKE_LOADER_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

struct fake_loader {
    int calls;        /* that can fail, so far */
    int fail;         /* the call of this number fails; 0: none */
    VkResult result;  /* that it gives; 0: one that suits the function */
    const char *name; /* of the call that failed */
    int lost;         /* every question about the timeline says that the device is lost */
    int small;        /* grids of 3 groups, 32 bytes of push constants */
};

#endif
