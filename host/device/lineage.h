/* SPDX-License-Identifier: Apache-2.0 */
/* Which launches in flight read what which others write.
 *
 * A queue that runs late reports a failure when many commands after the failed one have been
 * submitted.  Each launch therefore enters here, before its submit, what its operands hold and what
 * it writes; a buffer says which launch or transfer wrote it last (its `writer`).  A reported
 * failure spoils the buffers that hold what the failed launch wrote or what was made from that, and
 * no others: buffer.failure is set, which ends with the buffer or when something else is written
 * there.  Launches leave, in the order in which they entered, when their point is reached: what one
 * read, on whatever queue, is there for as long as it is.
 *
 * A driver that does not number the commands that failed reports the first of a submit; those
 * after it may have failed too, so they count as failed.  Where launches had to be dropped because
 * too many were in flight, or the driver does not say which command failed, everything that may be
 * meant counts as failed.
 *
 * Where work runs inside submit (FRIT_CAP_INLINE_QUEUE) nothing is in flight: launches are not
 * entered, and the submitting code checks for failures after the submit.
 *
 * Threads: any.  The lock is held for a few instructions, but while a failure spreads. */
#ifndef DEVICE_LINEAGE_H
#define DEVICE_LINEAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <frit/frit.h>

struct buffer;
struct failure;
struct lineage;
struct lineage_batch;

frit_status lineage_create(frit_device *device, struct lineage **out, frit_err *err);
void lineage_destroy(struct lineage *lineage); /* NULL does nothing */

/* ---- entering launches: between lineage_enter and lineage_leave ---- */

void lineage_enter(struct lineage *lineage);
void lineage_leave(struct lineage *lineage);

/* Who launches what. */
struct lineage_launch {
    uint32_t stream;       /* ordinal */
    uint32_t label;        /* see label.h */
    atomic_bool *disabled; /* of the block's program, alive until the launch has ended; NULL: it is
                              no block */
};
/* Begins the next launch of a batch; returns its cookie. */
uint64_t lineage_launch(struct lineage *lineage, struct lineage_batch *batch,
                        const struct lineage_launch *launch);
/* What it reads, then what it writes.  What is made from spoiled elements is spoiled. */
void lineage_reads(struct lineage *lineage, const struct buffer *buffer);
void lineage_writes(struct lineage *lineage, struct buffer *buffer);

/* ---- afterwards ---- */

/* The launches of the batch after number `after` were submitted and reach `point`; 0: they were
 * not submitted.  May query the driver for the value it has reached. */
void lineage_end(struct lineage *lineage, struct lineage_batch *batch, uint64_t after,
                 uint64_t point);
/* A transfer that reaches this point wrote the buffer. */
void lineage_transferred(struct lineage *lineage, struct buffer *buffer, uint64_t point);
/* An undone launch wrote nothing: the buffer holds what it held. */
void lineage_restore(struct lineage *lineage, struct buffer *buffer, uint64_t writer);

/* ---- failures ---- */

/* A place among what was submitted to a queue: the command of this number in the submit of this
 * value. */
struct lineage_place {
    uint64_t value;
    uint32_t command; /* FRIT_ALL_COMMANDS: the last one */
};

/* What a wait reported: the command with this cookie failed, 0: any, at a point of from..to. False:
 * this failure was known. */
struct lineage_report {
    uint64_t from, to; /* of one queue */
    uint32_t command;  /* of `to`; FRIT_ALL_COMMANDS: those after it may have failed, too */
    uint64_t cookie;
    const frit_err *reason;
};
bool lineage_report(struct lineage *lineage, const struct lineage_report *report);
/* Failures of the queue up to there are known. */
struct lineage_place lineage_known(struct lineage *lineage, uint32_t queue);
/* Whether a failure at this point, or a later one of its queue, is known. */
bool lineage_knows(struct lineage *lineage, uint64_t point);
/* The programs of launches are about to end, whether they have run or not. */
void lineage_forget_programs(struct lineage *lineage); /* NULL does nothing */
/* Why the command that reaches this point failed, one of the last; a new reference or NULL. */
struct failure *lineage_failure_at(struct lineage *lineage, uint64_t point);
/* Why a buffer holds invalid elements; a new reference or NULL. */
struct failure *lineage_failure_of(struct lineage *lineage, const struct buffer *buffer);
/* Spoils what a launch wrote inside its submit. */
void lineage_spoil(struct lineage *lineage, struct buffer *buffer, struct failure *failure);

/* The label in a cookie. */
static inline uint32_t lineage_label(uint64_t cookie)
{
    return (uint32_t)(cookie & 0xffff);
}

#endif
