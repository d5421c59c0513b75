/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, stores and atomics of arguments. */
#ifndef EMIT_C_ARGS_H
#define EMIT_C_ARGS_H

#include "emit/c/writer.h"

void args_load(struct writer *w, uint32_t at);
void args_store(struct writer *w, uint32_t at);
void args_atomic(struct writer *w, uint32_t at);

#endif
