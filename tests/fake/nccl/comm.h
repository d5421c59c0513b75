/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of the fake: ranks are threads or processes of one machine, which see a region of
 * shared memory. */
#ifndef FAKE_NCCL_COMM_H
#define FAKE_NCCL_COMM_H

#include <stddef.h>

#include "fake.h"

enum { PIECE = 1 << 18 /* bytes of each rank's data in the region */ };

struct region {
    _Atomic uint32_t came; /* a bit for each rank */
    _Atomic uint32_t n_at_barrier, n_barriers;
    char data[FAKE_NCCL_RANKS][PIECE];
};

enum call_kind { CALL_ALL_REDUCE, CALL_REDUCE_SCATTER, CALL_BROADCAST, CALL_ALL_GATHER };

struct nccl_comm_object;

struct call {
    struct nccl_comm_object *comm;
    enum call_kind kind;
    const void *from;
    void *into;
    size_t count;
    int type, op, root;
    void *stream;
};

struct nccl_comm_object {
    struct nccl_comm_object
        *next; /* in the list of all, where calls that a lost device dropped keep it */
    struct region *region;
    char name[64]; /* of the region */
    int size, rank;
    void *context; /* the device that was current */
    bool is_made, has_launched;
    _Atomic bool aborted;
    _Atomic uint32_t refs;      /* of calls that are enqueued, and of the application */
    _Atomic uint32_t n_running; /* calls */
    uint32_t polls;             /* that say "in progress" before the calls are enqueued */
    struct call *calls;
    uint32_t n_calls, capacity;
};

extern struct fake_nccl fake_nccl;

/* Opens the region of a name; NULL: it cannot. */
struct region *region_open(const char *name);
void region_close(struct region *region, const char *name);

void comm_link(struct nccl_comm_object *comm);
void comm_unref(struct nccl_comm_object *comm);

/* Runs on a stream of the device; `data` is a struct call. */
void collective_run(const void *data);
/* Bytes of an element; 0: there is no such type. */
size_t collective_type_bytes(int type);

#endif
