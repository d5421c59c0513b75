/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Messages to the server.  What cannot be sent is no failure of its slot: the receiver finds the
 * connection at its end, and no value is reached any more. */
#include "queue.h"

#include <string.h>
#include <sys/socket.h>

#include "launch.h"
#include "remote.h"

/* ---- messages; all inside of `sending` ---- */

/* A message that was begun has to be sent whole, or nothing after it is understood. */
static void check_sent(const struct remote *remote, int error)
{
    if (error)
        shutdown(remote->fd, SHUT_RDWR);
}

void remote_send(struct remote *remote, uint32_t kind, const struct wire_range *range)
{
    const struct wire_head head = {.kind = kind};

    check_sent(remote, wire_send(remote->fd, head, range, sizeof *range, NULL, 0));
}

void *remote_add(struct remote *remote, uint64_t bytes)
{
    struct packet *packet = &remote->packet;

    if (bytes > packet->capacity - packet->used) {
        uint64_t capacity = 2 * (packet->used + bytes) + 4096;
        char *grown = plug_alloc(remote->plug, capacity, _Alignof(max_align_t));

        if (!grown)
            return NULL;
        if (packet->used)
            memcpy(grown, packet->bytes, packet->used);
        plug_free(remote->plug, packet->bytes);
        packet->bytes = grown;
        packet->capacity = capacity;
    }
    packet->used += bytes;
    return packet->bytes + packet->used - bytes;
}

/* Sends a message that takes the next value. */
static frit_status send_valued(struct remote *remote, uint32_t kind, const void *first,
                               uint64_t n_first, const void *second, uint64_t n_second,
                               uint64_t *value, frit_err *err)
{
    struct wire_head head = {.kind = kind};
    frit_status status = progress_issue(&remote->progress, value, err);

    if (status)
        return status;
    head.value = *value;
    check_sent(remote, wire_send(remote->fd, head, first, n_first, second, n_second));
    return FRIT_OK;
}

/* ---- commands ---- */

static struct wire_range range_of(const frit_memory *memory, uint64_t offset, uint64_t bytes)
{
    return (struct wire_range){memory->number, offset, bytes};
}

static frit_status add_command(struct remote *remote, const frit_cmd *cmd, frit_err *err)
{
    struct wire_command *command = remote_add(remote, sizeof *command);

    if (!command)
        return plug_fail(remote->plug, err, FRIT_NO_HOST_MEMORY, "no memory for a message");
    memset(command, 0, sizeof *command);
    switch (cmd->kind) {
    case FRIT_CMD_COPY:
        command->kind = WIRE_COPY;
        command->to = range_of(cmd->dst, cmd->dst_offset, cmd->bytes);
        command->from = range_of(cmd->src, cmd->src_offset, cmd->bytes);
        return FRIT_OK;
    case FRIT_CMD_FILL:
        command->kind = WIRE_FILL;
        command->to = range_of(cmd->dst, cmd->dst_offset, cmd->bytes);
        command->pattern = cmd->pattern;
        command->pattern_bytes = cmd->pattern_bytes;
        return FRIT_OK;
    case FRIT_CMD_LAUNCH:
        command->kind = WIRE_LAUNCH;
        command->cookie = cmd->launch->cookie;
        return remote_add_launch(remote, cmd->launch, err);
    case FRIT_CMD_BARRIER:
        command->kind = WIRE_NOTHING; /* the server runs all in order; it keeps its number */
        return FRIT_OK;
    default:
        return plug_fail(remote->plug, err, FRIT_UNSUPPORTED, "command of kind %u", cmd->kind);
    }
}

/* ---- slots ---- */

static frit_status check_call(struct remote *remote, const frit_queue *queue,
                              const frit_point *waits, uint32_t n, frit_err *err)
{
    frit_status status = progress_check_queue(&remote->progress, queue, err);

    return status ? status : progress_check(&remote->progress, waits, n, err);
}

frit_status remote_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                         frit_err *err)
{
    struct remote *remote = remote_of(self);
    const struct wire_range range = range_of(to->memory, to->offset, to->bytes);
    frit_status status = check_call(remote, to->queue, to->waits, to->n_waits, err);

    if (status)
        return status;
    pthread_mutex_lock(&remote->sending);
    status = send_valued(remote, WIRE_WRITE, &range, sizeof range, from, to->bytes, value, err);
    pthread_mutex_unlock(&remote->sending);
    return status;
}

/* Before it is sent, so that its bytes find their place. */
static void expect(struct remote *remote, struct pending_read *read)
{
    pthread_mutex_lock(&remote->reading);
    if (remote->last)
        remote->last->next = read;
    else
        remote->first = read;
    remote->last = read;
    pthread_mutex_unlock(&remote->reading);
}

frit_status remote_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                        frit_err *err)
{
    struct remote *remote = remote_of(self);
    const struct wire_range range = range_of(from->memory, from->offset, from->bytes);
    frit_status status = check_call(remote, from->queue, from->waits, from->n_waits, err);
    struct wire_head head = {.kind = WIRE_READ};
    struct pending_read *read;

    if (status)
        return status;
    read = plug_new(remote->plug, sizeof *read, "a read", err);
    if (!read)
        return FRIT_NO_HOST_MEMORY;
    pthread_mutex_lock(&remote->sending);
    status = progress_issue(&remote->progress, value, err);
    if (!status) {
        *read = (struct pending_read){.value = *value, .bytes = from->bytes, .into = into};
        expect(remote, read);
        head.value = *value;
        check_sent(remote, wire_send(remote->fd, head, &range, sizeof range, NULL, 0));
    }
    pthread_mutex_unlock(&remote->sending);
    if (status)
        plug_free(remote->plug, read);
    return status;
}

/* Commands take along all that they need: nothing of them is read after submit. */
frit_status remote_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err)
{
    struct remote *remote = remote_of(self);
    frit_status status = check_call(remote, queue, waits, n_waits, err);

    if (status)
        return status;
    pthread_mutex_lock(&remote->sending);
    remote->packet.used = 0;
    for (uint32_t i = 0; i < count && !status; i++)
        status = add_command(
            remote, (const frit_cmd *)(const void *)((const char *)cmds + (size_t)i * stride), err);
    if (!status && remote->packet.used > WIRE_MAX_COMMANDS)
        status = plug_fail(remote->plug, err, FRIT_UNSUPPORTED, "a submit of %u commands", count);
    if (!status)
        status = send_valued(remote, WIRE_SUBMIT, remote->packet.bytes, remote->packet.used, NULL,
                             0, value, err);
    pthread_mutex_unlock(&remote->sending);
    return status;
}

frit_status remote_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                        frit_failure *failure, frit_err *err)
{
    struct remote *remote = remote_of(self);
    frit_status status = progress_check_queue(&remote->progress, queue, err);

    return status ? status : progress_wait(&remote->progress, value, timeout_ns, failure, err);
}
