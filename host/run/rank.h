/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks: a stream's ends of groups whose engine runs collective ops (frit.collective/1).
 *
 * A rank belongs to one stream, which adds its operations, and has a thread, which alone calls the
 * engine and gives it operations in their order, several at a time: so a stream goes on while its
 * operations wait for other ranks.  A wait has a limit.
 *
 * What fails on this rank alone, so that it cannot begin an operation that the others wait for,
 * aborts the group: they fail with the same words instead of waiting.  What ended a group is kept,
 * and later ops fail with it at once. */
#ifndef RUN_RANK_H
#define RUN_RANK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <frit/collective.h>

#include "device/side_queue.h"

struct failure;
struct operation;
struct stream;

enum { RANK_NAME = 48 };

struct frit_rank {
    struct frit_rank *next; /* of the stream, changed under the baton and the device's lock */
    struct stream *stream;
    const frit_collective_table *table;
    frit_group *group;
    uint64_t timeout_ns; /* of one operation */
    uint64_t number;     /* that ops name the group by */
    uint32_t rank, size;
    frit_str
        space; /* by which the engine reaches the device's own memory; empty: it has the host's */
    const struct rank_hooks *hooks;
    void *hooks_ctx;
    char name[RANK_NAME];
    uint64_t begun, reached; /* values of the engine; of the thread */
    struct side_queue side;  /* likewise; opened when it is needed */
    pthread_t thread;
    pthread_mutex_t lock;            /* of what follows */
    pthread_cond_t changed;          /* an operation is added or has ended, or `ends` is set */
    struct operation *first, **last; /* the first n_begun are under way */
    struct operation *waiting;       /* after these; NULL: none */
    uint32_t n_begun;                /* written by the thread */
    uint32_t n_operations;
    uint64_t n_ended;
    bool ends;
    frit_err failure;       /* that ended the group; status FRIT_OK: it goes on */
    const char *what;       /* the operation under way is for, "": not known; of the thread */
    struct rank_user *user; /* NULL: none; under the baton */
};

/* What makes ops of its own in a group, which cannot be left before.  They name the group by
 * another number than the program's ops, and so are counted apart from them. */
struct rank_user {
    uint64_t number;
    atomic_uint_fast64_t n_begun; /* of its ops */
    /* Writes what op `i`, counted from 0, is for: what ranks compare (frit_collective_op), and for
     * texts of this rank.  With the baton. */
    void (*describe)(void *ctx, uint64_t i, char note[FRIT_COLLECTIVE_NOTE], char *what,
                     size_t size);
    void *ctx;
};

/* What follows a rank.  The functions are called by the threads that run its operations, and must
 * call no function of this header. */
struct rank_hooks {
    /* An operation, which waits for the other ranks; of its first buffer. */
    void (*begins)(void *ctx, uint64_t elements);
    void (*ended)(void *ctx); /* the same, well or not */
    /* The group has ended on this rank for this reason, which may be replaced by a better one. */
    void (*failed)(void *ctx, frit_err *why);
    void (*leaves)(void *ctx); /* the last call: the rank ends */
};

struct rank_config {
    const frit_collective_table *table;
    void *instance;
    const frit_group_id *id;
    uint64_t number;
    uint32_t rank, size;
    uint64_t join_timeout_ns, timeout_ns;
    const char *name;
    const struct rank_hooks *hooks; /* NULL: none */
    void *hooks_ctx;
    const struct rank_store *store; /* that all ranks see; NULL: none */
    void *store_ctx;
};

/* As in frit_group_params. */
struct rank_store {
    frit_status (*put)(void *ctx, frit_str key, const void *value, uint64_t bytes, frit_err *err);
    frit_status (*get)(void *ctx, frit_str key, void *value, uint64_t capacity, uint64_t *bytes,
                       uint64_t timeout_ns, frit_err *err);
};

/* Makes the stream a rank; waits for the others.  No lock is held. */
frit_status rank_join(struct stream *stream, const struct rank_config *config,
                      struct frit_rank **out, frit_err *err);
/* Runs what is queued in the stream, then leaves the group and ends the rank.  FRIT_BUSY inside of
 * a driver's or engine's call. */
frit_status rank_leave(struct frit_rank *rank, frit_err *err);
/* Runs what is queued in the stream and waits until all ranks have come here; likewise. */
frit_status rank_barrier(struct frit_rank *rank, frit_err *err);
/* Ends the group for all ranks that the engine reaches; rank_fail: because of this one, which its
 * hooks get to know.  From any thread, beside any call but rank_leave. */
void rank_abort(struct frit_rank *rank, frit_status status, const char *why);
void rank_fail(struct frit_rank *rank, frit_status status, const char *why);

/* ---- with the baton ---- */

/* The stream's rank in the group of this number.  NULL: FRIT_INVALID says what to do. */
struct frit_rank *rank_find(struct frit_rank *ranks, int64_t number, frit_err *err);
/* What the next op that names the group by this number is for; empty texts if that is not known. */
void rank_describe(struct frit_rank *rank, int64_t number, char note[FRIT_COLLECTIVE_NOTE],
                   char *what, size_t size);
/* The operation runs after those before it, and belongs to the rank.  Waits while there are many.
 */
void rank_add(struct frit_rank *rank, struct operation *operation);
/* Waits until all operations of the ranks have ended; the failure of the first group that ended. */
frit_status ranks_wait(struct frit_rank *ranks, frit_err *err);

/* What ended the group, FRIT_OK: it goes on.  Any thread. */
frit_status rank_check(struct frit_rank *rank, frit_err *err);
/* An operation has failed: an error of the stream.  Any thread. */
void rank_note_error(struct frit_rank *rank, struct failure *failure);
/* An operation cannot go on on this rank: `err` says why, and `what` the operation is for (may be
 * empty).  Ends the group unless it has ended; `err` then has what ended it, and of which rank. Any
 * thread. */
frit_status rank_give_up(struct frit_rank *rank, const char *what, frit_err *err);

/* ---- on the rank's thread ---- */

/* Begins one operation of the engine; its buffers are the engine's until rank_wait_for returned for
 * this value or a later one.  FRIT_UNSUPPORTED ends nothing: it depends on the operation alone, and
 * so each rank finds it. */
frit_status rank_begin(struct frit_rank *rank, const frit_collective_op *op, uint64_t *value,
                       frit_err *err);
/* For transfers of the thread, on the stream's device. */
struct side_queue *rank_side_queue(struct frit_rank *rank);
/* Waits for it.  After any failure the engine touches no buffer any more. */
frit_status rank_wait_for(struct frit_rank *rank, uint64_t value, frit_err *err);

/* ---- the end of a device ---- */

/* Nobody runs the other ranks any more: the groups of several ranks end. */
void ranks_abort(struct stream *stream, const char *why);
/* Nothing is queued in the stream; what ranks have to run ends first. */
void ranks_leave(struct stream *stream);

#endif
