/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that wait for their submit.
 *
 * Each command comes with the byte ranges it touches; a BARRIER goes in front of it exactly where
 * it touches bytes that a command since the last BARRIER writes, or writes bytes that one reads.
 * What commands point to lies in the batch's arena and lives until the submit returned.
 * Threads: one at a time. */
#ifndef RUN_BATCH_H
#define RUN_BATCH_H

#include <stdbool.h>

#include <frit/backend.h>
#include <frit/frit.h>

#include "base/arena.h"
#include "device/lineage_batch.h"
#include "device/submit_after.h"
#include "memory/derived.h"

struct prepared;
struct program;
struct lineage;

struct batch_range {
    const void *memory; /* NULL: nothing */
    uint64_t begin, end;
    bool write;
};

/* References. */
struct batch_kept {
    struct program *program;
    struct prepared *prepared;
};

/* Memory that a command derives from a buffer's contents; others may use it once it is submitted.
 */
struct batch_derived {
    struct buffer *of, *memory; /* `memory` owned */
    uint64_t content;
    struct derived_key key;
};

/* All zero is empty. */
struct batch {
    struct arena arena;
    frit_cmd *cmds;
    struct batch_range *ranges;
    struct buffer **written; /* get the point; alive until the submit */
    struct buffer **used;    /* where a device has several queues; likewise */
    struct submit_after after;
    struct batch_kept *kept; /* what the launches point into */
    struct batch_derived *derived;
    uint32_t n_cmds, cmds_capacity;
    uint32_t n_ranges, ranges_capacity;
    uint32_t since; /* first range after the last BARRIER */
    uint32_t n_written, written_capacity;
    uint32_t n_used, used_capacity;
    uint32_t n_kept, kept_capacity;
    uint32_t n_derived, derived_capacity;
    uint32_t n_launches;
    uint32_t n_barriers;
    struct lineage_batch launches;
    struct lineage *lineage; /* that they are entered in; NULL: there are none */
};

/* A place to come back to. */
struct batch_mark {
    uint32_t n_cmds, n_ranges, since, n_written, n_used, n_kept, n_derived, n_launches, n_barriers;
    uint64_t last_launch; /* number */
};

void batch_fini(struct batch *batch);
/* Empties it, its arena too. */
void batch_reset(struct batch *batch);
struct batch_mark batch_mark(const struct batch *batch);
/* Forgets what was added since; the arena is left. */
void batch_cut(struct batch *batch, const struct batch_mark *mark);

/* Appends commands that run one after the other as far as they say it with BARRIERs of their own;
 * all of them together touch the ranges.  FRIT_NO_HOST_MEMORY leaves the batch as it was. */
frit_status batch_add(struct batch *batch, const frit_cmd *cmds, uint32_t n_cmds,
                      const struct batch_range *ranges, uint32_t n_ranges, frit_err *err);
/* Fills a buffer's first bytes, or (0) all that may be used of it, with a byte. */
frit_status batch_fill(struct batch *batch, struct buffer *buffer, uint64_t bytes, uint8_t byte,
                       frit_err *err);
/* Copies as many bytes as `to` has, from `first` on; both have memory. */
frit_status batch_copy(struct batch *batch, struct buffer *from, uint64_t first, struct buffer *to,
                       frit_err *err);
/* The commands added last, or next, read or write the buffer: they wait for what other queues do
 * with its memory. */
frit_status batch_uses(struct batch *batch, struct buffer *buffer, bool write, frit_err *err);
/* The buffer is written by the commands added last, and what it is a part of. */
frit_status batch_writes(struct batch *batch, struct buffer *buffer, frit_err *err);
/* The commands added last derive the memory; it gets one owner more until the submit. */
frit_status batch_derives(struct batch *batch, const struct batch_derived *derived, frit_err *err);
/* What a command of the batch derives from these contents, with one owner more; NULL: none does. */
struct buffer *batch_find_derived(const struct batch *batch, uint64_t content,
                                  const struct derived_key *key);
/* Keeps a program and what its prepare answered until the submit; takes the reference to the latter
 * over, also on failure. */
frit_status batch_keep(struct batch *batch, struct program *program, struct prepared *prepared,
                       frit_err *err);

/* One submit of everything to a queue.  On success the batch is empty and what was used has its
 * point, which is *point; otherwise it is as before, and nothing was enqueued. */
frit_status batch_submit(struct batch *batch, frit_device *device, uint32_t queue, uint64_t *point,
                         frit_err *err);

#endif
