/* SPDX-License-Identifier: Apache-2.0 */
/* A host with the reference driver, and small helpers, for tests of the entry points. */
#ifndef TESTS_API_RIG_H
#define TESTS_API_RIG_H

#include "unit.h"

#include <string.h>

#include <frit/frit.h>
#include <frit/inspect.h>

struct rig {
    frit_host *host;
    frit_device *dev;
};

/* Opens reference:0; `settings` may be NULL. */
static inline void rig_open(struct rig *rig, const frit_setting *settings, uint64_t n)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = n};

    if (frit_host_open(&params, &rig->host, &err) ||
        frit_device_open(rig->host, "reference:0", &rig->dev, &err))
        fail_msg("%s", err.text);
}

static inline frit_stats rig_stats(const struct rig *rig)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(rig->dev, &stats);
    return stats;
}

/* Every test ends with nothing left over. */
static inline void rig_close(struct rig *rig)
{
    frit_stats stats;

    frit_sync_all(rig->dev, NULL);
    stats = rig_stats(rig);
    assert_int_equal(stats.tensors_now, 0);
    assert_int_equal(stats.queued_now, 0);
    assert_int_equal(stats.buffers_now, 0);
    assert_int_equal(stats.bytes_now, 0);
    frit_device_close(rig->dev);
    frit_host_close(rig->host);
}

static inline frit_tensor *rig_f32(struct rig *rig, frit_dims dims, const float *data)
{
    uint64_t count = 1;

    for (int64_t i = 0; i < dims.rank; i++)
        count *= (uint64_t)dims.dim[i];
    return frit_from_host(rig->dev, FRIT_F32, dims, data, count * sizeof(float));
}

/* Checks that the tensor has failed with this status and text, and releases it. */
static inline void rig_expect_error(frit_tensor *tensor, frit_status status, const char *text)
{
    assert_non_null(tensor);
    assert_int_equal(frit_tensor_status(tensor), status);
    assert_string_equal(frit_tensor_error(tensor), text);
    frit_release(tensor);
}

#endif
