/* SPDX-License-Identifier: Apache-2.0 */
/* Interned byte strings: parts of keys that do not fit into 256 bits.
 *
 * One table per generation of an automaton, freed with it.  Any thread may read while one thread
 * adds. */
#ifndef PLAN_INTERN_H
#define PLAN_INTERN_H

#include "plan/table.h"

struct intern_entry {
    uint32_t id;
    uint32_t n_bytes;
    unsigned char bytes[];
};

/* All zeros: empty. */
struct intern {
    struct arena arena;
    struct table by_bytes;
    struct table by_id;
    uint64_t bytes; /* memory in use */
};

void intern_fini(struct intern *intern);
/* Return NULL if there is no such entry. */
const struct intern_entry *intern_find(const struct intern *intern, const void *bytes,
                                       size_t n_bytes);
const struct intern_entry *intern_find_id(const struct intern *intern, uint32_t id);
/* Adds bytes and a number, both new.  False if out of memory: then neither is found, and the number
 * must not be reused. */
bool intern_add(struct intern *intern, const void *bytes, size_t n_bytes, uint32_t id);

#endif
