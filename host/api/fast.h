/* SPDX-License-Identifier: Apache-2.0 */
/* The usual call. */
#ifndef API_FAST_H
#define API_FAST_H

#include <frit/frit.h>

struct api_call;

/* The short way, see fast.h: the output, or NULL: nothing was done, and the call goes the long way.
 */
frit_tensor *fast_op(const struct api_call *call);

#endif
