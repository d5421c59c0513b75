/* SPDX-License-Identifier: Apache-2.0 */
/* The process's place in its MPI job, of which there is one for all instances of the plugin.
 *
 * One thread makes every call of MPI.  It runs from the first group of several ranks to the end of
 * the process, sleeps while no operation is under way, and yields the processor while it waits for
 * other ranks. */
#ifndef MPI_JOB_H
#define MPI_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <frit/collective.h>

#include "mpi.h"

enum { TAG_MESSAGE = 1, TAG_DATA = 16, MESSAGE_TEXT = 240, JOB_RANKS = 256 };

enum message_kind {
    MESSAGE_JOIN = 1,   /* text: the sender's host and process */
    MESSAGE_HEADER = 2, /* the sender begins operation `number` */
    MESSAGE_ABORT = 3,  /* the group has ended: status and text */
    MESSAGE_LEAVE = 4   /* the sender begins nothing after operation `number` */
};

/* What all ranks must agree on before data moves. */
struct header {
    uint32_t kind, combine, root, n_buffers, dtype;
    uint32_t size;        /* of the group in JOIN; ranks that had joined in LEAVE */
    uint64_t count, hash; /* of the first buffer; of all */
    char note[FRIT_COLLECTIVE_NOTE];
};

struct message {
    uint32_t kind, rank;
    uint64_t key; /* of the group */
    uint64_t number;
    int32_t status;
    uint32_t channel; /* of JOIN from rank 0 */
    struct header header;
    char text[MESSAGE_TEXT];
};

struct frit_group;

enum job_state { JOB_NEW, JOB_STARTING, JOB_READY, JOB_ENDING, JOB_ENDED, JOB_FAILED };

struct job {
    pthread_mutex_t lock; /* of what other threads see: here, and in groups */
    pthread_cond_t change;
    pthread_cond_t work; /* for the thread */
    enum job_state state;
    struct frit_group *incoming; /* groups that the thread takes over */
    bool is_woken;
    uint32_t n_groups; /* that have not left */
    char why[300];     /* JOB_FAILED */
    int rank, size;
    uint32_t n_channels; /* given, by rank 0 */
    /* Of the thread. */
    struct mpi mpi;
    mpi_handle comm;
    struct frit_group *groups;
    struct outgoing *outgoing;
    struct early *early;
    struct message received;
    mpi_handle receive;
};

/* The job, once it has started: waits until `deadline_ns` for that, which takes all its processes.
 * NULL: `why` says what is wrong, and `*is_late` whether it may still start. */
struct job *job_start(const char *library, uint64_t deadline_ns, bool *is_late, char *why,
                      size_t why_bytes);
/* With the lock: something changed that the thread looks at. */
void job_wake(struct job *job);
/* With the lock: until a change or the deadline, UINT64_MAX: none.  False after the deadline. */
bool job_sleep(struct job *job, pthread_cond_t *condition, uint64_t deadline_ns);

/* ---- on the thread ---- */

/* Takes a copy. */
void job_send(struct job *job, uint32_t to, const struct message *message);
/* What others sent to a group before this rank made it: the oldest, which the caller frees. */
bool job_take_early(struct job *job, uint64_t key, struct message *out);

uint64_t now_ns(void);
/* `ns` from now, without overflow. */
uint64_t deadline_after(uint64_t ns);

#endif
