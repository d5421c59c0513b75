/* SPDX-License-Identifier: Apache-2.0 */
/* A driver on the kit with a queue that runs on after submit, on a thread, and with programs that
 * are compiled first; what it computes is the template's.  It is a plugin, for conform, and part of
 * the test that uses it. */
#ifndef TEST_KIT_LATE_H
#define TEST_KIT_LATE_H

#include <stdatomic.h>

#include "kit/kit.h"
#include "util/progress.h"

struct node;

/* What the options of the plugin say: how launches fail, and where a file may lie by which the
 * device is lost.  The instance's own. */
struct late_options {
    bool fail, lose;
    frit_str gone; /* a folder; the file is named like the process.  Empty: none */
};

/* What a device has of its own: the queue, and what a test wants of it. */
struct late {
    struct progress progress;
    pthread_t thread;
    pthread_mutex_t lock; /* of the list and of `held` */
    pthread_cond_t change;
    struct node *first, *last;
    bool stop;
    bool held;           /* nothing runs meanwhile */
    uint64_t fail, lose; /* cookie of the launch that fails, that the device is lost with */
    bool fail_all, lose_all;
    char gone[128];      /* a file: where it appears, the device is lost.  "": none */
    atomic_uint n_codes; /* that live */
    atomic_uint n_compiled;
    atomic_bool refuse_compile;
    atomic_uint meet; /* compiles that wait for one another */
};

/* Code: what runs a program for operands that lie densely, or for any. */
struct late_code {
    frit_status (*run)(const struct kit_call *call, frit_err *err);
    bool dense;
    atomic_uint better;
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

/* Begins the thread. */
frit_status late_open(struct kit_device *device, frit_err *err);
/* Runs what is queued, and ends the thread; not while it is held. */
void late_close(struct kit_device *device);
/* Nothing runs from now on. */
void late_hold(struct kit_device *device);
/* What is queued runs. */
void late_release(struct kit_device *device);

#endif
