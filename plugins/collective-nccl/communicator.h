/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator: what the ranks of one group in this process share.  It is made by the first one
 * that comes, and freed with the last one that leaves.
 *
 * An operation is given to the library when all of these ranks have begun it and agree on it, so
 * that those of one process never wait for each other on the device, and a mismatch among them is
 * found before data moves.  Of ranks in other processes nothing is known here. */
#ifndef NCCL_COMMUNICATOR_H
#define NCCL_COMMUNICATOR_H

#include <pthread.h>
#include <time.h>

#include <frit/collective.h>

#include "util/operation.h"

#include "plugin.h"

enum { COMMUNICATOR_MAX_RANKS = 1024 };

/* An operation that was begun and is not done. */
struct pending {
    struct operation operation;
    gpu_event ready; /* in the host's stream: what it reads is there */
    gpu_event end;   /* in the rank's stream */
    bool is_ordered; /* `ready` was recorded for this operation */
};

/* A rank's end.  The fields of the second part are under the communicator's lock, those of the last
 * one are the thread's. */
struct frit_group {
    struct communicator *communicator;
    uint32_t rank;
    void *device; /* of frit_group_params */
    char bus_id[GPU_BUS_ID];
    pthread_t thread;

    bool is_ready;     /* the library's communicator is made */
    bool is_leaving;   /* the thread is to end when all is done */
    bool has_left;     /* as the other ranks see it */
    bool is_gone;      /* the thread has ended: no buffer is touched any more */
    bool is_abandoned; /* nobody waits for the thread, which frees the rank */
    uint64_t begun, launched, done;
    uint32_t capacity;        /* of `pending`: a power of two, or 0 */
    struct pending **pending; /* number n at n modulo `capacity` */

    nccl_comm comm;
    gpu_stream stream;
    uint64_t barrier; /* device memory that barriers reduce */
    uint64_t idle_since;
    uint64_t span; /* of the timeline; 0: none */
};

struct communicator {
    struct communicator *next; /* under the instance's lock */
    struct instance *instance;
    const struct library *library;
    frit_group_id id;
    uint32_t size;
    uint32_t n_came, n_left; /* of this process; changed with both locks held */

    pthread_mutex_t lock;
    pthread_cond_t change;
    frit_err error;  /* of the group; status FRIT_OK: it goes on */
    uint64_t agreed; /* operations that the ranks of this process have begun and that are equal */
    frit_group *ranks[]; /* NULL: it is of another process, or did not come yet */
};

/* Makes `group` a rank of the communicator, which is made if it is the first.  FRIT_INVALID for a
 * device that another rank has. */
frit_status communicator_enter(struct instance *instance, const struct library *library,
                               const frit_group_params *params, frit_group *group, frit_err *err);
/* Removes and frees the rank, whose thread has ended or was never started. */
void communicator_leave(frit_group *group);

/* ---- with the communicator's lock ---- */

/* Ends the group, unless it has ended. */
void communicator_fail(struct communicator *c, frit_status status, const char *format, ...)
    FRIT_PRINTF(3, 4);
/* Copies the group's failure to `err`. */
frit_status communicator_error(const struct communicator *c, frit_err *err);

/* Whether all ranks have come, those of other processes, too. */
bool communicator_is_made(const struct communicator *c);
/* Agrees on what all ranks of this process have begun.  Where they differ, or one has left that an
 * operation needs, the group ends, as soon as what they had agreed on is done.  To be called
 * whenever a rank begins an operation, finds one done or leaves. */
void communicator_advance(struct communicator *c);
bool communicator_all_began(const struct communicator *c, uint64_t number);
struct pending *communicator_pending(const frit_group *group, uint64_t number);

/* " 0, 2": the ranks that did not come, or for `value` > 0 those of this process that have not
 * begun that operation. */
void communicator_print_missing(const struct communicator *c, uint64_t value, char *text,
                                size_t size);

/* A time on CLOCK_MONOTONIC. */
struct deadline {
    bool never;
    struct timespec at;
};

struct deadline deadline_after(uint64_t ns);
/* 0: it has passed. */
uint64_t deadline_left(const struct deadline *deadline);
/* Waits for a change of the communicator; false: the deadline has passed. */
bool communicator_sleep(struct communicator *c, const struct deadline *deadline);

#endif
