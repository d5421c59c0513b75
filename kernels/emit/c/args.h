/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, stores and atomics of arguments; loads and stores of the group's tiles. */
#ifndef EMIT_C_ARGS_H
#define EMIT_C_ARGS_H

#include "emit/c/writer.h"

void args_load(struct writer *w, uint32_t at);
void args_store(struct writer *w, uint32_t at);
void args_atomic(struct writer *w, uint32_t at);
/* KIR_tcopy, KIR_tbatch, KIR_twait. */
void args_copy(struct writer *w, uint32_t at);
void args_batch(struct writer *w, uint32_t at);
void args_wait(struct writer *w, uint32_t at);

#endif
