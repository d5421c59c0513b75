/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of other streams, as this stream sees them.
 *
 * A segment never contains a tensor of another stream: at its first use there the tensor gets an
 * alias, one per tensor and stream.  An alias owns the buffer and is numbered like a slot (epoch
 * and index).  The table finds it by the address of its source, the slot; it is valid while the
 * slot's `life` is what it was when the alias was made, and is dropped with the slot's last owner.
 * Using an alias writes nothing that another thread reads.
 *
 * `next` is guarded by the source's home, the rest by the using stream.  Never both locks. */
#ifndef RECORD_ALIAS_H
#define RECORD_ALIAS_H

#include "tensor/slot.h"

struct stream;

enum alias_state {
    ALIAS_NEW,      /* on its source's list, not in the user's table yet */
    ALIAS_LISTED,   /* on both */
    ALIAS_REPLACED, /* on the list; the table has a newer one of the same source */
    ALIAS_GONE      /* on neither; freed with the last hold */
};

struct alias {
    struct alias *next; /* on the source's list, or on the user's list `gone` */
    struct slot *source;
    struct stream *user;
    uint64_t life; /* of the source when it was made */
    struct value value;
    enum alias_state state;
    uint32_t holds;
    uint64_t epoch;
    uint32_t index;
};

/* Open addressing, by source; all zero is empty. */
struct alias_table {
    struct alias **entries;
    uint32_t capacity, count;
    struct alias *gone; /* to be freed outside of the lock */
};

/* Inside the using stream's lock: the source's alias if it is still valid, else NULL. */
struct alias *alias_find(const struct alias_table *table, const struct slot *source);

/* Adds an alias of `slot` to the table of `user`.  The caller is inside the slot's lock, which is
 * left in any case; the slot's value is not pending.  For a failed tensor *failure is a new
 * reference to its failure.  FRIT_INVALID for a tensor of another device. */
frit_status alias_make(struct stream *user, struct slot *slot, struct failure **failure,
                       frit_err *err);
/* The source's last owner is gone: drops the list that was taken off it.  No lock is held. */
void alias_drop(struct alias *list);

/* Inside the using stream's lock. */
void alias_hold(struct alias *alias);
void alias_unhold(struct alias *alias);
/* Empties the table's list `gone` and returns it, for alias_free. */
struct alias *alias_take_gone(struct alias_table *table);
/* Outside of any lock. */
void alias_free(struct alias *list);

/* The stream is being closed; nothing else runs. */
void alias_table_fini(struct alias_table *table);

#endif
