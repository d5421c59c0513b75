/* SPDX-License-Identifier: Apache-2.0 */
/* A copy to memory that another processor reads next, and has read before.  Past the caches: to
 * take their lines back from the other one costs several times as much where the two share no
 * cache. */
#ifndef MPI_STREAM_H
#define MPI_STREAM_H

#include <stddef.h>

/* `into` is aligned to 64 bytes.  What is stored after it is seen after it. */
void stream_copy(void *into, const void *from, size_t bytes);

#endif
