/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include <frit/types.h>

#include "narrow.h"

const struct narrow *narrow_best(uint32_t dtype)
{
    const bool has_avx2 = __builtin_cpu_supports("avx2"); /* such processors have F16C, too */

    if (dtype == FRIT_F16)
        return has_avx2 ? &narrow_f16_avx2 : &narrow_f16;
    return has_avx2 ? &narrow_bf16_avx2 : &narrow_bf16;
}
