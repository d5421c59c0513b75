/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of commands that do not depend on the driver.  Threads: any. */
#ifndef GPU_COMMAND_H
#define GPU_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/program.h>
#include <frit/status.h>

struct plug;

/* Command `i` of an array. */
static inline const frit_cmd *command_at(const frit_cmd *cmds, uint32_t stride, uint32_t i)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride);
}

/* The cookie of a command's launch; 0 for a command of another kind. */
uint64_t command_cookie(const frit_cmd *cmd);

/* FRIT_INVALID with a message for a command whose numbers are wrong or whose ranges do not lie in
 * their memory. */
frit_status command_check_fill(const struct plug *plug, const frit_cmd *cmd, frit_err *err);
frit_status command_check_copy(const struct plug *plug, const frit_cmd *cmd, frit_err *err);
frit_status command_check_timestamp(const struct plug *plug, const frit_cmd *cmd, frit_err *err);
/* Of a LAUNCH of the kernel compiler's programs. */
frit_status command_check_launch(const struct plug *plug, const frit_launch *launch, frit_err *err);
/* The ranges of the arguments, of the workspace and of derived memory alone. */
frit_status command_check_ranges(const struct plug *plug, const frit_launch *launch, frit_err *err);

/* The pattern of 1, 2, 4 or 8 bytes, repeated to 8 bytes. */
uint64_t command_repeat_pattern(uint64_t pattern, uint32_t bytes);

#endif
