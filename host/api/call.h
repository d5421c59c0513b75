/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of all op functions into the host. */
#ifndef API_CALL_H
#define API_CALL_H

#include <frit/frit.h>

#include "api/fast.h"
#include "api/observe.h"

/* An op call, as the generated functions of api/ops.c make it.  Everything is borrowed.  A record
 * with struct_size 0 comes from attributes whose struct_size was not set; it is refused. */
struct api_call {
    uint32_t op;
    uint32_t n_in;
    frit_device *device;      /* of rows without tensor operands, else NULL */
    frit_tensor *const *many; /* the tensors of a MANY operand, which come before `in` */
    uint64_t n_many;          /* the caller's number, unchecked */
    const frit_input *in;     /* `n_in`, in the row's order; OPT operands may be empty */
    void *attrs; /* record on the caller's stack, rewritten by the check; NULL for `none` */
    frit_tensor **more[4]; /* outputs after the first: where they go, NULL: not wanted */
};

enum { INPUT_NULL = 255 }; /* scalar kind of an operand that had to be a tensor and was NULL */

/* An operand that must be a tensor; for NULL the call fails with an error that names the operand.
 */
static inline frit_input api_tensor(frit_tensor *tensor)
{
    return (frit_input){.tensor = tensor, .scalar.kind = INPUT_NULL};
}

/* An operand that may be absent: NULL. */
static inline frit_input api_optional(frit_tensor *tensor)
{
    return (frit_input){.tensor = tensor};
}

static inline frit_input api_f(double value)
{
    return (frit_input){.scalar = frit_scalar_f(value)};
}

static inline frit_input api_i(int64_t value)
{
    return (frit_input){.scalar = frit_scalar_i(value)};
}

/* Checks, records, and returns the first output; never NULL. */
frit_tensor *api_op_long(const struct api_call *call);
frit_tensor *api_op_observed(const struct api_call *call);
static inline frit_tensor *api_op(const struct api_call *call)
{
    frit_tensor *out;

    if (__builtin_expect(op_observer != NULL, 0))
        return api_op_observed(call);
    out = fast_op(call);
    return out ? out : api_op_long(call);
}
/* Refuses a call: releases its taken operands (`in` may be NULL) and fills its outputs with error
 * tensors; without outputs frit_sync reports the error. */
void api_refuse(frit_device *device, const frit_input *in, uint32_t n_in, frit_tensor **outputs,
                uint64_t n_outputs, const frit_err *err);
/* Runs an op without outputs. */
frit_status api_op_status(const struct api_call *call);

#endif
