/* SPDX-License-Identifier: Apache-2.0 */
/* The fast path of op calls. */
#ifndef API_FAST_H
#define API_FAST_H

#include <frit/frit.h>

struct api_call;

/* Records a predicted op; see fast.c.  NULL: nothing was done, and api_op_long is to be called. */
frit_tensor *fast_op(const struct api_call *call);

#endif
