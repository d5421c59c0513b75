/* SPDX-License-Identifier: Apache-2.0 */
/* C text to object code, and object code to functions, by libtcc.  Threads: any; they wait for each
 * other. */
#ifndef FAKE_HIP_JIT_H
#define FAKE_HIP_JIT_H

#include <stddef.h>

struct jit;

/* The object code of a text, freed with free(); NULL: it does not compile, and the log, which the
 * caller frees, says why. */
void *jit_compile(const char *text, size_t *n_bytes, char **log);

/* Loads object code; NULL: it is none.  A symbol is NULL if there is none of that name. */
struct jit *jit_load(const void *object, size_t n_bytes);
void *jit_symbol(struct jit *jit, const char *name);
void jit_unload(struct jit *jit);

#endif
