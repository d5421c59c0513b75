/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations compute: by plain loops over the ranks in their order.  16-bit floats are
 * summed in f32 and rounded once; a mean divides once, where the real libraries multiply first. */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "collective-nccl/nccl.h"
#include "reference/value.h"

#include "comm.h"

static const uint32_t dtypes[] = {
    [NCCL_INT8] = FRIT_I8,       [NCCL_UINT8] = FRIT_U8,    [NCCL_INT32] = FRIT_I32,
    [NCCL_UINT32] = FRIT_U32,    [NCCL_INT64] = FRIT_I64,   [NCCL_UINT64] = FRIT_U64,
    [NCCL_FLOAT16] = FRIT_F16,   [NCCL_FLOAT32] = FRIT_F32, [NCCL_FLOAT64] = FRIT_F64,
    [NCCL_BFLOAT16] = FRIT_BF16,
};

size_t collective_type_bytes(int type)
{
    return type >= 0 && (size_t)type < sizeof dtypes / sizeof *dtypes
               ? (size_t)value_size(dtypes[type])
               : 0;
}

/* ---- the ranks meet ---- */

static void wait_a_little(int n)
{
    const struct timespec pause = {.tv_nsec = 20000};

    if (n < 20)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

/* False: the communicator was aborted. */
static bool meet(struct nccl_comm_object *comm)
{
    struct region *region = comm->region;
    const uint32_t phase = region->n_barriers;

    if (atomic_fetch_add(&region->n_at_barrier, 1) + 1 == (uint32_t)comm->size) {
        region->n_at_barrier = 0;
        region->n_barriers++;
    }
    for (int n = 0; region->n_barriers == phase; n++) {
        if (comm->aborted)
            return false;
        wait_a_little(n);
    }
    return true;
}

/* ---- combining ---- */

static union value combined(const struct call *call, size_t at)
{
    const uint32_t dtype = dtypes[call->type];
    const enum value_kind kind = value_kind(dtype);
    const int n = call->comm->size;
    union value sum = {0};
    float narrow = 0;

    for (int r = 0; r < n; r++) {
        const union value value = value_get(dtype, call->comm->region->data[r] + at);

        if (kind != VALUE_REAL) {
            sum.uint += value.uint;
        } else {
            sum.real = r ? sum.real + value.real : value.real;
            narrow = r ? narrow + (float)value.real : (float)value.real;
        }
    }
    if (kind == VALUE_REAL && dtype != FRIT_F64)
        sum.real = (double)(call->op == NCCL_AVG ? narrow / (float)n : narrow);
    else if (call->op != NCCL_AVG)
        return sum;
    else if (kind == VALUE_REAL)
        sum.real /= n;
    else if (kind == VALUE_SINT)
        sum.sint /= n;
    else
        sum.uint /= (uint64_t)n;
    return sum;
}

/* ---- a piece of each ---- */

/* Moves `bytes` bytes of each rank's `from` into the region. */
static bool publish(const struct call *call, size_t at, size_t bytes)
{
    struct nccl_comm_object *comm = call->comm;

    if (call->kind != CALL_BROADCAST || call->root == comm->rank)
        memcpy(comm->region->data[comm->rank], (const char *)call->from + at, bytes);
    return meet(comm);
}

static bool take(const struct call *call, size_t at, size_t bytes)
{
    struct nccl_comm_object *comm = call->comm;
    const size_t element = collective_type_bytes(call->type);
    char *into = (char *)call->into + at;

    if (call->kind == CALL_BROADCAST)
        memcpy(into, comm->region->data[call->root], bytes);
    for (int r = 0; r < comm->size && call->kind == CALL_ALL_GATHER; r++)
        memcpy(into + (size_t)r * call->count * element, comm->region->data[r], bytes);
    for (size_t i = 0; i < bytes && call->kind <= CALL_REDUCE_SCATTER; i += element)
        value_put(dtypes[call->type], into + i, combined(call, i));
    return meet(comm);
}

static bool run_part(const struct call *call, size_t from, bool is_taken)
{
    const size_t total = call->count * collective_type_bytes(call->type);

    for (size_t at = 0; at < total; at += PIECE) {
        const size_t bytes = total - at < PIECE ? total - at : PIECE;

        if (!publish(call, from + at, bytes))
            return false;
        if (!(is_taken ? take(call, at, bytes) : meet(call->comm)))
            return false;
    }
    return true;
}

static void run(const struct call *call)
{
    const struct nccl_comm_object *comm = call->comm;
    const size_t bytes = call->count * collective_type_bytes(call->type);

    if (call->kind != CALL_REDUCE_SCATTER) {
        (void)run_part(call, 0, true);
        return;
    }
    for (int part = 0; part < comm->size; part++) {
        if (!run_part(call, (size_t)part * bytes, part == comm->rank))
            return;
    }
}

void collective_run(const void *data)
{
    const struct call *call = data;
    struct nccl_comm_object *comm = call->comm;

    comm->n_running++;
    for (int n = 0; fake_nccl.kernels_hang && !comm->aborted; n++)
        wait_a_little(n);
    if (!comm->aborted)
        run(call);
    comm->n_running--;
    comm_unref(comm);
}
