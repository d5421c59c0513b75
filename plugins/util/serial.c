/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "util/serial.h"

#include <inttypes.h>
#include <string.h>

#include "util/kernel.h"
#include "util/memory.h"
#include "util/queue.h"

/* Takes what stands in the list of the first queue's others for something else; false: it stands
 * nowhere. */
static bool exchange(struct serial *first, struct serial *from, struct serial *to)
{
    bool done = false;

    for (uint32_t i = 0; i < SERIAL_MORE && !done; i++) {
        struct serial *there = from;

        done = atomic_compare_exchange_strong(&first->more[i], &there, to);
    }
    return done;
}

bool serial_init(struct serial *serial, const struct plug *plug, const struct serial_driver *driver,
                 void *ctx, struct serial *first)
{
    serial->plug = plug;
    serial->driver = driver;
    serial->ctx = ctx;
    serial->first = first ? first : serial;
    progress_init(&serial->progress, plug);
    if (!first || exchange(first, NULL, serial))
        return true;
    progress_fini(&serial->progress);
    return false;
}

void serial_fini(struct serial *serial)
{
    if (serial->first != serial)
        (void)exchange(serial->first, serial, NULL);
    progress_fini(&serial->progress);
}

const frit_arg *serial_arg(const frit_launch *launch, uint32_t i)
{
    return (const frit_arg *)(const void *)((const char *)launch->args +
                                            (size_t)i * launch->arg_stride);
}

char *serial_element(const frit_arg *arg)
{
    return arg->memory ? arg->memory->data + arg->offset + arg->origin : NULL;
}

/* ---- queues ---- */

frit_status serial_find(struct serial *first, frit_queue *queue, struct serial **out, frit_err *err)
{
    *out = queue ? &queue->serial : first;
    for (uint32_t i = 0; i < SERIAL_MORE && *out != first; i++) {
        if (atomic_load_explicit(&first->more[i], memory_order_acquire) == *out)
            return FRIT_OK;
    }
    return queue ? plug_fail(first->plug, err, FRIT_INVALID, "a queue that was never made")
                 : FRIT_OK;
}

static frit_status check_waits(struct serial *serial, const frit_point *waits, uint32_t n,
                               frit_err *err)
{
    frit_status status = FRIT_OK;

    for (uint32_t i = 0; i < n && !status; i++) {
        struct serial *other;

        status = serial_find(serial->first, waits[i].queue, &other, err);
        if (!status)
            status = progress_check_value(&other->progress, waits[i].value, err);
    }
    return status;
}

/* For points that were checked.  Each of them was handed out by a call that is reaching it, or did.
 */
static void await_points(struct serial *serial, const frit_point *waits, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct serial *other = waits[i].queue ? &waits[i].queue->serial : serial->first;

        (void)progress_await(&other->progress, waits[i].value);
    }
}

/* ---- checks ---- */

static bool holds(const frit_memory *memory, uint64_t offset, uint64_t bytes)
{
    return offset <= memory->bytes && bytes <= memory->bytes - offset;
}

static frit_status check_range(struct serial *serial, const frit_memory *memory, uint64_t offset,
                               uint64_t bytes, frit_err *err)
{
    if (holds(memory, offset, bytes))
        return FRIT_OK;
    return plug_fail(serial->plug, err, FRIT_INVALID,
                     "%" PRIu64 " bytes at %" PRIu64 " of a buffer of %" PRIu64, bytes, offset,
                     memory->bytes);
}

static frit_status check_transfer(struct serial *serial, const frit_transfer *transfer,
                                  frit_err *err)
{
    frit_status status = check_waits(serial, transfer->waits, transfer->n_waits, err);

    return status ? status
                  : check_range(serial, transfer->memory, transfer->offset, transfer->bytes, err);
}

/* ---- commands ---- */

static char *address(const frit_memory *memory, uint64_t offset)
{
    return memory->data + offset;
}

frit_status serial_write(struct serial *serial, const frit_transfer *to, const void *from,
                         uint64_t *value, frit_err *err)
{
    frit_status status = check_transfer(serial, to, err);

    if (status)
        return status;
    await_points(serial, to->waits, to->n_waits);
    memcpy(address(to->memory, to->offset), from, to->bytes);
    *value = progress_advance(&serial->progress, NULL);
    return FRIT_OK;
}

frit_status serial_read(struct serial *serial, const frit_transfer *from, void *into,
                        uint64_t *value, frit_err *err)
{
    frit_status status = check_transfer(serial, from, err);

    if (status)
        return status;
    await_points(serial, from->waits, from->n_waits);
    memcpy(into, address(from->memory, from->offset), from->bytes);
    *value = progress_advance(&serial->progress, NULL);
    return FRIT_OK;
}

static frit_status check_fill(struct serial *serial, const frit_cmd *cmd, frit_err *err)
{
    uint32_t n = cmd->pattern_bytes;

    if ((n != 1 && n != 2 && n != 4 && n != 8) || cmd->dst_offset % n || cmd->bytes % n)
        return plug_fail(serial->plug, err, FRIT_INVALID,
                         "fill of %" PRIu64 " bytes at %" PRIu64 " with a pattern of %u",
                         cmd->bytes, cmd->dst_offset, n);
    return check_range(serial, cmd->dst, cmd->dst_offset, cmd->bytes, err);
}

static frit_status check_copy(struct serial *serial, const frit_cmd *cmd, frit_err *err)
{
    frit_status status = check_range(serial, cmd->dst, cmd->dst_offset, cmd->bytes, err);

    return status ? status : check_range(serial, cmd->src, cmd->src_offset, cmd->bytes, err);
}

