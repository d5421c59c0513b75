/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: their enumeration, opening and closing. */
#ifndef HIP_DEVICE_H
#define HIP_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>

#include "emit/c/ctext.h"
#include "kernels.h"

#include "api.h"
#include "builtin.h"
#include "peer.h"
#include "product.h"
#include "queue.h"

struct adapter;
struct instance;

enum { MAX_QUEUES = 16 };

/* The loss of the device, and the notification of the host. */
struct loss {
    pthread_mutex_t lock;
    _Atomic gpu_result fatal; /* the first error after which the device cannot be used; 0: none */
    bool is_settled;          /* device_settle has seen `fatal` */
    frit_err why;
    void (*on_lost)(void *ctx, const frit_err *why); /* from frit_open_params; may be NULL */
    void *ctx;
    pthread_t thread; /* calls `on_lost` */
    bool has_thread;
};

/* An open device.  Constant while it is open, except the queues, what is atomic and what has a
 * lock.
 */
struct device {
    struct kernels_device kernels; /* the first member: see gpu/program.h */
    const struct instance *instance;
    const struct api *api;
    const struct adapter *adapter;
    gpu_context context;        /* where the vendor has contexts */
    bool context_is_adopted;    /* the application's */
    bool is_entered;            /* `context` is there: vendor.open has succeeded */
    _Atomic uint64_t allocated; /* bytes of device memory that the driver holds */
    uint64_t open_number;       /* which device_open call of the instance, from 1 */
    struct peers peers;
    pthread_mutex_t queues_lock;
    struct frit_queue *queues[MAX_QUEUES]; /* the first one is the host's queue NULL */
    struct loss loss;
    pthread_mutex_t compile_lock; /* of the builtins, and what is made of all struct kernel_code */
    pthread_cond_t compile_ended; /* of a form or a task */
    uint32_t n_compile_tasks;     /* with compile_lock: in the host's hands */
    bool has_locks;
    struct builtins builtins;
    struct products products;
    struct ctext_target text;
};

/* Slots `enumerate`, `compute_info`, `device_open` and `device_close` of frit.backend/1. */
frit_status device_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err);
frit_status device_compute_info(void *instance, uint32_t index, frit_compute_info *out,
                                frit_err *err);
frit_status device_open(void *instance, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err);
void device_close(void *self);

/* Writes the message of an error of the runtime.  If the error is fatal the device is lost: the
 * status is FRIT_DEVICE_LOST, and the caller calls device_settle once it holds no lock. */
frit_status device_fail(struct device *device, gpu_result result, const char *doing, frit_err *err);
static inline bool device_is_lost(struct device *device)
{
    return atomic_load_explicit(&device->loss.fatal, memory_order_acquire) != 0;
}
/* Of a lost device: the message and FRIT_DEVICE_LOST; else FRIT_OK. */
frit_status device_check(struct device *device, frit_err *err);
/* If the device is lost and it is the first call since: ends every queue's timeline, drops pending
 * reads and notifies the host.  No queue's lock may be held. */
void device_settle(struct device *device);

#endif
