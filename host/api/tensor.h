/* SPDX-License-Identifier: Apache-2.0 */
/* What the entry points share about tensors. */
#ifndef API_TENSOR_H
#define API_TENSOR_H

#include <stdint.h>

#include <frit/frit.h>
#include <frit/status.h>

struct binding;
struct failure;
struct op_type;
struct slot;
struct value;

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
/* What `f(frit_take(t))` does at the end of a call. */
void tensor_consume(frit_tensor *tensor);

#endif
