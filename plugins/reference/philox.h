/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).
 */
#ifndef PHILOX_H
#define PHILOX_H

#include <stdint.h>

/* One block: four words of the counter under a key of two. */
void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
