/* SPDX-License-Identifier: Apache-2.0 */
/* The host object, and what the entry points share. */
#ifndef API_HOST_H
#define API_HOST_H

#include "load/registry.h"
#include "run/drain.h"

struct frit_host {
    struct conf *conf;
    struct registry *registry;
    uint64_t seed;        /* of devices that are opened; under the lock */
    pthread_mutex_t lock; /* of the rest */
    frit_device *devices;
    frit_err error;    /* of the last failed call */
    bool has_timeline; /* it records; constant once open */
};

/* Keeps `err` for frit_host_error; returns `status`.  NULL host: nothing to keep it in. */
frit_status host_keep_error(frit_host *host, frit_status status, const frit_err *err);

/* A tensor that is an error; `device` may be NULL.  Belongs to the innermost scope like any other.
 */
frit_tensor *tensor_error(frit_device *device, const frit_err *err);
/* Another tensor with the same failure; borrows it. */
frit_tensor *tensor_failed(frit_device *device, struct failure *failure);
/* A tensor with this value, which it takes over. */
frit_tensor *tensor_ready(frit_device *device, struct value *value, frit_err *err);
/* tensor_failed inside the lock of the place's stream; the error is not noted. */
frit_tensor *tensor_failed_in(struct binding *binding, frit_device *device,
                              struct failure *failure);

/* Resolves a handle for a call named `what` and enters its home's lock, once it is READY; a failed
 * tensor gives its own failure.  NULL, and no lock, where it has no value. */
struct slot *tensor_enter(frit_tensor *tensor, const char *what, frit_err *err);
/* Whether `bytes` at `data` are a dense tensor of the type. */
frit_status tensor_check_data(const struct op_type *type, const void *data, uint64_t bytes,
                              frit_err *err);
/* Passes a status on; the text of a failure goes to the host, if the tensor names one. */
frit_status tensor_report(frit_tensor *tensor, frit_status status, const frit_err *err);
/* What `f(frit_take(t))` does at the end of a call. */
void tensor_consume(frit_tensor *tensor);

#endif
