/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack with the memory of a GPU (of the fakes of CUDA and HIP): out of a device and in again,
 * without a copy. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <frit/dlpack.h>
#include <frit/inspect.h>

enum { N = 24 };

static uint64_t moved(frit_device *device)
{
    frit_stats stats = {.struct_size = sizeof(stats)};

    frit_stats_get(device, &stats);
    return stats.bytes_in + stats.bytes_out;
}

static void out_and_in(void **state)
{
    const frit_dl_options options = {.struct_size = sizeof(options), .on_device = 1};
    const char *driver = getenv("FRIT_TEST_DEVICE") ? getenv("FRIT_TEST_DEVICE") : "cuda";
    frit_host *host = NULL;
    frit_device *device = NULL;
    frit_dl_managed *managed;
    frit_err err = {.struct_size = sizeof(err)};
    float in[N], out[N];
    uint64_t before;
    frit_tensor *x, *y;

    (void)state;
    for (int i = 0; i < N; i++)
        in[i] = (float)i;
    if (frit_host_open(NULL, &host, &err) || frit_device_open(host, driver, &device, &err))
        fail_msg("%s", err.text);
    x = frit_from_host(device, FRIT_F32, FRIT_SHAPE(4, 6), in, sizeof(in));
    assert_int_equal(frit_sync(device, NULL), FRIT_OK);
    before = moved(device);
    if (frit_to_dlpack(frit_take(x), &options, &managed, &err))
        fail_msg("%s", err.text);
    assert_int_equal(managed->tensor.device.type,
                     strcmp(driver, "cuda") == 0 ? FRIT_DL_CUDA : FRIT_DL_ROCM);
    assert_int_equal(managed->tensor.device.number, 0);
    managed->tensor.dims[0] = 3; /* from the second row on, which no buffer begins with */
    managed->tensor.byte_offset = 6 * sizeof(float);
    y = frit_from_dlpack(device, managed);
    assert_int_equal(frit_tensor_status(y), FRIT_OK);
    assert_int_equal(moved(device), before);
    if (frit_read(y, out, sizeof(out) - 6 * sizeof(float), &err))
        fail_msg("%s", err.text);
    assert_memory_equal(out, in + 6, sizeof(in) - 6 * sizeof(float));
    frit_release(y);
    assert_int_equal(frit_sync_all(device, NULL), FRIT_OK);
    frit_device_close(device);
    frit_host_close(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(out_and_in)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
