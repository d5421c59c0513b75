/* SPDX-License-Identifier: Apache-2.0 */
#include "stream.h"

#include <emmintrin.h>
#include <string.h>

void stream_copy(void *into, const void *from, size_t bytes)
{
    enum { LINE = 64, VECTOR = sizeof(__m128i) };
    const size_t lines = bytes / LINE * LINE;

    for (size_t at = 0; at < lines; at += LINE) {
        for (size_t i = at; i < at + LINE; i += VECTOR)
            _mm_stream_si128(
                (__m128i *)(void *)((char *)into + i),
                _mm_loadu_si128((const __m128i *)(const void *)((const char *)from + i)));
    }
    memcpy((char *)into + lines, (const char *)from + lines, bytes - lines);
    _mm_sfence();
}
