/* SPDX-License-Identifier: Apache-2.0 */
/* The process's place in its MPI job, of which there is one for all instances of the plugin.
 *
 * One thread at a time drives the job: it makes every call of MPI and moves the data of all groups.
 * That is whoever waits for something, so that no other thread has to be woken for it, and else the
 * job's own thread, which starts and ends MPI and looks every few milliseconds whether there is
 * anything to do. */
#ifndef MPI_JOB_H
#define MPI_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include <frit/collective.h>

#include "bell.h"
#include "mpi.h"

enum { TAG_MESSAGE = 1, TAG_DATA = 16, MESSAGE_TEXT = 240, JOB_RANKS = 256 };

enum message_kind {
    MESSAGE_JOIN = 1,   /* text: the sender's host and process; hash: the number of its segment,
                         * count:   of its bell, see shared.h */
    MESSAGE_HEADER = 2, /* the sender begins operation `number`; text: a small one's elements */
    MESSAGE_ABORT = 3,  /* the group has ended: status and text */
    MESSAGE_LEAVE = 4,  /* the sender begins nothing after operation `number` */
    MESSAGE_NEAR = 5,   /* whether (size) the sender has opened the receiver's segment (hash) */
    MESSAGE_END = 6     /* the sender's last one */
};

/* What all ranks must agree on before data moves. */
struct header {
    uint32_t kind, combine, root, n_buffers, dtype;
    uint32_t size;        /* of the group in JOIN; ranks that had joined in LEAVE */
    uint32_t small_bytes; /* of all elements, if they travel with the header; else 0 */
    uint32_t reserved;
    uint64_t count, hash; /* of the first buffer; of all */
    char note[FRIT_COLLECTIVE_NOTE];
};

struct message {
    uint32_t kind, rank;
    uint64_t key; /* of the group */
    uint64_t number;
    int32_t status;
    uint32_t channel; /* of JOIN from rank 0; of HEADER from it: the way, group.h */
    struct header header;
    char text[MESSAGE_TEXT];
};

struct frit_group;

enum job_state { JOB_NEW, JOB_STARTING, JOB_READY, JOB_ENDING, JOB_ENDED, JOB_FAILED };

/* How soon something is expected, which decides how a thread waits for it. */
enum expected { EXPECTED_NOTHING, EXPECTED_RANKS, EXPECTED_DATA };

struct job {
    pthread_mutex_t lock; /* of what other threads see: here, and in groups */
    pthread_cond_t change;
    pthread_cond_t idle; /* for the job's own thread while it does not */
    enum job_state state;
    struct frit_group *incoming; /* groups that the driving thread takes over */
    bool is_driven, is_driven_by_own;
    bool is_parked;              /* the job's own thread sleeps until it is woken */
    uint32_t n_driven_by_others; /* times since the job's own thread looked */
    struct left {
        bool has_work, all_ring;
        uint32_t seen;
    } left;             /* what the thread that drove last knew of the fields below */
    uint32_t n_waiting; /* threads that wait for something while another one drives */
    uint32_t n_groups;  /* that have not left */
    char why[300];      /* JOB_FAILED */
    int rank, size;
    bool spins;                    /* waits without giving up its processor at first */
    uint32_t n_channels;           /* given, by rank 0 */
    struct bell *bell;             /* on which the thread that drives sleeps */
    uint64_t bell_number;          /* shared.h */
    struct bell *bells[JOB_RANKS]; /* of the ranks on the same host */
    int n_bells;
    /* Of the thread that drives. */
    struct mpi mpi;
    struct frit_group *groups;
    struct outgoing *outgoing;
    struct early *early;
    struct message received;
    union mpi_handle receive;
    enum expected expected;
    int n_ended;   /* ranks */
    uint32_t seen; /* rings before the last look */
};

/* The job, once it has started: waits until `deadline_ns` for that, which takes all its processes.
 * NULL: `why` says what is wrong, and `*is_late` whether it may still start. */
struct job *job_start(const char *library, bool shares_memory, uint64_t deadline_ns, bool *is_late,
                      char *why, size_t why_bytes);
/* With the lock: something changed that the driving thread looks at. */
void job_wake(struct job *job);
/* With the lock: drives the job, or sleeps while another thread does, until `is_over` says so,
 * which is called with the lock, or until the deadline; UINT64_MAX: none.  Returns `is_over`. */
bool job_await(struct job *job, bool (*is_over)(const void *what), const void *what,
               uint64_t deadline_ns);
/* With the lock: makes this thread the one that drives if there is none; false: there is. */
bool job_try_drive(struct job *job);
void job_stop_driving(struct job *job);

/* ---- on the thread that drives ---- */

/* That of another rank, by what it sent. */
void job_open_bell(struct job *job, uint32_t rank, uint64_t number);
/* Takes a copy. */
void job_send(struct job *job, uint32_t to, const struct message *message);
/* What others sent to a group before this rank made it: the oldest, which the caller frees. */
bool job_take_early(struct job *job, uint64_t key, struct message *out);

uint64_t now_ns(void);
/* `ns` from now, without overflow. */
uint64_t deadline_after(uint64_t ns);

#endif
