/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "util/hosted_command.h"

#include <inttypes.h>
#include <string.h>

#include "util/hosted.h"
#include "util/kernel.h"
#include "util/memory.h"

uint64_t hosted_now_ns(const struct hosted *hosted)
{
    return hosted->plug->core->now_ns(hosted->plug->host->self);
}

/* ---- checks ---- */

frit_status hosted_check_range(const struct hosted *hosted, const frit_memory *memory,
                               uint64_t offset, uint64_t bytes, frit_err *err)
{
    if (memory_holds(memory, offset, bytes))
        return FRIT_OK;
    return plug_fail(hosted->plug, err, FRIT_INVALID,
                     "%" PRIu64 " bytes at %" PRIu64 " of a buffer of %" PRIu64, bytes, offset,
                     memory->bytes);
}

static frit_status check_fill(const struct hosted *hosted, const frit_cmd *cmd, frit_err *err)
{
    uint32_t n = cmd->pattern_bytes;

    if ((n != 1 && n != 2 && n != 4 && n != 8) || cmd->dst_offset % n || cmd->bytes % n)
        return plug_fail(hosted->plug, err, FRIT_INVALID,
                         "fill of %" PRIu64 " bytes at %" PRIu64 " with a pattern of %u",
                         cmd->bytes, cmd->dst_offset, n);
    return hosted_check_range(hosted, cmd->dst, cmd->dst_offset, cmd->bytes, err);
}

static frit_status check_copy(const struct hosted *hosted, const frit_cmd *cmd, frit_err *err)
{
    frit_status status = hosted_check_range(hosted, cmd->dst, cmd->dst_offset, cmd->bytes, err);

    return status ? status : hosted_check_range(hosted, cmd->src, cmd->src_offset, cmd->bytes, err);
}

static frit_status check_timestamp(const struct hosted *hosted, const frit_cmd *cmd, frit_err *err)
{
    if (cmd->dst_offset % sizeof(uint64_t))
        return plug_fail(hosted->plug, err, FRIT_INVALID, "timestamp at %" PRIu64, cmd->dst_offset);
    return hosted_check_range(hosted, cmd->dst, cmd->dst_offset, sizeof(uint64_t), err);
}

static frit_status check_launch(const struct hosted *hosted, const frit_launch *launch,
                                frit_err *err)
{
    uint64_t workspace = launch->spec->workspace_bytes;

    for (uint32_t i = 0; i < launch->n_args; i++) {
        const frit_arg *arg = frit_arg_at(launch, i);

        if (arg->memory && !memory_holds(arg->memory, arg->offset, arg->extent))
            return plug_fail(hosted->plug, err, FRIT_INVALID,
                             "argument %u of a launch leaves its buffer", i);
    }
    if (workspace && (!launch->workspace ||
                      !memory_holds(launch->workspace, launch->workspace_offset, workspace)))
        return plug_fail(hosted->plug, err, FRIT_INVALID, "a launch lacks its workspace");
    return FRIT_OK;
}

frit_status hosted_check_command(const struct hosted_queue *queue, const frit_cmd *cmd,
                                 frit_err *err)
{
    const struct hosted *hosted = queue->device;
    frit_status status;

    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        return check_copy(hosted, cmd, err);
    case FRIT_CMD_FILL:
        return check_fill(hosted, cmd, err);
    case FRIT_CMD_LAUNCH:
        status = check_launch(hosted, cmd->launch, err);
        return status ? status : hosted->driver->check(queue->ctx, cmd->launch, err);
    case FRIT_CMD_DISPATCH:
        status = kernel_check(hosted->plug, cmd, err);
        return status ? status : check_launch(hosted, cmd->launch, err);
    case FRIT_CMD_BARRIER:
        return FRIT_OK;
    case FRIT_CMD_TIMESTAMP:
        return check_timestamp(hosted, cmd, err);
    default:
        return plug_fail(hosted->plug, err, FRIT_UNSUPPORTED, "command of kind %u", cmd->kind);
    }
}

/* ---- running ---- */

static void run_fill(const frit_cmd *cmd)
{
    char *to = memory_at(cmd->dst, cmd->dst_offset);
    uint64_t word, done = 0;

    for (uint32_t i = 0; i < sizeof word; i += cmd->pattern_bytes)
        memcpy((char *)&word + i, &cmd->pattern, cmd->pattern_bytes);
    for (; cmd->bytes - done >= sizeof word; done += sizeof word)
        memcpy(to + done, &word, sizeof word);
    memcpy(to + done, &word, cmd->bytes - done);
}

static void run_copy(const frit_cmd *cmd)
{
    memmove(memory_at(cmd->dst, cmd->dst_offset), memory_at(cmd->src, cmd->src_offset), cmd->bytes);
}

static void run_timestamp(const struct hosted *hosted, const frit_cmd *cmd)
{
    const uint64_t ticks = hosted_now_ns(hosted);

    memcpy(memory_at(cmd->dst, cmd->dst_offset), &ticks, sizeof ticks);
}

static frit_str command_name(const struct hosted *hosted, const frit_cmd *cmd)
{
    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        return FRIT_STR("copy");
    case FRIT_CMD_FILL:
        return FRIT_STR("fill");
    case FRIT_CMD_LAUNCH:
        return hosted->driver->name(cmd->launch);
    default:
        return FRIT_STR("kernel");
    }
}

static frit_status run_command(const struct hosted_queue *queue, const frit_cmd *cmd, frit_err *err)
{
    const struct hosted *hosted = queue->device;

    if (cmd->kind == FRIT_CMD_DISPATCH)
        return kernel_run(cmd, err);
    if (cmd->kind == FRIT_CMD_LAUNCH)
        return hosted->driver->run(queue->ctx, cmd->launch, err);
    if (cmd->kind == FRIT_CMD_COPY)
        run_copy(cmd);
    else if (cmd->kind == FRIT_CMD_FILL)
        run_fill(cmd);
    return FRIT_OK;
}

/* Runs a command inside a span of its name.  False: the device is lost. */
static bool run_traced(struct hosted_queue *queue, const frit_cmd *cmd, uint64_t value,
                       uint32_t number)
{
    const struct hosted *hosted = queue->device;
    uint64_t begun = plug_begin(hosted->plug);
    struct fault fault; /* its text alone is half a kilobyte: set where something fails */
    frit_status status;

    fault.err.struct_size = sizeof fault.err;
    fault.err.native_code = 0;
    fault.err.text[0] = '\0';
    status = run_command(queue, cmd, &fault.err);
    if (begun)
        plug_end(hosted->plug, begun, command_name(hosted, cmd));
    if (status >= 0)
        return true;
    fault.command = number;
    fault.cookie = cmd->launch->cookie;
    fault.err.status = status;
    fault.err.text[sizeof fault.err.text - 1] = '\0';
    if (status == FRIT_DEVICE_LOST)
        progress_lose(&queue->progress, &fault);
    else
        progress_fail(&queue->progress, value, &fault);
    return status != FRIT_DEVICE_LOST;
}

bool hosted_run_command(struct hosted_queue *queue, const frit_cmd *cmd, uint64_t value,
                        uint32_t number)
{
    if (cmd->kind == FRIT_CMD_TIMESTAMP)
        run_timestamp(queue->device, cmd);
    else if (cmd->kind != FRIT_CMD_BARRIER)
        return run_traced(queue, cmd, value, number);
    return true;
}
