/* SPDX-License-Identifier: Apache-2.0 */
/* Submission of commands. */
#ifndef HIP_SUBMIT_H
#define HIP_SUBMIT_H

#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>
#include <frit/types.h>

#include "api.h"

struct device;

/* Negative with a message for a command that cannot be enqueued. */
frit_status submit_check_command(struct device *device, const frit_cmd *cmd, frit_err *err);
/* Enqueues a COPY or FILL on a stream; the command was checked. */
frit_status submit_copy(struct frit_queue *queue, gpu_stream stream, const frit_cmd *cmd,
                        frit_err *err);
frit_status submit_fill(struct frit_queue *queue, gpu_stream stream, const frit_cmd *cmd,
                        frit_err *err);

/* Slot `submit` of frit.backend/1. */
frit_status submit_commands(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                            uint32_t stride, const frit_point *waits, uint32_t n_waits,
                            uint64_t *value, frit_err *err);

#endif
