/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward pass of a batch. */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "train/network.h"

/* Between frit_grad_begin and frit_grad_end, in a scope: watches the parameters and records the
 * gradients of the mean cross-entropy of n images.  `loss` belongs to the scope. */
frit_status step_backward(const struct network *network, frit_device *device,
                          frit_tensor *const *params, const float *pixels, const int32_t *labels,
                          uint32_t n, frit_tensor **loss, frit_err *err);

#endif
