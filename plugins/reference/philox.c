/* SPDX-License-Identifier: Apache-2.0 */
/* Ten rounds of two 32 x 32 bit products; between rounds the key advances by a
 * Weyl sequence. */
#include "philox.h"

enum { ROUNDS = 10 };

static const uint32_t multiplier[2] = {0xd2511f53, 0xcd9e8d57};
static const uint32_t weyl[2] = {0x9e3779b9, 0xbb67ae85};

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t left = (uint64_t)multiplier[0] * c0, right = (uint64_t)multiplier[1] * c2;

        c0 = (uint32_t)(right >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)right;
        c2 = (uint32_t)(left >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)left;
        k0 += weyl[0];
        k1 += weyl[1];
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}
