/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/params.h"

#include <stdlib.h>

#include "base/fail.h"
#include "dist/exchange.h"
#include "run/rank.h"
#include "train/cell.h"
#include "train/section.h"

static frit_tensor *make(frit_device *device, const struct op_type *type, const void *data,
                         uint64_t bytes)
{
    frit_dims dims = {.rank = type->rank};

    for (uint32_t d = 0; d < type->rank; d++)
        dims.dim[d] = type->dims[d];
    return cell_own(frit_from_host(device, type->dtype, dims, data, bytes));
}

/* The value of one parameter; `*out` gets a reference on ranks other than the root. */
static frit_status spread(struct frit_rank *rank, frit_device *device, const struct op_type *type,
                          uint32_t root, frit_tensor *param, frit_tensor **out, frit_err *err)
{
    const uint64_t bytes = frit_storage_bytes(type->dtype, op_elements(type));
    const uint64_t words = (bytes + 3) / 4 * 4;
    void *data = calloc(1, words + 4);
    frit_status st = data ? FRIT_OK : fail_memory(err, words);

    if (!st && rank->rank == root)
        st = frit_read(param, data, bytes, err);
    if (!st)
        st = exchange_spread(rank, device, root, data, words, err);
    if (!st && rank->rank != root) {
        *out = make(device, type, data, bytes);
        if (frit_tensor_status(*out))
            st = fail(err, frit_tensor_status(*out), "%s", frit_tensor_error(*out));
    }
    free(data);
    return st;
}

frit_status params_spread(struct frit_rank *rank, frit_device *device,
                          const struct schedule *schedule, uint32_t root, frit_tensor **params,
                          frit_err *err)
{
    const uint32_t n = schedule->n_params;
    frit_tensor **values = calloc(n, sizeof(frit_tensor *));
    struct section section;
    frit_status st =
        values ? section_begin(&section, device, err) : fail_memory(err, n * sizeof(frit_tensor *));

    if (st) {
        free(values);
        return st;
    }
    for (uint32_t i = 0; i < n && !st; i++) {
        if (spread(rank, device, &schedule->params[i].type, root, params[i], &values[i], err))
            st = fail_context(err, "parameter %s", schedule->params[i].name);
    }
    section_end(&section);
    for (uint32_t i = 0; i < n; i++) {
        if (st) {
            cell_release(&values[i]);
        } else if (values[i]) {
            frit_release(params[i]);
            params[i] = values[i];
        }
    }
    free(values);
    return st;
}
