/* SPDX-License-Identifier: Apache-2.0 */
/* A Vulkan loader that forwards all calls to the real one, counts some and, on request, fails
 * calls, reports small limits or holds the timeline.  A test gets its `fake_loader` by dlsym. */
#ifndef FAKE_LOADER_H
#define FAKE_LOADER_H

#include <stdatomic.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

struct fake_loader {
    atomic_int calls;        /* number of calls so far of functions that can be made to fail */
    int failing_call;        /* which of them fails, counted from 1; 0: none */
    VkResult result;         /* of that call; 0: an error that the function may return */
    const char *failed_name; /* function that failed */
    const char *_Atomic failing_name; /* function whose next call fails; NULL: none */
    int is_lost;                      /* each query of the timeline returns VK_ERROR_DEVICE_LOST */
    int small_limits;                 /* 3 workgroups along x, 32 bytes of push constants */
    atomic_int submissions;           /* calls of QueueSubmit */
    atomic_int barriers;              /* calls of CmdPipelineBarrier */
    atomic_int is_held;               /* the timeline is not seen to get beyond `held_at` */
    uint64_t held_at;
};

#endif
