/* SPDX-License-Identifier: Apache-2.0 */
/* The vendors' types and functions as the driver uses them, so that no header of theirs is needed.
 * HIP and CUDA's driver API agree on all of this: handles are pointers, addresses have 64 bits,
 * and results are int, 0 for success. */
#ifndef HIP_API_H
#define HIP_API_H

#include <stddef.h>
#include <stdint.h>

typedef int gpu_result;
typedef uint64_t gpu_ptr;
typedef struct gpu_context_object *gpu_context;
typedef struct gpu_stream_object *gpu_stream;
typedef struct gpu_event_object *gpu_event;
typedef struct gpu_module_object *gpu_module;
typedef struct gpu_function_object *gpu_function;
typedef struct gpu_graph_object *gpu_graph;
typedef struct gpu_graph_exec_object *gpu_graph_exec;
typedef struct gpu_program_object *gpu_program; /* of the run-time compiler */

/* Results that the driver acts upon; their values are the same for both vendors. */
enum {
    GPU_SUCCESS = 0,
    GPU_OUT_OF_MEMORY = 2,
    GPU_NO_DEVICE = 100,
    GPU_NO_SUCH_DEVICE = 101, /* of Init: HIP found none */
    GPU_NOT_READY = 600
};

/* Flags, again the same for both. */
enum {
    GPU_STREAM_NON_BLOCKING = 1, /* not ordered with the default stream */
    GPU_EVENT_BLOCKING_SYNC = 1, /* EventSynchronize sleeps */
    GPU_EVENT_NO_TIMING = 2,
    GPU_HOST_PORTABLE = 1, /* pinned memory is pinned for every device */
    GPU_HOST_MAPPED = 2,   /* and has a device address, equal to the host's */
    GPU_CAPTURE_RELAXED = 2
};

/* Keys of the last argument of LaunchKernel, a list of keys and values that vendor.launch_end ends.
 */
#define GPU_LAUNCH_BUFFER      ((void *)(uintptr_t)1)
#define GPU_LAUNCH_BUFFER_SIZE ((void *)(uintptr_t)2)

struct api {
#define RUNTIME(member, hip, cuda, ...)  gpu_result (*member)(__VA_ARGS__);
#define OPTIONAL(member, hip, cuda, ...) gpu_result (*member)(__VA_ARGS__);
#define COMPILER(member, hip, cuda, ...) gpu_result (*member)(__VA_ARGS__);
#include "syms.def"
};

/* The libraries for products.  Results of each are of its own enumeration; 0 is success. */
struct lt_api {
#define LT(member, hip, cuda, ...) gpu_result (*member)(__VA_ARGS__);
#include "syms.def"
};

struct rocblas_api {
#define ROCBLAS(member, name, ...) gpu_result (*member)(__VA_ARGS__);
#include "syms.def"
};

#endif
