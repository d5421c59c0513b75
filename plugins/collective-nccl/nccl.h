/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine uses of NCCL and RCCL, which have the same functions under the same names. */
#ifndef NCCL_NCCL_H
#define NCCL_NCCL_H

#include <stddef.h>

#include "gpu.h"

typedef struct nccl_comm_object *nccl_comm;

struct nccl_id {
    char bytes[128];
};

/* The fields of ncclConfig_t of 2.14, the first version that has it: a newer library takes the
 * shorter struct, and its own defaults for the fields behind it. */
struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking;
};

enum { NCCL_CONFIG_VERSION = 21400 };
#define NCCL_CONFIG_MAGIC 0xcafebeefu

enum nccl_result {
    NCCL_SUCCESS = 0,
    NCCL_UNHANDLED_GPU_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INTERNAL_ERROR = 3,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6,
    NCCL_IN_PROGRESS = 7,
    NCCL_TIMEOUT = 8
};

enum nccl_type {
    NCCL_INT8 = 0,
    NCCL_UINT8 = 1,
    NCCL_INT32 = 2,
    NCCL_UINT32 = 3,
    NCCL_INT64 = 4,
    NCCL_UINT64 = 5,
    NCCL_FLOAT16 = 6,
    NCCL_FLOAT32 = 7,
    NCCL_FLOAT64 = 8,
    NCCL_BFLOAT16 = 9
};

enum nccl_combine { NCCL_SUM = 0, NCCL_AVG = 4 };

/* NCCL_FUNCTION(name, argument types...): each returns an enum nccl_result as int.
 * CommInitRankConfig, which creates communicators without blocking, came with 2.14. */
#define NCCL_FUNCTIONS(NCCL_FUNCTION)                                                              \
    NCCL_FUNCTION(GetVersion, int *)                                                               \
    NCCL_FUNCTION(GetUniqueId, struct nccl_id *)                                                   \
    NCCL_FUNCTION(CommInitRankConfig, nccl_comm *, int, struct nccl_id, int, struct nccl_config *) \
    NCCL_FUNCTION(CommDestroy, nccl_comm)                                                          \
    NCCL_FUNCTION(CommAbort, nccl_comm)                                                            \
    NCCL_FUNCTION(CommGetAsyncError, nccl_comm, int *)                                             \
    NCCL_FUNCTION(GroupStart, void)                                                                \
    NCCL_FUNCTION(GroupEnd, void)                                                                  \
    NCCL_FUNCTION(AllReduce, const void *, void *, size_t, int, int, nccl_comm, gpu_stream)        \
    NCCL_FUNCTION(ReduceScatter, const void *, void *, size_t, int, int, nccl_comm, gpu_stream)    \
    NCCL_FUNCTION(Broadcast, const void *, void *, size_t, int, int, nccl_comm, gpu_stream)        \
    NCCL_FUNCTION(AllGather, const void *, void *, size_t, int, nccl_comm, gpu_stream)

struct nccl {
#define NCCL_MEMBER(name, ...) int (*name)(__VA_ARGS__);
    NCCL_FUNCTIONS(NCCL_MEMBER)
#undef NCCL_MEMBER
    /* NULL where the library lacks them. */
    int (*CommFinalize)(nccl_comm comm);
    const char *(*GetErrorString)(int result);
    const char *(*GetLastError)(nccl_comm comm);
};

#endif
