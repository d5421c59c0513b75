/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include <frit/op.h>

/* The library refuses groups of more than 2,048 calls. */
enum { MAX_CALLS = 1024 };

/* -1: it has none. */
static int type_of(uint32_t dtype)
{
    switch (dtype) {
    case FRIT_F64:
        return NCCL_FLOAT64;
    case FRIT_F32:
        return NCCL_FLOAT32;
    case FRIT_F16:
        return NCCL_FLOAT16;
    case FRIT_BF16:
        return NCCL_BFLOAT16;
    case FRIT_I64:
        return NCCL_INT64;
    case FRIT_I32:
        return NCCL_INT32;
    case FRIT_I8:
        return NCCL_INT8;
    case FRIT_U64:
        return NCCL_UINT64;
    case FRIT_U32:
        return NCCL_UINT32;
    case FRIT_U8:
        return NCCL_UINT8;
    default:
        return -1;
    }
}

bool launch_can_combine(uint32_t dtype)
{
    return type_of(dtype) >= 0;
}

/* What only moves elements moves bytes, of any type. */
static int launch_buffer(const frit_group *group, const struct operation *op,
                         const frit_collective_buffer *buffer, const char **call)
{
    const struct nccl *nccl = &group->communicator->library->nccl;
    const int combine = op->combine == FRIT_CHOICE_combine_mean ? NCCL_AVG : NCCL_SUM;
    const size_t bytes = frit_storage_bytes(buffer->dtype, (int64_t)buffer->count);
    const void *from = buffer->from;
    void *into = buffer->into;

    switch (op->kind) {
    case FRIT_COLLECTIVE_ALL_REDUCE:
        *call = "ncclAllReduce";
        return nccl->AllReduce(from, into, buffer->count, type_of(buffer->dtype), combine,
                               group->comm, group->stream);
    case FRIT_COLLECTIVE_REDUCE_SCATTER:
        *call = "ncclReduceScatter";
        return nccl->ReduceScatter(from, into, buffer->count, type_of(buffer->dtype), combine,
                                   group->comm, group->stream);
    case FRIT_COLLECTIVE_BROADCAST:
        *call = "ncclBroadcast";
        return nccl->Broadcast(op->root == group->rank ? from : into, into, bytes, NCCL_UINT8,
                               (int)op->root, group->comm, group->stream);
    default:
        *call = "ncclAllGather";
        return nccl->AllGather(from, into, bytes, NCCL_UINT8, group->comm, group->stream);
    }
}

static int launch_barrier(const frit_group *group, const char **call)
{
    void *memory = (void *)(uintptr_t)group->barrier; /* NOLINT(performance-no-int-to-ptr) */

    *call = "ncclAllReduce";
    return group->communicator->library->nccl.AllReduce(memory, memory, 1, NCCL_FLOAT32, NCCL_SUM,
                                                        group->comm, group->stream);
}

static bool is_error(int result)
{
    return result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS;
}

/* The first error stays; the group of calls is ended in any case. */
static int launch_some(const frit_group *group, const struct operation *op, uint32_t first,
                       uint32_t end, const char **call)
{
    const struct nccl *nccl = &group->communicator->library->nccl;
    int result, ended;

    *call = "ncclGroupStart";
    result = nccl->GroupStart();
    if (is_error(result))
        return result;
    if (op->kind == FRIT_COLLECTIVE_BARRIER)
        result = launch_barrier(group, call);
    for (uint32_t i = first; i < end && !is_error(result); i++) {
        if (op->buffers[i].count)
            result = launch_buffer(group, op, &op->buffers[i], call);
    }
    ended = nccl->GroupEnd();
    if (is_error(result))
        return result;
    *call = "ncclGroupEnd";
    return ended;
}

int launch_operation(const frit_group *group, const struct operation *op, uint32_t *first,
                     const char **call)
{
    const uint32_t begin = *first, left = op->n_buffers - begin;

    *first = begin + (left < MAX_CALLS ? left : MAX_CALLS);
    return launch_some(group, op, begin, *first, call);
}
