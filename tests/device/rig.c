/* SPDX-License-Identifier: Apache-2.0 */
#include "device/rig.h"

#include <float.h>
#include <math.h>

#include <frit/inspect.h>

bool rig_is_short(void)
{
    const char *sanitizers = getenv("FRIT_TEST_SANITIZE");

    return sanitizers && *sanitizers && !getenv("FRIT_TEST_LONG");
}

void rig_open_with(struct rig *rig, const frit_setting *own, uint64_t n_own)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_setting settings[RIG_SETTINGS + 3] = {
        {"fusion", "compile", "wait"}, {"fusion", "store", "none"}, {"frit", "fallback", "none"}};
    const frit_host_params params = {
        .struct_size = sizeof(params), .settings = settings, .n_settings = 3 + n_own};
    const char *name = getenv("FRIT_TEST_DEVICE");

    assert_in_range(n_own, 0, RIG_SETTINGS);
    rig->may_run_by_ops = false;
    for (uint64_t i = 0; i < n_own; i++)
        settings[3 + i] = own[i];
    if (frit_host_open(&params, &rig->host, &err) ||
        frit_device_open(rig->host, name ? name : "cpu:0", &rig->dev, &err))
        fail_msg("%s", err.text);
}

void rig_open(struct rig *rig)
{
    rig_open_with(rig, NULL, 0);
}

frit_stats rig_stats(const struct rig *rig)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(rig->dev, &stats);
    return stats;
}

void rig_close(struct rig *rig)
{
    frit_err err = {.struct_size = sizeof(err)};
    frit_stats stats;

    if (frit_sync_all(rig->dev, &err))
        fail_msg("%s", err.text);
    stats = rig_stats(rig);
    assert_int_equal(stats.tensors_now, 0);
    assert_int_equal(stats.buffers_now, 0);
    assert_int_equal(stats.fallbacks_device + stats.fallbacks_candidate, 0);
    assert_true(rig->may_run_by_ops || stats.fallbacks_ops == 0);
    frit_device_close(rig->dev);
    frit_host_close(rig->host);
}

float *rig_numbers(uint64_t count)
{
    float *numbers = malloc((count + 1) * sizeof(*numbers));
    uint64_t state = 1;

    assert_non_null(numbers);
    for (uint64_t i = 0; i < count; i++) { /* MMIX's generator */
        state = state * 6364136223846793005u + 1442695040888963407u;
        numbers[i] = (float)(int32_t)(state >> 32) * 0x1p-29f;
    }
    return numbers;
}

uint64_t rig_count(frit_dims dims)
{
    uint64_t count = 1;

    for (int64_t d = 0; d < dims.rank; d++)
        count *= (uint64_t)dims.dim[d];
    return count;
}

frit_tensor *rig_tensor(struct rig *rig, frit_dims dims, const float *numbers)
{
    return frit_from_host(rig->dev, FRIT_F32, dims, numbers, rig_count(dims) * sizeof(*numbers));
}

float *rig_read(frit_tensor *tensor)
{
    uint64_t count = rig_count(frit_tensor_dims(tensor));
    float *data = malloc((count + 1) * sizeof(*data));

    assert_non_null(data);
    if (frit_read(tensor, data, count * sizeof(*data), NULL))
        fail_msg("%s", frit_tensor_error(tensor));
    frit_release(tensor);
    return data;
}

bool rig_near(double got, double want, double scale, double ulps)
{
    return fabs(got - want) <= ulps * (double)FLT_EPSILON * fabs(scale) + (double)FLT_MIN;
}
