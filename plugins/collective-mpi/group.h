/* SPDX-License-Identifier: Apache-2.0 */
/* A group of as many ranks as the job has, of which this process is the one of its number.
 *
 * To join, every rank sends a message to every other one, which answers whether it has opened the
 * sender's segment.  To begin an operation a rank sends a header; data moves when the headers of
 * all ranks are there and equal, so a header is also what a barrier is made of.  The elements of a
 * small all_reduce travel with the header, and every rank combines them.  Other operations are done
 * in pieces (piece.h), a few at a time.  Data is copied to and from memory of the engine: requests
 * of MPI cannot be withdrawn, but the buffers of a group that has ended must not be touched. */
#ifndef MPI_GROUP_H
#define MPI_GROUP_H

#include <frit/collective.h>

#include "util/plug.h"

#include "job.h"
#include "piece.h"
#include "trial.h"

enum { MAX_PENDING = 64, N_HEADERS = 2 * MAX_PENDING, N_SMALL = 2, N_TRIALS = 64 };

/* Bits of a way: stores past the caches; few pieces, so that they stay in a cache of the processor.
 */
enum { WAY_STREAMED = 1, WAY_FEW = 2, FEW_PIECES = 8 };

/* One operation that this rank has begun. */
struct begun {
    struct header header;
    frit_collective_buffer *buffers;
};

struct peer {
    bool has_come, has_answered; /* its JOIN and its NEAR are there */
    bool has_opened;             /* this rank's segment */
    bool has_left;
    uint64_t n_headers;     /* operations begun */
    struct header *headers; /* number n at n modulo N_HEADERS */
    /* Elements of small operations, number n at n modulo N_SMALL: a rank begins one when those
     * before it are done, so that no other rank is further ahead. */
    char small[N_SMALL][MESSAGE_TEXT];
    char where[MESSAGE_TEXT]; /* host and process */
};

static inline bool peer_has_joined(const struct peer *peer)
{
    return peer->has_come && peer->has_answered;
}

struct frit_group {
    const struct plug *plug;
    struct job *job; /* NULL: the only rank */
    uint64_t key;
    uint32_t rank, size;
    /* Under the job's lock. */
    uint64_t issued, done;
    uint32_t n_joined;
    bool is_leaving, is_gone;
    bool is_quiet;                   /* after a failure: no buffer is touched any more */
    frit_err error;                  /* status 0: all is well */
    struct begun begun[MAX_PENDING]; /* number n at n modulo MAX_PENDING */
    /* Of the thread that drives. */
    struct frit_group *next;
    uint32_t channel;
    uint64_t announced;
    struct peer *peers; /* this rank, too */
    struct segment *segment;
    uint64_t segment_number; /* shared.h */
    struct segment **near;   /* of each rank; NULL: this one, or one of another host */
    bool is_kept;            /* the segment, by requests of MPI */
    struct progress_of_op {
        bool is_running;
        uint32_t buffer; /* where the next piece begins */
        uint64_t at;
        uint64_t started, finished; /* pieces */
        uint32_t most;              /* pieces under way */
        bool is_streamed;           /* piece.h */
        uint64_t begun_ns;
    } op;
    /* How an operation is done, as rank 0 decides: WAY_*, number n at n modulo N_HEADERS. */
    uint8_t ways[N_HEADERS];
    struct trial trials[N_TRIALS]; /* of operations of a size, on rank 0 */
    struct piece *pieces[N_PIECES];
};

frit_status group_create(void *instance, const frit_group_params *params, frit_group **out,
                         frit_err *err);
void group_destroy(frit_group *group);
void group_abort(frit_group *group, const frit_err *why);
frit_status group_begin(frit_group *group, const frit_collective_op *op, uint64_t *value,
                        frit_err *err);
frit_status group_wait(frit_group *group, uint64_t value, uint64_t timeout_ns, frit_err *err);

/* ---- on the thread that drives ---- */

static inline uint64_t group_key(const frit_group *group)
{
    return group->key;
}
static inline frit_group *group_next(const frit_group *group)
{
    return group->next;
}
static inline void group_link(frit_group *group, frit_group **list)
{
    group->next = *list;
    *list = group;
}

/* With the lock: the first failure stays. */
void group_fail(frit_group *group, frit_status status, const char *format, ...) FRIT_PRINTF(3, 4);

#endif
