/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "run/rank.h"

static frit_status sum(struct frit_rank *rank, frit_device *device, uint32_t dtype, void *data,
                       uint64_t bytes, frit_err *err)
{
    const int64_t n = (int64_t)(bytes / (dtype == FRIT_I64 ? sizeof(int64_t) : sizeof(int32_t)));
    frit_tensor *mine = frit_from_host(device, dtype, FRIT_SHAPE(n), data, bytes);
    frit_tensor *all = frit_all_reduce(frit_take(mine), .combine = FRIT_CHOICE_combine_sum,
                                       .group = (int64_t)rank->number);

    return frit_read(frit_take(all), data, bytes, err);
}

frit_status exchange_gather(struct frit_rank *rank, frit_device *device, const int64_t *mine,
                            uint64_t n, int64_t *all, frit_err *err)
{
    memset(all, 0, rank->size * n * sizeof(*all));
    memcpy(all + rank->rank * n, mine, n * sizeof(*mine));
    return sum(rank, device, FRIT_I64, all, rank->size * n * sizeof(*all), err);
}

frit_status exchange_spread(struct frit_rank *rank, frit_device *device, uint32_t root, void *data,
                            uint64_t bytes, frit_err *err)
{
    if (rank->rank != root)
        memset(data, 0, bytes);
    return sum(rank, device, FRIT_I32, data, bytes, err);
}
