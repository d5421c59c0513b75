/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the entry points: making tensors, resolving handles. */
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

/* An error tensor, added to the innermost scope like any other; `device` may be NULL. */
frit_tensor *tensor_error(frit_device *device, const frit_err *err);
/* An error tensor with an existing failure, of which it takes a reference. */
frit_tensor *tensor_failed(frit_device *device, struct failure *failure);
/* A tensor with this value, whose buffer it takes over. */
frit_tensor *tensor_ready(frit_device *device, struct value *value, frit_err *err);
/* tensor_failed inside the lock of the binding's stream; frit_sync does not report the error. */
frit_tensor *tensor_failed_in(struct binding *binding, frit_device *device,
                              struct failure *failure);
/* Resolves a handle, waits until it is READY and returns its slot inside the lock of its home.
 * NULL, without the lock, and an error if it has no value; `what` names the call in the text. */
struct slot *tensor_enter(frit_tensor *tensor, const char *what, frit_err *err);
/* FRIT_INVALID unless `data` is not NULL and `bytes` is the size of a dense tensor of the type. */
frit_status tensor_check_data(const struct op_type *type, const void *data, uint64_t bytes,
                              frit_err *err);
/* Releases the tensor if the handle was marked by frit_take. */
void tensor_consume(frit_tensor *tensor);

#endif
