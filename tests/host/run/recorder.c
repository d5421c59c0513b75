/* SPDX-License-Identifier: Apache-2.0 */
#include "run/recorder.h"

#include <string.h>

#include "base/fail.h"
#include "commands.h"

struct made {
    frit_recording *recording;
    uint64_t last; /* value of the last replay */
};

static struct recorder *recorder;

static frit_status record(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_param *params, uint32_t n_params,
                          uint32_t param_stride, frit_recording **out, frit_err *err)
{
    struct cmd_arena arena = {0};
    struct made *made;

    (void)self;
    assert_null(queue);
    recorder->records++;
    recorder->n_places = 0;
    for (uint32_t i = 0; i < n_params; i++) {
        const frit_param *param =
            (const frit_param *)(const void *)((const char *)params + (size_t)i * param_stride);

        recorder->n_places += param->kind == FRIT_PARAM_ARG;
    }
    if (recorder->records <= recorder->busy)
        return fail(err, FRIT_BUSY, "too early");
    if (recorder->record_status)
        return fail(err, recorder->record_status, "record refused");
    if (recorder->max_cmds && count > recorder->max_cmds)
        return fail(err, FRIT_UNSUPPORTED, "%u commands in a recording", count);
    (void)recording_keep(&arena, cmds, count, stride, params, n_params, param_stride);
    made = calloc(1, sizeof(*made) + arena.used);
    assert_non_null(made);
    arena = (struct cmd_arena){.at = (char *)(made + 1)};
    made->recording = recording_keep(&arena, cmds, count, stride, params, n_params, param_stride);
    recorder->alive++;
    *out = (frit_recording *)(void *)made;
    return FRIT_OK;
}

static frit_status replay(void *self, frit_recording *recording, const void *block,
                          const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err)
{
    struct driver *driver = self;
    struct made *made = (struct made *)(void *)recording;
    frit_recording *kept = made->recording;
    frit_status status = FRIT_OK;

    if (recorder->replay_status)
        return fail(err, recorder->replay_status, "replay refused");
    recording_put_all(kept->cmds, kept, block);
    status = driver->plugin.backend.submit(self, NULL, kept->cmds, kept->n_cmds,
                                           sizeof(*kept->cmds), waits, n_waits, value, err);
    recorder->replays += !status;
    made->last = status ? made->last : *value;
    return status;
}

/* No replay of it is pending. */
static void release(void *self, frit_recording *recording)
{
    struct driver *driver = self;
    struct made *made = (struct made *)(void *)recording;

    assert_true(driver->inline_queue || atomic_load(&driver->waited) >= made->last);
    recorder->alive--;
    free(made);
}

frit_device *recorder_device(struct driver *driver, struct recorder *by, int64_t max_ops)
{
    recorder = by;
    driver->plugin.capture = (frit_capture_table){.struct_size = sizeof(frit_capture_table),
                                                  .record = record,
                                                  .replay = replay,
                                                  .release = release};
    return driver_device(driver, max_ops);
}