static frit_status check_timestamp(struct serial *serial, const frit_cmd *cmd, frit_err *err)
{
    if (cmd->dst_offset % sizeof(uint64_t))
        return plug_fail(serial->plug, err, FRIT_INVALID, "timestamp at %" PRIu64, cmd->dst_offset);
    return check_range(serial, cmd->dst, cmd->dst_offset, sizeof(uint64_t), err);
}

static frit_status check_launch(struct serial *serial, const frit_launch *launch, frit_err *err)
{
    uint64_t workspace = launch->spec->workspace_bytes;

    for (uint32_t i = 0; i < launch->n_args; i++) {
        const frit_arg *arg = serial_arg(launch, i);

        if (arg->memory && !holds(arg->memory, arg->offset, arg->extent))
            return plug_fail(serial->plug, err, FRIT_INVALID,
                             "argument %u of a launch leaves its buffer", i);
    }
    if (workspace &&
        (!launch->workspace || !holds(launch->workspace, launch->workspace_offset, workspace)))
        return plug_fail(serial->plug, err, FRIT_INVALID, "a launch lacks its workspace");
    return FRIT_OK;
}

static frit_status check_command(struct serial *serial, const frit_cmd *cmd, frit_err *err)
{
    frit_status status;

    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        return check_copy(serial, cmd, err);
    case FRIT_CMD_FILL:
        return check_fill(serial, cmd, err);
    case FRIT_CMD_LAUNCH:
        status = check_launch(serial, cmd->launch, err);
        return status ? status : serial->driver->check(serial->ctx, cmd->launch, err);
    case FRIT_CMD_DISPATCH:
        status = kernel_check(serial->plug, cmd, err);
        return status ? status : check_launch(serial, cmd->launch, err);
    case FRIT_CMD_BARRIER:
        return FRIT_OK;
    case FRIT_CMD_TIMESTAMP:
        return check_timestamp(serial, cmd, err);
    default:
        return plug_fail(serial->plug, err, FRIT_UNSUPPORTED, "command of kind %u", cmd->kind);
    }
}

static void run_fill(const frit_cmd *cmd)
{
    char *to = address(cmd->dst, cmd->dst_offset);
    uint64_t word, done = 0;

    for (uint32_t i = 0; i < sizeof word; i += cmd->pattern_bytes)
        memcpy((char *)&word + i, &cmd->pattern, cmd->pattern_bytes);
    for (; cmd->bytes - done >= sizeof word; done += sizeof word)
        memcpy(to + done, &word, sizeof word);
    memcpy(to + done, &word, cmd->bytes - done);
}

static void run_copy(const frit_cmd *cmd)
{
    memmove(address(cmd->dst, cmd->dst_offset), address(cmd->src, cmd->src_offset), cmd->bytes);
}

static uint64_t now_ns(const struct serial *serial)
{
    return serial->plug->core->now_ns(serial->plug->host->self);
}

static void run_timestamp(const struct serial *serial, const frit_cmd *cmd)
{
    const uint64_t ticks = now_ns(serial);

    memcpy(address(cmd->dst, cmd->dst_offset), &ticks, sizeof ticks);
}

void serial_clock(const struct serial *serial, frit_clock *out)
{
    out->valid_bits = 64;
    out->ticks = out->host_ns = now_ns(serial);
    out->ns_per_tick = 1;
}

static frit_str command_name(const struct serial *serial, const frit_cmd *cmd)
{
    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        return FRIT_STR("copy");
    case FRIT_CMD_FILL:
        return FRIT_STR("fill");
    case FRIT_CMD_LAUNCH:
        return serial->driver->name(cmd->launch);
    default:
        return FRIT_STR("kernel");
    }
}

static frit_status run_command(struct serial *serial, const frit_cmd *cmd, frit_err *err)
{
    if (cmd->kind == FRIT_CMD_DISPATCH)
        return kernel_run(cmd, err);
    if (cmd->kind == FRIT_CMD_LAUNCH)
        return serial->driver->run(serial->ctx, cmd->launch, err);
    if (cmd->kind == FRIT_CMD_COPY)
        run_copy(cmd);
    else if (cmd->kind == FRIT_CMD_FILL)
        run_fill(cmd);
    return FRIT_OK;
}

/* Runs it inside a span of its name; `number` is that of the command in the submit of `value`. */
static void run_traced(struct serial *serial, const frit_cmd *cmd, uint64_t value, uint32_t number)
{
    uint64_t begun = plug_begin(serial->plug);
    struct fault fault = {.command = number, .err = {.struct_size = sizeof fault.err}};
    frit_status status = run_command(serial, cmd, &fault.err);

    if (begun)
        plug_end(serial->plug, begun, command_name(serial, cmd));
    if (status >= 0)
        return;
    fault.cookie = cmd->launch->cookie;
    fault.err.status = status;
    fault.err.text[sizeof fault.err.text - 1] = '\0';
    progress_fail(&serial->progress, value, &fault);
}

static const frit_cmd *command(const frit_cmd *cmds, uint32_t stride, uint32_t i)
{
    return (const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride);
}

frit_status serial_submit(struct serial *serial, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err)
{
    frit_status status = check_waits(serial, waits, n_waits, err);

    for (uint32_t i = 0; i < count && !status; i++)
        status = check_command(serial, command(cmds, stride, i), err);
    if (!status)
        status = progress_issue(&serial->progress, value, err);
    if (status)
        return status;
    await_points(serial, waits, n_waits);
    for (uint32_t i = 0; i < count; i++) {
        const frit_cmd *cmd = command(cmds, stride, i);

        if (cmd->kind == FRIT_CMD_TIMESTAMP)
            run_timestamp(serial, cmd);
        else if (cmd->kind != FRIT_CMD_BARRIER)
            run_traced(serial, cmd, *value, i + 1);
    }
    progress_reach(&serial->progress, *value, NULL);
    return FRIT_OK;
}
