/* SPDX-License-Identifier: Apache-2.0 */
/* The fast path of op calls. */
#ifndef API_FAST_H
#define API_FAST_H

#include <stdbool.h>

#include <frit/frit.h>

struct api_call;

/* Records a predicted op; see fast.c.  NULL: nothing was done, and api_op_long is to be called. */
frit_tensor *fast_op(const struct api_call *call);
/* The same for any number of outputs: those of the mask `wanted` are written to `out`. */
bool fast_outputs(const struct api_call *call, uint32_t wanted, frit_tensor **out);

#endif
