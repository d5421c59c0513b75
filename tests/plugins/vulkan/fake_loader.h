/* SPDX-License-Identifier: Apache-2.0 */
/* A Vulkan loader that forwards all calls to the real one and, on request, fails calls or reports
 * small limits.  A test gets its `fake_loader` by dlsym. */
#ifndef FAKE_LOADER_H
#define FAKE_LOADER_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

struct fake_loader {
    int calls;               /* number of calls so far of functions that can be made to fail */
    int failing_call;        /* which of them fails, counted from 1; 0: none */
    VkResult result;         /* of that call; 0: an error that the function may return */
    const char *failed_name; /* function that failed */
    int is_lost;             /* each query of the timeline returns VK_ERROR_DEVICE_LOST */
    int small_limits;        /* 3 workgroups along x, 32 bytes of push constants */
};

#endif
