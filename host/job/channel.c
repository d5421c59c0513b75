/* SPDX-License-Identifier: Apache-2.0 */
#include "job/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

static void set_number(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof(value)); /* fails for a socket of no network */
}

/* Probes of an idle connection are what finds a dead host while there is nothing to send. */
void channel_init(struct channel *channel, int fd, uint64_t dead_ns)
{
    *channel = (struct channel){.fd = fd};
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_number(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)(dead_ns / 1000000));
    set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
    set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

void channel_fini(struct channel *channel)
{
    if (channel->fd >= 0)
        close(channel->fd);
    str_fini(&channel->in);
    str_fini(&channel->out);
    *channel = (struct channel){.fd = -1};
}

int channel_read(struct channel *channel, size_t most)
{
    char bytes[16384];

    while (channel->in.length < most) {
        const size_t room = most - channel->in.length;
        const ssize_t n =
            recv(channel->fd, bytes, room < sizeof(bytes) ? room : sizeof(bytes), MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : errno;
        if (n == 0)
            return CHANNEL_CLOSED;
        str_add(&channel->in, bytes, (size_t)n);
        if (channel->in.failed)
            return ENOMEM;
    }
    return 0;
}

void channel_drop(struct channel *channel, size_t n)
{
    struct str *in = &channel->in;

    in->length -= n;
    if (in->length)
        memmove(in->text, in->text + n, in->length);
}

int channel_each(struct channel *channel,
                 void (*take)(void *ctx, uint32_t kind, struct wire_reader *in), void *ctx)
{
    const struct str *in = &channel->in;
    struct wire_reader reader = {0};
    uint32_t kind = 0;
    size_t at = 0;
    int64_t n = 0;

    while (in->length && !reader.failed &&
           (n = wire_next(in->text + at, in->length - at, &kind, &reader)) > 0) {
        take(ctx, kind, &reader);
        at += (size_t)n;
    }
    if (at)
        channel_drop(channel, at);
    return n < 0 || reader.failed ? EPROTO : 0;
}

bool channel_wants_to_send(const struct channel *channel)
{
    return channel->out.length > channel->sent;
}

int channel_send(struct channel *channel)
{
    if (channel->out.failed || channel->out.length - channel->sent > CHANNEL_QUEUE)
        return ENOBUFS;
    while (channel_wants_to_send(channel)) {
        const ssize_t n = send(channel->fd, channel->out.text + channel->sent,
                               channel->out.length - channel->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : errno;
        channel->sent += (size_t)n;
    }
    channel->out.length = channel->sent = 0;
    return 0;
}

void channel_end(struct channel *channel, uint64_t limit_ns)
{
    const uint64_t end = clock_ns() + limit_ns;

    while (channel_wants_to_send(channel) && !channel_send(channel) &&
           channel_wants_to_send(channel) && clock_ns() < end)
        poll(&(struct pollfd){.fd = channel->fd, .events = POLLOUT}, 1, 10);
    (void)shutdown(channel->fd, SHUT_WR);
}

void channel_reason(int error, uint64_t dead_ns, char out[CHANNEL_REASON])
{
    switch (error) {
    case CHANNEL_CLOSED:
    case EPIPE:
        snprintf(out, CHANNEL_REASON, "died: connection closed");
        break;
    case ECONNRESET:
        snprintf(out, CHANNEL_REASON, "died: connection reset");
        break;
    case ETIMEDOUT:
        snprintf(out, CHANNEL_REASON, "is cut off: its host has acknowledged nothing for %.1f s",
                 (double)dead_ns * 1e-9);
        break;
    case ENOBUFS:
        snprintf(out, CHANNEL_REASON, "is dropped: it does not read what is sent");
        break;
    case EPROTO:
        snprintf(out, CHANNEL_REASON, "is dropped: what it sends is not of this protocol");
        break;
    default:
        snprintf(out, CHANNEL_REASON, "is cut off: %s", strerror(error));
    }
}
