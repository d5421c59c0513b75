/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/anchor.h"

uint64_t tune_anchor(uint64_t size, enum tune_level level)
{
    const unsigned step = level == TUNE_MINIMAL ? 2 : 1; /* of exponents */
    unsigned exponent;

    if (size < 2 || (level != TUNE_MINIMAL && level != TUNE_BALANCED))
        return size;
    exponent = 64 - (unsigned)__builtin_clzll(size - 1);
    exponent = (exponent + step - 1) / step * step;
    return exponent < 64 ? UINT64_C(1) << exponent : size;
}
