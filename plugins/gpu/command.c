/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/command.h"

#include <inttypes.h>

#include "gpu/memory.h"
#include "kernels.h"
#include "util/plug.h"

uint64_t command_cookie(const frit_cmd *cmd)
{
    const bool launches = cmd->kind == FRIT_CMD_LAUNCH || cmd->kind == FRIT_CMD_DISPATCH;

    return launches ? cmd->launch->cookie : 0;
}

frit_status command_check_fill(const struct plug *plug, const frit_cmd *cmd, frit_err *err)
{
    const uint32_t n = cmd->pattern_bytes;

    if ((n != 1 && n != 2 && n != 4 && n != 8) || cmd->dst_offset % n || cmd->bytes % n)
        return plug_fail(plug, err, FRIT_INVALID,
                         "FILL of %" PRIu64 " bytes at offset %" PRIu64
                         " with a pattern of %u bytes",
                         cmd->bytes, cmd->dst_offset, n);
    return memory_check_range(plug, cmd->dst, cmd->dst_offset, cmd->bytes, err);
}

frit_status command_check_copy(const struct plug *plug, const frit_cmd *cmd, frit_err *err)
{
    frit_status status = memory_check_range(plug, cmd->dst, cmd->dst_offset, cmd->bytes, err);

    if (!status)
        status = memory_check_range(plug, cmd->src, cmd->src_offset, cmd->bytes, err);
    if (!status && cmd->src == cmd->dst && cmd->src_offset < cmd->dst_offset + cmd->bytes &&
        cmd->dst_offset < cmd->src_offset + cmd->bytes)
        return plug_fail(plug, err, FRIT_UNSUPPORTED,
                         "COPY of %" PRIu64 " bytes whose source and destination overlap",
                         cmd->bytes);
    return status;
}

frit_status command_check_timestamp(const struct plug *plug, const frit_cmd *cmd, frit_err *err)
{
    if (cmd->dst_offset % sizeof(uint64_t))
        return plug_fail(plug, err, FRIT_INVALID,
                         "TIMESTAMP at offset %" PRIu64 ", not a multiple of 8", cmd->dst_offset);
    return memory_check_range(plug, cmd->dst, cmd->dst_offset, sizeof(uint64_t), err);
}

static frit_status check_derived(const struct plug *plug, const frit_launch *launch, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < launch->n_derived && !status; i++) {
        const char *at =
            (const char *)launch->spec->derived + (size_t)i * launch->spec->derived_stride;
        const frit_derived_spec *spec = (const frit_derived_spec *)(const void *)at;

        status = memory_check_range(plug, launch->derived[i].memory, launch->derived[i].offset,
                                    spec->bytes, err);
    }
    return status;
}

frit_status command_check_ranges(const struct plug *plug, const frit_launch *launch, frit_err *err)
{
    const uint64_t workspace = launch->spec->workspace_bytes;
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < launch->n_args && !status; i++) {
        const frit_arg *arg = frit_arg_at(launch, i);

        if (arg->memory)
            status = memory_check_range(plug, arg->memory, arg->offset, arg->extent, err);
    }
    if (!status && workspace)
        status =
            memory_check_range(plug, launch->workspace, launch->workspace_offset, workspace, err);
    return status ? status : check_derived(plug, launch, err);
}

frit_status command_check_launch(const struct plug *plug, const frit_launch *launch, frit_err *err)
{
    if (!kernels_owns(launch->program))
        return plug_fail(plug, err, FRIT_INVALID, "launch of a program of another driver");
    return command_check_ranges(plug, launch, err);
}

uint64_t command_repeat_pattern(uint64_t pattern, uint32_t bytes)
{
    if (bytes < 8)
        pattern &= (1ull << 8 * bytes) - 1;
    for (uint32_t have = bytes; have < 8; have *= 2)
        pattern |= pattern << 8 * have;
    return pattern;
}
