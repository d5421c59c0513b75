/* SPDX-License-Identifier: Apache-2.0 */
/* Memory derived from the contents of a buffer: packed weights, tables (frit_derived of the
 * contract).
 *
 * While a buffer has the same contents, these have a number, and a list of what was derived from
 * them.  Both end with the next write to the buffer (buffer_changed) and with the buffer.  Derived
 * memory can be made again: memory_trim gives back what no launch uses.  Threads: any. */
#ifndef MEMORY_DERIVED_H
#define MEMORY_DERIVED_H

#include <frit/types.h>

struct buffer;
struct memory;

/* What is derived, and from which elements of the buffer.  Compared as bytes: begin with zeros. */
struct derived_key {
    uint64_t tag, bytes; /* of frit_derived_spec */
    uint32_t dtype, rank;
    int64_t first; /* element 0, from the start of the buffer */
    int64_t dims[FRIT_MAX_RANK], strides[FRIT_MAX_RANK];
};

/* The number of the buffer's contents, one of its own in the process.  0: without host memory, or
 * where another buffer may change the bytes. */
uint64_t derived_content(struct buffer *of);
/* What was derived from these contents, with one owner more; NULL: nothing.  What a failed command
 * was to derive is forgotten. */
struct buffer *derived_find(struct buffer *of, uint64_t content, const struct derived_key *key);
/* A submitted command derives `memory`; it gets one owner more.  Does nothing where the contents
 * are others by now, or the list has one already. */
void derived_add(struct buffer *of, uint64_t content, const struct derived_key *key,
                 struct buffer *memory);

/* The contents end: what was derived from them goes. */
void derived_forget(struct buffer *of);
/* Gives back what no launch uses. */
void derived_trim(struct memory *memory);

#endif
