/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes own the tensors that are made while they are open.  While one is open its stream only
 * records: ops run at an explicit drain (a read, a sync), never because a plan is complete.
 * Threads: the owning thread only. */
#ifndef RECORD_SCOPE_H
#define RECORD_SCOPE_H

#include "tensor/slot.h"

struct binding;
struct stream;

/* A tensor that a scope has to release; `handle` NULL: the program kept it beyond all scopes. */
struct scoped {
    frit_tensor *handle;
    uint32_t depth;
};

/* The open scopes of one thread on one device. */
struct scopes {
    const void *owner; /* thread_token() of the thread */
    struct stream
        *stream; /* the stream of the outermost scope, which records and does not run ops */
    struct scoped *entries;
    uint32_t count, capacity;
    uint32_t depth; /* open scopes */
};

/* Opens a scope and returns its depth, 1 for the outermost. */
uint64_t scope_begin(struct binding *binding);
/* Closes the scope of this depth and all inside it, and releases their tensors.  False: no scope of
 * this depth is open. */
bool scopes_close(struct binding *binding, uint64_t depth);
/* Registers a new slot with the innermost scope, if one is open; inside the slot's lock.  False
 * if out of memory. */
bool scope_add_entry(struct scopes *scopes, struct slot *slot);
static inline bool scope_add(struct scopes *scopes, struct slot *slot)
{
    return scopes->depth == 0 || scope_add_entry(scopes, slot);
}
/* The scope around the slot's becomes its owner, or none; inside the slot's lock.  Does nothing in
 * another thread than the scope's. */
void scope_keep(struct slot *slot);

#endif
