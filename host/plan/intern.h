/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for byte strings: what of a key does not fit into its words.
 *
 * One per generation of an automaton, freed with it.  Threads: any may look while one adds. */
#ifndef PLAN_INTERN_H
#define PLAN_INTERN_H

#include "plan/table.h"

struct intern_entry {
    uint32_t id;
    uint32_t n_bytes;
    unsigned char bytes[];
};

/* All zero is empty. */
struct intern {
    struct arena arena;
    struct table by_bytes;
    struct table by_id;
    uint64_t bytes; /* of memory */
};

void intern_fini(struct intern *intern);
/* NULL if it is not there. */
const struct intern_entry *intern_find(const struct intern *intern, const void *bytes,
                                       size_t n_bytes);
const struct intern_entry *intern_find_id(const struct intern *intern, uint32_t id);
/* Adds bytes and a number that are not there.  False without memory: the bytes are not found, and
 * the number must not be used again. */
bool intern_add(struct intern *intern, const void *bytes, size_t n_bytes, uint32_t id);

#endif
