/* SPDX-License-Identifier: Apache-2.0 */
#include "narrow.h"

#include <immintrin.h>

#include "narrow_loops.h"

enum { LANES = 8, ALL_BYTES = LANES * sizeof(uint16_t) };

NARROW_LOOPS(f16, 10)
NARROW_LOOPS(bf16, 7)

static void load_f16_lanes(float *restrict into, const char *restrict from, size_t count)
{
    size_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        __m128i bits;

        memcpy(&bits, from + i * sizeof(uint16_t), ALL_BYTES);
        _mm256_storeu_ps(into + i, _mm256_cvtph_ps(bits));
    }
    load_f16(into + i, from + i * sizeof(uint16_t), count - i);
}

static void store_f16_lanes(char *restrict into, const float *restrict from, size_t count)
{
    size_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);

        memcpy(into + i * sizeof(uint16_t), &bits, ALL_BYTES);
    }
    store_f16(into + i * sizeof(uint16_t), from + i, count - i);
}

const struct narrow narrow_f16_avx2 = {load_f16_lanes, store_f16_lanes};
const struct narrow narrow_bf16_avx2 = {load_bf16, store_bf16};
