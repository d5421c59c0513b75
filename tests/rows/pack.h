/* SPDX-License-Identifier: Apache-2.0 */
/* The stored elements of tests/data/rows, one .npy file per element type.  A reader of its own, so
 * that a fault of the library's reader cannot hide one of a row. */
#ifndef ROWS_PACK_H
#define ROWS_PACK_H

#include <frit/types.h>

struct pack {
    char *file; /* the whole file, NULL: not read yet */
    const char *elements;
    uint64_t count;
};

/* All zero is an empty set. */
struct packs {
    struct pack of[FRIT_DTYPE_LIMIT];
};

/* `count` elements from number `place` on; fails the test if the pack has no such elements. */
const void *packs_at(struct packs *packs, uint32_t dtype, uint64_t place, uint64_t count);
void packs_fini(struct packs *packs);

#endif
