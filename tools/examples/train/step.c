/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step.h"

#include "train/data.h"
#include <frit/grad.h>
#include <frit/train.h>

frit_status step_backward(const struct network *network, frit_device *device,
                          frit_tensor *const *params, const float *pixels, const int32_t *labels,
                          uint32_t n, frit_tensor **loss, frit_err *err)
{
    frit_tensor *x = frit_from_host(device, FRIT_F32, FRIT_SHAPE(n, SIDE, SIDE), pixels,
                                    sizeof(float) * n * PIXELS);
    frit_tensor *y = frit_from_host(device, FRIT_I32, FRIT_SHAPE(n), labels, sizeof(int32_t) * n);

    for (uint32_t i = 0; i < network->n_params; i++) {
        const frit_status st = frit_grad_watch(params[i], err);

        if (st)
            return st;
    }
    *loss = frit_loss_cross_entropy(network->logits(params, x), y, 1);
    return frit_grad_backward(*loss, err);
}
