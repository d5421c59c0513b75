/* SPDX-License-Identifier: Apache-2.0 */
/* What a process sleeps on until another one, of its own threads or of its host, has done something
 * that it looks at.  Lies in shared memory. */
#ifndef MPI_BELL_H
#define MPI_BELL_H

#include <stdatomic.h>
#include <stdint.h>

struct bell {
    _Atomic uint32_t rings, sleepers;
};

void bell_ring(struct bell *bell); /* NULL does nothing */
static inline uint32_t bell_rings(struct bell *bell)
{
    return atomic_load(&bell->rings);
}
/* Until there are more rings than `seen`, or for `ns`. */
void bell_sleep(struct bell *bell, uint32_t seen, uint64_t ns);

#endif
