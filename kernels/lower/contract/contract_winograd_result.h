/* SPDX-License-Identifier: Apache-2.0 */
/* The last phase of Winograd's convolution. */
#ifndef LOWER_CONTRACT_WINOGRAD_RESULT_H
#define LOWER_CONTRACT_WINOGRAD_RESULT_H

struct contract;

/* Emits the phase, with its grid. */
void winograd_result_emit(struct contract *c);

#endif
