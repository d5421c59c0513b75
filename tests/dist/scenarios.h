/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DIST_SCENARIOS_H
#define DIST_SCENARIOS_H

#include <stdint.h>

/* Each prints its lines; `n` is the number of devices. */

/* Ranks as threads and as processes have the same bits; a device cannot be two ranks. */
void bits_run(uint32_t n);
/* A process is killed in the midst of sums: how long until the others go on. */
void kill_run(uint32_t n, uint32_t times);
/* Beside plain calls of NCCL: sizes, and the gradients of ResNet-50. */
void speed_run(uint32_t n);
/* Sums beside kernels, in the order of a backward pass. */
void overlap_run(uint32_t n);

#endif
