/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings (frit.capture/1): graphs of the runtime, made once and launched many times.
 *
 * A kernel whose launch words are the same in every replay gets its argument block by value.  The
 * blocks of all other kernels are in a region of device memory, which each replay writes, in stream
 * order, before it launches the graph. */
#ifndef HIP_RECORDING_H
#define HIP_RECORDING_H

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/status.h>

/* Slots of frit.capture/1. */
frit_status recording_create(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                             uint32_t stride, const frit_param *params, uint32_t n_params,
                             uint32_t param_stride, frit_recording **out, frit_err *err);
frit_status recording_replay(void *self, frit_recording *recording, const void *block,
                             const frit_point *waits, uint32_t n_waits, uint64_t *value,
                             frit_err *err);
void recording_release(void *self, frit_recording *recording);

#endif
