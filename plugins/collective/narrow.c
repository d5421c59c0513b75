/* SPDX-License-Identifier: Apache-2.0 */
#include "narrow.h"

#include "narrow_loops.h"

NARROW_LOOPS(f16, 10)
NARROW_LOOPS(bf16, 7)

const struct narrow narrow_f16 = {load_f16, store_f16, exchange_f16};
const struct narrow narrow_bf16 = {load_bf16, store_bf16, exchange_bf16};
