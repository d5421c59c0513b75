/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin `reference` once more, with a queue that runs late: what its files share. */
#ifndef LATE_H
#define LATE_H

#include <pthread.h>
#include <stdbool.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/native.h>

#include "util/plug.h"
#include "util/progress.h"

/* One per host.  `inner` is the instance of the real plugin, which does the computing. */
struct instance {
    struct plug plug;
    const struct frit_plugin *real;
    const frit_backend *backend;     /* of the real plugin */
    const frit_native_table *native; /* of the real plugin */
    void *inner;
    int64_t hold;           /* submissions that stay in a queue until somebody waits */
    int64_t fail_launch;    /* number of a launch that fails all the same, from 1; 0: none */
    uint32_t ignores_waits; /* its queues do not wait for each other, which is a sin */
};

struct node;

struct frit_queue {
    struct device *device;
    struct progress progress;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t change;
    struct node *first, *last;
    int64_t n_nodes;
    uint64_t wanted; /* the largest value that somebody waits for */
    uint64_t taken;  /* value of the last node that runs or has run */
    bool stop;
};

struct device {
    struct instance *instance;
    void *inner;
    frit_queue queue;      /* the first one */
    pthread_mutex_t calls; /* of the real device's one queue */
    uint64_t known;        /* value of the real queue up to which failures are known */
    int64_t n_launches;    /* that were handed on */
};

/* Slots of frit.backend/1. */
frit_status late_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                       frit_err *err);
frit_status late_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                      frit_err *err);
frit_status late_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                        uint32_t stride, const frit_point *waits, uint32_t n_waits, uint64_t *value,
                        frit_err *err);
frit_status late_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                      frit_failure *failure, frit_err *err);
frit_status late_queue_create(void *self, const frit_queue_desc *desc, frit_queue **out,
                              frit_err *err);
void late_queue_destroy(void *self, frit_queue *queue);

/* Slots of frit.capture/1: commands are copied in record, and once more for each replay. */
frit_status late_record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                        uint32_t stride, const frit_param *params, uint32_t n_params,
                        uint32_t param_stride, frit_recording **out, frit_err *err);
frit_status late_replay(void *self, frit_recording *recording, const void *block,
                        const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err);
void late_release(void *self, frit_recording *recording);

/* Begins the thread of the first queue; `device` has its instance and inner device. */
frit_status late_open(struct device *device, frit_err *err);
/* Runs what is queued, and ends the thread. */
void late_close(struct device *device);

#endif
