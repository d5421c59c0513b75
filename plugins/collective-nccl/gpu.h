/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine uses of the device's runtime, CUDA's driver API or HIP.  Results and flags that
 * it acts upon have the same values in both. */
#ifndef NCCL_GPU_H
#define NCCL_GPU_H

#include <stddef.h>
#include <stdint.h>

typedef struct gpu_context_object *gpu_context;
typedef struct gpu_stream_object *gpu_stream;
typedef struct gpu_event_object *gpu_event;

enum { GPU_SUCCESS = 0, GPU_OUT_OF_MEMORY = 2, GPU_NOT_READY = 600 };
enum { GPU_STREAM_NON_BLOCKING = 1, GPU_EVENT_NO_TIMING = 2 };
enum { GPU_BUS_ID = 32 };

/* GPU_FUNCTION(member, name in HIP, name in CUDA, argument types...): each returns int, 0 for
 * success. */
#define GPU_FUNCTIONS(GPU_FUNCTION)                                                              \
    GPU_FUNCTION(Init, "hipInit", "cuInit", unsigned)                                            \
    GPU_FUNCTION(DeviceGetPCIBusId, "hipDeviceGetPCIBusId", "cuDeviceGetPCIBusId", char *, int,  \
                 int)                                                                            \
    GPU_FUNCTION(MemAlloc, "hipMalloc", "cuMemAlloc_v2", uint64_t *, size_t)                     \
    GPU_FUNCTION(MemFree, "hipFree", "cuMemFree_v2", uint64_t)                                   \
    GPU_FUNCTION(StreamCreate, "hipStreamCreateWithFlags", "cuStreamCreate", gpu_stream *,       \
                 unsigned)                                                                       \
    GPU_FUNCTION(StreamDestroy, "hipStreamDestroy", "cuStreamDestroy_v2", gpu_stream)            \
    GPU_FUNCTION(StreamWaitEvent, "hipStreamWaitEvent", "cuStreamWaitEvent", gpu_stream,         \
                 gpu_event, unsigned)                                                            \
    GPU_FUNCTION(EventCreate, "hipEventCreateWithFlags", "cuEventCreate", gpu_event *, unsigned) \
    GPU_FUNCTION(EventDestroy, "hipEventDestroy", "cuEventDestroy_v2", gpu_event)                \
    GPU_FUNCTION(EventRecord, "hipEventRecord", "cuEventRecord", gpu_event, gpu_stream)          \
    GPU_FUNCTION(EventQuery, "hipEventQuery", "cuEventQuery", gpu_event)

/* The same for functions that only one of the two has; "" for the other. */
#define GPU_OWN_FUNCTIONS(GPU_FUNCTION)                               \
    GPU_FUNCTION(ContextPush, "", "cuCtxPushCurrent_v2", gpu_context) \
    GPU_FUNCTION(ContextPop, "", "cuCtxPopCurrent_v2", gpu_context *) \
    GPU_FUNCTION(ContextGetDevice, "", "cuCtxGetDevice", int *)       \
    GPU_FUNCTION(GetDevice, "hipGetDevice", "", int *)                \
    GPU_FUNCTION(SetDevice, "hipSetDevice", "", int)

struct gpu {
#define GPU_MEMBER(member, hip, cuda, ...) int (*member)(__VA_ARGS__);
    GPU_FUNCTIONS(GPU_MEMBER)
    GPU_OWN_FUNCTIONS(GPU_MEMBER)
#undef GPU_MEMBER
};

#endif
