/* SPDX-License-Identifier: Apache-2.0 */
/* frit.capture/1, which the device has with the option `captures`: a recording is a copy of its
 * commands, and a replay submits them. */
#include "candidates.h"

#include "commands.h"

static frit_status capture_record(void *self, frit_queue *queue, const frit_cmd *cmds,
                                  uint32_t count, uint32_t stride, const frit_param *params,
                                  uint32_t n_params, uint32_t param_stride, frit_recording **out,
                                  frit_err *err)
{
    struct device *device = self;
    struct cmd_arena arena = {0};

    (void)recording_keep(&arena, cmds, count, stride, params, n_params, param_stride);
    arena.at = plug_alloc(&device->instance->plug, arena.used, 64);
    if (!arena.at)
        return plug_fail(&device->instance->plug, err, FRIT_NO_HOST_MEMORY,
                         "no memory for a recording");
    arena.used = 0;
    *out = recording_keep(&arena, cmds, count, stride, params, n_params, param_stride);
    (*out)->queue = queue;
    return FRIT_OK;
}

static frit_status capture_replay(void *self, frit_recording *recording, const void *block,
                                  const frit_point *waits, uint32_t n_waits, uint64_t *value,
                                  frit_err *err)
{
    struct device *device = self;

    recording_put_all(recording->cmds, recording, block);
    atomic_fetch_add(&device->instance->replays, 1);
    return device_backend.submit(self, recording->queue, recording->cmds, recording->n_cmds,
                                 sizeof *recording->cmds, waits, n_waits, value, err);
}

static void capture_release(void *self, frit_recording *recording)
{
    struct device *device = self;

    plug_free(&device->instance->plug, recording);
}

const frit_capture_table capture_table = {
    .struct_size = sizeof(frit_capture_table),
    .record = capture_record,
    .replay = capture_replay,
    .release = capture_release,
};
