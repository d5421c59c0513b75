/* SPDX-License-Identifier: Apache-2.0 */
/* Eight elements at a time; what is left at the end as elsewhere. */
#include "narrow.h"

#include <immintrin.h>

#include "narrow_loops.h"

enum { LANES = 8, BYTES = LANES * sizeof(uint16_t) };

NARROW_LOOPS(f16, 10)
NARROW_LOOPS(bf16, 7)

static inline __m128i lanes_at(const char *from)
{
    __m128i bits;

    memcpy(&bits, from, BYTES);
    return bits;
}

static inline __m256 widen_f16(__m128i bits)
{
    return _mm256_cvtph_ps(bits);
}

static inline __m128i narrow_to_f16(__m256 reals)
{
    return _mm256_cvtps_ph(reals, _MM_FROUND_TO_NEAREST_INT);
}

static inline __m256 widen_bf16(__m128i bits)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

static inline __m128i narrow_to_bf16(__m256 reals)
{
    const __m256i bits = _mm256_castps_si256(reals), kept = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(kept, _mm256_set1_epi32(1));
    const __m256i below_half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, below_half), 16);
    const __m256i quiet = _mm256_or_si256(kept, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(reals, reals, _CMP_UNORD_Q));
    const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, is_nan);

    return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
}

#define LANE_LOOPS(NAME)                                                                          \
    static void load_lanes_##NAME(float *restrict into, const char *restrict from, size_t count)  \
    {                                                                                             \
        size_t i = 0;                                                                             \
                                                                                                  \
        for (; i + LANES <= count; i += LANES)                                                    \
            _mm256_storeu_ps(into + i, widen_##NAME(lanes_at(from + 2 * i)));                     \
        load_##NAME(into + i, from + 2 * i, count - i);                                           \
    }                                                                                             \
    static void store_lanes_##NAME(char *restrict into, const float *restrict from, size_t count) \
    {                                                                                             \
        size_t i = 0;                                                                             \
                                                                                                  \
        for (; i + LANES <= count; i += LANES) {                                                  \
            const __m128i bits = narrow_to_##NAME(_mm256_loadu_ps(from + i));                     \
                                                                                                  \
            memcpy(into + 2 * i, &bits, BYTES);                                                   \
        }                                                                                         \
        store_##NAME(into + 2 * i, from + i, count - i);                                          \
    }                                                                                             \
    static void exchange_lanes_##NAME(char *const into[2], const char *a, const char *b,          \
                                      size_t count, bool halved)                                  \
    {                                                                                             \
        const __m256 scale = _mm256_set1_ps(halved ? 0.5f : 1);                                   \
        char *first = into[0], *second = into[1];                                                 \
        size_t i = 0;                                                                             \
                                                                                                  \
        for (; i + LANES <= count; i += LANES) {                                                  \
            const __m256 sum = _mm256_add_ps(widen_##NAME(lanes_at(a + 2 * i)),                   \
                                             widen_##NAME(lanes_at(b + 2 * i)));                  \
            const __m128i bits = narrow_to_##NAME(_mm256_mul_ps(sum, scale));                     \
                                                                                                  \
            memcpy(first + 2 * i, &bits, BYTES);                                                  \
            memcpy(second + 2 * i, &bits, BYTES);                                                 \
        }                                                                                         \
        exchange_##NAME((char *[]){first + 2 * i, second + 2 * i}, a + 2 * i, b + 2 * i,          \
                        count - i, halved);                                                       \
    }

LANE_LOOPS(f16)
LANE_LOOPS(bf16)

const struct narrow narrow_f16_avx2 = {load_lanes_f16, store_lanes_f16, exchange_lanes_f16};
const struct narrow narrow_bf16_avx2 = {load_lanes_bf16, store_lanes_bf16, exchange_lanes_bf16};
