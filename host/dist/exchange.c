/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/exchange.h"

#include <stdlib.h>

#include "base/fail.h"
#include "run/rank.h"
#include "train/cell.h"
#include "train/section.h"

frit_status exchange_words(struct frit_rank *rank, frit_device *device, const int64_t *mine,
                           uint64_t n, int64_t *all, frit_err *err)
{
    const uint64_t bytes = n * sizeof(*mine);
    frit_tensor *words = frit_from_host(device, FRIT_I64, FRIT_SHAPE((int64_t)n), mine, bytes);
    frit_tensor *gathered =
        frit_all_gather(frit_take(words), rank->size, .group = (int64_t)rank->number);

    return frit_read(frit_take(gathered), all, rank->size * bytes, err);
}

static frit_status check_values(const struct schedule *schedule, frit_tensor *const *values,
                                frit_err *err)
{
    for (uint32_t i = 0; i < schedule->n_params; i++) {
        if (frit_tensor_status(values[i]))
            return fail(err, frit_tensor_status(values[i]), "parameter %s: %s",
                        schedule->params[i].name, frit_tensor_error(values[i]));
    }
    return FRIT_OK;
}

frit_status exchange_params(struct frit_rank *rank, frit_device *device,
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
    (void)frit_sync(device, NULL); /* what failed before, in another group, is not of this */
    for (uint32_t i = 0; i < n; i++)
        values[i] =
            cell_own(frit_broadcast_from(params[i], (int64_t)root, .group = (int64_t)rank->number));
    section_end(&section);
    st = frit_sync(device, err);
    if (!st)
        st = check_values(schedule, values, err);
    for (uint32_t i = 0; i < n; i++) {
        if (st) {
            cell_release(&values[i]);
        } else {
            frit_release(params[i]);
            params[i] = values[i];
        }
    }
    free(values);
    return st;
}
