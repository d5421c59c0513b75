/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of other streams, as this stream sees them.
 *
 * A queue never contains a tensor of another stream: at its first use there it gets an alias, one
 * per tensor and stream, with an owner of the buffer of its own and the same numbering as a slot.
 * It is found by the address of the source and counts as long as the source's life word is the one
 * it was made from; it goes when the source's last owner goes.  Using one writes nothing that
 * another thread reads.
 *
 * `next` is guarded by the source's home, the rest by the using stream.  Never both locks. */
#ifndef RECORD_ALIAS_H
#define RECORD_ALIAS_H

#include "tensor/slot.h"

struct stream;

enum alias_place { ALIAS_NEW, ALIAS_LISTED, ALIAS_REPLACED, ALIAS_GONE };

struct alias {
    struct alias *next; /* of the same source; of the user's `gone` */
    struct slot *source;
    struct stream *user;
    uint64_t life; /* of the source when it was made */
    struct value value;
    enum alias_place place;
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

/* Inside the using stream's lock: the alias that still counts, or NULL. */
struct alias *alias_find(const struct alias_table *table, const struct slot *source);

/* Makes `user` know the tensor of a slot whose lock was entered and whose value is not pending;
 * leaves that lock.  A failed tensor gives its failure, a new reference.  FRIT_INVALID for a tensor
 * of another device. */
frit_status alias_make(struct stream *user, struct slot *slot, struct failure **failure,
                       frit_err *err);
/* The source's last owner is gone: drops the list that was taken off it.  No lock is held. */
void alias_drop(struct alias *list);

/* Inside the using stream's lock. */
void alias_hold(struct alias *alias);
void alias_unhold(struct alias *alias);
/* Takes off what the table has to have freed. */
struct alias *alias_take_gone(struct alias_table *table);
/* Outside of any lock. */
void alias_free(struct alias *list);

/* The stream is being closed; nothing else runs. */
void alias_table_fini(struct alias_table *table);

#endif
