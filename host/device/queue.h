/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of a device: submits, transfers, and how far their timelines are.
 *
 * Streams take the queues in turn.  Each queue runs what it is given in order; between queues
 * order is made by points to wait for, which come from what memory was last used by
 * (memory/memory.h).  The host waits only for what it reads itself.
 *
 * A queue's value counts as reached when the failures up to it are known, and so are those of all
 * that it waited for on other queues: what a read finds in memory is then good or marked as
 * spoiled, whichever queue wrote it.  Threads: any. */
#ifndef DEVICE_QUEUE_H
#define DEVICE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/frit.h>

#include "memory/point.h"

struct submit_after;

struct device_queue {
    /* Written with each submit, apart from what is only read. */
    _Alignas(64) pthread_mutex_t lock; /* the contract wants one call at a time */
    frit_queue *handle;                /* NULL: the device's first one */
    atomic_uint_least64_t inside;      /* thread that has the lock, 0: none */
    atomic_uint_least64_t submits;     /* how many; written under the lock */
    atomic_uint_least64_t last_value;  /* submitted */
    atomic_uint_least64_t reached;
    /* The largest value of each other queue that something here waits for; written under the lock.
     */
    atomic_uint_least64_t waited[QUEUES_MAX];
};

/* The device is open at the driver's.  As many queues as the configuration says and the driver
 * gives, at least its first one. */
void queues_open(frit_device *device);
/* Nothing is pending. */
void queues_close(frit_device *device);
/* The queue of a stream. */
uint32_t queue_of_stream(const frit_device *device, uint32_t ordinal);

/* The newest value of each queue. */
void device_submitted(const frit_device *device, struct points *out);
uint64_t device_submits(const frit_device *device);
/* Whether all that was submitted has ended, and no thread is about to submit. */
bool device_is_idle(frit_device *device);

/* One call of the driver's submit: hands `cmds` over and gives the point that they reach. */
frit_status device_submit(frit_device *device, uint32_t queue, const frit_cmd *cmds, uint32_t count,
                          const struct submit_after *after, uint64_t *point, frit_err *err);
/* A recording of commands for the queue, to be replayed; with frit_device.capture. */
frit_status device_record(frit_device *device, uint32_t queue, const frit_cmd *cmds, uint32_t count,
                          const frit_param *params, uint32_t n_params, frit_recording **out);
struct device_replay {
    frit_recording *recording;
    uint32_t queue; /* of the recording */
    const void *block;
};
/* As device_submit, with the commands of a recording. */
frit_status device_replay(frit_device *device, const struct device_replay *replay,
                          const struct submit_after *after, uint64_t *point, frit_err *err);
/* One call of the driver's write or read, ordered after `after`.  Takes `queue` if nobody is in it,
 * else any other; fills the transfer's queue and waits. */
frit_status device_write(frit_device *device, uint32_t queue, frit_transfer *to, const void *from,
                         const struct points *after, uint64_t *point, frit_err *err);
frit_status device_read(frit_device *device, uint32_t queue, frit_transfer *from, void *into,
                        const struct points *after, uint64_t *point, frit_err *err);
/* As device_write, of the driver's copy_from, which must be there. */
frit_status device_copy_from(frit_device *device, uint32_t queue, frit_transfer *to,
                             const frit_peer_source *from, const struct points *after,
                             uint64_t *point, frit_err *err);

#endif
