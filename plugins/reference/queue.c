/* SPDX-License-Identifier: Apache-2.0 */
/* The queue: everything runs inside the call that asks for it, in order.
 *
 * What could be wrong with a command is found before the first one of its submit runs; after that
 * only a kernel of another plugin can fail, which the timeline keeps for wait.  Every value that
 * was ever handed out is reached. */
#include <inttypes.h>
#include <string.h>

#include "reference.h"

/* A point can only lie in the past, or it was never handed out. */
static frit_status check_waits(struct device *device, const frit_point *waits, uint32_t n,
                               frit_err *err)
{
    uint64_t reached = progress_value(&device->progress);

    for (uint32_t i = 0; i < n; i++)
        if (waits[i].queue != 0 || waits[i].value > reached)
            return ref_fail(device->instance, err, FRIT_INVALID,
                            "reference: wait for value %" PRIu64 " of queue %" PRIu64
                            ", but the only queue is 0, at %" PRIu64,
                            waits[i].value, waits[i].queue, reached);
    return FRIT_OK;
}

static frit_status check_range(struct device *device, const void *memory, uint64_t offset,
                               uint64_t bytes, frit_err *err)
{
    const struct buffer *buffer = memory;

    if (buffer_holds(buffer, offset, bytes))
        return FRIT_OK;
    return ref_fail(device->instance, err, FRIT_INVALID,
                    "reference: %" PRIu64 " bytes at %" PRIu64 " of a buffer of %" PRIu64, bytes,
                    offset, buffer->bytes);
}

static frit_status check_transfer(struct device *device, const frit_transfer *transfer,
                                  frit_err *err)
{
    frit_status status = check_waits(device, transfer->waits, transfer->n_waits, err);

    return status ? status
                  : check_range(device, transfer->memory, transfer->offset, transfer->bytes, err);
}

static char *address(void *memory, uint64_t offset)
{
    return ((struct buffer *)memory)->data + offset;
}

frit_status queue_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                        frit_err *err)
{
    struct device *device = self;
    frit_status status = check_transfer(device, to, err);

    if (status)
        return status;
    memcpy(address(to->memory, to->offset), from, to->bytes);
    *value = progress_advance(&device->progress, NULL);
    return FRIT_OK;
}

frit_status queue_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                       frit_err *err)
{
    struct device *device = self;
    frit_status status = check_transfer(device, from, err);

    if (status)
        return status;
    memcpy(into, address(from->memory, from->offset), from->bytes);
    *value = progress_advance(&device->progress, NULL);
    return FRIT_OK;
}

static frit_status check_fill(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    uint32_t n = cmd->pattern_bytes;

    if ((n != 1 && n != 2 && n != 4 && n != 8) || cmd->dst_offset % n || cmd->bytes % n)
        return ref_fail(device->instance, err, FRIT_INVALID,
                        "reference: fill of %" PRIu64 " bytes at %" PRIu64 " with a pattern of %u",
                        cmd->bytes, cmd->dst_offset, n);
    return check_range(device, cmd->dst, cmd->dst_offset, cmd->bytes, err);
}

static frit_status check_copy(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    frit_status status = check_range(device, cmd->dst, cmd->dst_offset, cmd->bytes, err);

    return status ? status : check_range(device, cmd->src, cmd->src_offset, cmd->bytes, err);
}

static frit_status check_command(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    if (cmd->flags & FRIT_MUST_UNDERSTAND)
        return ref_fail(device->instance, err, FRIT_UNSUPPORTED,
                        "reference: command with flags %#" PRIx64, cmd->flags);
    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        return check_copy(device, cmd, err);
    case FRIT_CMD_FILL:
        return check_fill(device, cmd, err);
    case FRIT_CMD_LAUNCH:
        return program_check(device->instance, cmd->launch, err);
    case FRIT_CMD_DISPATCH:
        return kernel_check(device->instance, cmd, err);
    case FRIT_CMD_BARRIER:
        return FRIT_OK;
    default:
        return ref_fail(device->instance, err, FRIT_UNSUPPORTED, "reference: command of kind %u",
                        cmd->kind);
    }
}

static void run_fill(const frit_cmd *cmd)
{
    char *to = address(cmd->dst, cmd->dst_offset);

    for (uint64_t done = 0; done < cmd->bytes; done += cmd->pattern_bytes)
        memcpy(to + done, &cmd->pattern, cmd->pattern_bytes);
}

static void run_copy(const frit_cmd *cmd)
{
    const struct buffer *from = cmd->src;

    memmove(address(cmd->dst, cmd->dst_offset), from->data + cmd->src_offset, cmd->bytes);
}

static const char *command_name(const frit_cmd *cmd)
{
    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        return "copy";
    case FRIT_CMD_FILL:
        return "fill";
    case FRIT_CMD_LAUNCH:
        return program_name(cmd->launch);
    default:
        return "kernel";
    }
}

static frit_status run_command(const frit_cmd *cmd, frit_err *err)
{
    if (cmd->kind == FRIT_CMD_DISPATCH)
        return kernel_run(cmd, err);
    if (cmd->kind == FRIT_CMD_COPY)
        run_copy(cmd);
    else if (cmd->kind == FRIT_CMD_FILL)
        run_fill(cmd);
    else if (cmd->kind == FRIT_CMD_LAUNCH)
        program_run(cmd->launch);
    return FRIT_OK;
}

/* Runs it inside a span of its name, and keeps the first failure. */
static void run_traced(const struct instance *instance, const frit_cmd *cmd, struct fault *fault)
{
    uint64_t begun = instance->trace ? instance->trace->span_begin(instance->host->self) : 0;
    frit_err err = {.struct_size = sizeof err};
    frit_status status = run_command(cmd, &err);

    if (begun) {
        const char *name = command_name(cmd);

        instance->trace->span_end(instance->host->self, begun, (frit_str){name, strlen(name)});
    }
    if (status >= 0 || fault->err.status < 0)
        return;
    err.status = status;
    err.text[sizeof err.text - 1] = '\0';
    *fault = (struct fault){.cookie = cmd->launch->cookie, .err = err};
}

static const frit_cmd *command(const frit_cmd *cmds, uint32_t stride, uint32_t i)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride);
}

frit_status queue_submit(void *self, const frit_cmd *cmds, uint32_t count, uint32_t stride,
                         const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err)
{
    struct device *device = self;
    frit_status status = check_waits(device, waits, n_waits, err);
    struct fault fault = {0};

    for (uint32_t i = 0; i < count && !status; i++)
        status = check_command(device, command(cmds, stride, i), err);
    if (status)
        return status;
    for (uint32_t i = 0; i < count; i++)
        if (command(cmds, stride, i)->kind != FRIT_CMD_BARRIER)
            run_traced(device->instance, command(cmds, stride, i), &fault);
    *value = progress_advance(&device->progress, fault.err.status < 0 ? &fault : NULL);
    return FRIT_OK;
}

frit_status queue_wait(void *self, uint64_t value, uint64_t timeout_ns, frit_failure *failure,
                       frit_err *err)
{
    struct device *device = self;
    const frit_host_core *core = device->instance->core;
    const frit_point point = {0, value};
    frit_err told = {0};

    (void)timeout_ns;
    progress_tell(&device->progress, value, failure, &told);
    if (failure->status < 0)
        (void)core->err_set(device->instance->host->self, err, told.status, told.native_code,
                            (frit_str){told.text, strlen(told.text)});
    return check_waits(device, &point, 1, err);
}
