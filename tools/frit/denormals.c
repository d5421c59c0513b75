/* SPDX-License-Identifier: Apache-2.0 */
/* Two ops on the smallest denormal, and whether their results are those of zero. */
#include "denormals.h"

#include <string.h>

bool denormals_are_zero(frit_device *device, uint32_t dtype)
{
    static const float narrow = 0x1p-149f;
    static const double wide = 0x1p-1074;
    static const char zeros[8];
    const uint64_t bytes = dtype == FRIT_F32 ? sizeof narrow : sizeof wide;
    const void *smallest = dtype == FRIT_F32 ? (const void *)&narrow : &wide;
    frit_tensor *x = frit_from_host(device, dtype, FRIT_SHAPE(1), smallest, bytes);
    frit_tensor *twice = frit_add(x, x), *positive = frit_gt_f(x, 0);
    char sum[8] = {0}, truth = 0;
    bool read = frit_read(twice, sum, bytes, NULL) == FRIT_OK &&
                frit_read(positive, &truth, 1, NULL) == FRIT_OK;

    frit_release(x);
    frit_release(twice);
    frit_release(positive);
    return read && (memcmp(sum, zeros, bytes) == 0 || !truth);
}
