/* SPDX-License-Identifier: Apache-2.0 */
/* What a submission must keep to: every range lies in its buffer, every launch fits its program,
 * and of the commands between two BARRIERs none touches bytes that another writes.  Since this
 * device computes nothing, a missing BARRIER would not show in any result. */
#include <inttypes.h>

#include "null.h"

enum { MAX_RANGES = 1024 }; /* of the commands between two BARRIERs; more are not compared */

struct range {
    const frit_memory *buffer;
    uint64_t first, end;
    uint32_t command;
    bool written;
};

struct ranges {
    uint32_t n;
    struct range at[MAX_RANGES];
};

static bool collide(const struct range *a, const struct range *b)
{
    return a->buffer == b->buffer && a->command != b->command && (a->written || b->written) &&
           a->first < b->end && b->first < a->end;
}

static frit_status add_range(struct device *device, struct ranges *ranges, struct range range,
                             frit_err *err)
{
    struct instance *instance = device->instance;

    if (range.first == range.end)
        return FRIT_OK;
    if (range.end < range.first ||
        !buffer_holds(range.buffer, range.first, range.end - range.first))
        return null_fail(instance, err, FRIT_INVALID,
                         "null: command %u uses bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64,
                         range.command, range.first, range.end,
                         range.buffer ? range.buffer->bytes : 0);
    for (uint32_t i = 0; i < ranges->n; i++)
        if (collide(&ranges->at[i], &range)) {
            null_count(instance, NULL_COUNT_hazards, 1);
            return null_fail(instance, err, FRIT_INVALID,
                             "null: commands %u and %u touch the same bytes of a buffer, one "
                             "writes them, and there is no BARRIER between them",
                             ranges->at[i].command, range.command);
        }
    if (ranges->n < MAX_RANGES)
        ranges->at[ranges->n++] = range;
    return FRIT_OK;
}

static frit_status add_launch(struct device *device, struct ranges *ranges,
                              const frit_launch *launch, uint32_t command, frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < launch->n_args && !status; i++) {
        const void *at = (const char *)launch->args + (size_t)i * launch->arg_stride;
        const frit_arg *arg = at;
        struct range range = {arg->memory, arg->offset, arg->offset + arg->extent, command,
                              (arg->flags & FRIT_ARG_WRITE) != 0};

        if (arg->memory)
            status = add_range(device, ranges, range, err);
    }
    for (uint32_t i = 0; i < launch->n_derived && !status; i++) {
        const frit_derived *derived = &launch->derived[i];
        const void *spec =
            (const char *)launch->spec->derived + (size_t)i * launch->spec->derived_stride;
        uint64_t end = derived->offset + ((const frit_derived_spec *)spec)->bytes;
        struct range range = {derived->memory, derived->offset, end, command, derived->fill != 0};

        status = add_range(device, ranges, range, err);
    }
    if (launch->workspace && !status) {
        uint64_t first = launch->workspace_offset;
        struct range range = {launch->workspace, first, first + launch->spec->workspace_bytes,
                              command, true};

        status = add_range(device, ranges, range, err);
    }
    return status ? status : derived_check(device, launch, err);
}

static frit_status add_command(struct device *device, struct ranges *ranges, const frit_cmd *cmd,
                               uint32_t command, frit_err *err)
{
    struct range to = {cmd->dst, cmd->dst_offset, cmd->dst_offset + cmd->bytes, command, true};
    struct range from = {cmd->src, cmd->src_offset, cmd->src_offset + cmd->bytes, command, false};
    frit_status status = FRIT_OK;

    if (cmd->kind == FRIT_CMD_TIMESTAMP)
        to.end = to.first + sizeof(uint64_t);
    if (cmd->kind == FRIT_CMD_COPY)
        status = add_range(device, ranges, from, err);
    if (!status && cmd->kind == FRIT_CMD_TIMESTAMP)
        status = add_range(device, ranges, to, err);
    if (!status && (cmd->kind == FRIT_CMD_COPY || cmd->kind == FRIT_CMD_FILL)) {
        status = add_range(device, ranges, to, err);
        derived_written(device, cmd->dst, cmd->dst_offset, cmd->bytes);
    }
    if (cmd->kind == FRIT_CMD_LAUNCH)
        status = program_check(device->instance, cmd->launch, err);
    if (!status && (cmd->kind == FRIT_CMD_LAUNCH || cmd->kind == FRIT_CMD_DISPATCH))
        status = add_launch(device, ranges, cmd->launch, command, err);
    return status;
}

static frit_status check_form(struct device *device, const frit_cmd *cmd, frit_err *err)
{
    uint32_t n = cmd->pattern_bytes;

    if (cmd->kind < FRIT_CMD_COPY || cmd->kind > FRIT_CMD_TIMESTAMP ||
        (cmd->kind == FRIT_CMD_TIMESTAMP && device->instance->options.clock == CLOCK_NONE))
        return null_fail(device->instance, err, FRIT_UNSUPPORTED, "null: command of kind %u",
                         cmd->kind);
    if (cmd->kind == FRIT_CMD_FILL &&
        ((n != 1 && n != 2 && n != 4 && n != 8) || cmd->dst_offset % n || cmd->bytes % n))
        return null_fail(device->instance, err, FRIT_INVALID,
                         "null: fill of %" PRIu64 " bytes with a pattern of %u", cmd->bytes, n);
    if (cmd->kind == FRIT_CMD_DISPATCH && !cmd->kernel)
        return null_fail(device->instance, err, FRIT_INVALID, "null: dispatch without a kernel");
    return FRIT_OK;
}

frit_status check_commands(struct device *device, const frit_cmd *cmds, uint32_t count,
                           uint32_t stride, frit_err *err)
{
    struct ranges ranges;
    frit_status status = FRIT_OK;

    ranges.n = 0;
    for (uint32_t i = 0; i < count && !status; i++) {
        const frit_cmd *cmd = cmd_at(cmds, stride, i);

        status = check_form(device, cmd, err);
        if (cmd->kind == FRIT_CMD_BARRIER)
            ranges.n = 0;
        else if (!status)
            status = add_command(device, &ranges, cmd, i, err);
    }
    return status;
}
