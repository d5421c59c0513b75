/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of commands with all that they point at, and recordings that are such copies: for drivers
 * of tests.  Threads: any. */
#ifndef FAKE_COMMANDS_H
#define FAKE_COMMANDS_H

#include <frit/capture.h>

/* Memory that is handed out from its beginning; without `at` it is only measured. */
struct cmd_arena {
    char *at;
    uint64_t used;
};

/* Copies; NULL while they are measured. */
frit_cmd *commands_keep(struct cmd_arena *arena, const frit_cmd *cmds, uint32_t count,
                        uint32_t stride);

/* Lies at the beginning of its arena. */
struct frit_recording {
    frit_cmd *cmds;
    frit_param *params;
    uint32_t n_cmds, n_params;
    frit_queue *queue; /* of the recording, as its driver needs it; NULL: it was not said */
};

/* NULL while it is measured. */
frit_recording *recording_keep(struct cmd_arena *arena, const frit_cmd *cmds, uint32_t count,
                               uint32_t stride, const frit_param *params, uint32_t n_params,
                               uint32_t param_stride);
/* Puts what a replay gives of one parameter into copies of the commands. */
void recording_put(frit_cmd *cmds, const frit_param *param, const void *block);
/* All of them. */
void recording_put_all(frit_cmd *cmds, const frit_recording *recording, const void *block);

#endif
