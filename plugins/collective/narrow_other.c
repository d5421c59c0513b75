/* SPDX-License-Identifier: Apache-2.0 */
/* Processors without instructions of their own here. */
#include <frit/types.h>

#include "narrow.h"

const struct narrow *narrow_best(uint32_t dtype)
{
    return dtype == FRIT_F16 ? &narrow_f16 : &narrow_bf16;
}
