/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Connecting to a server, and the first words. */
#include "connect.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "remote.h"

static frit_status fail(const struct plug *plug, frit_str address, int error, frit_err *err)
{
    char text[64];

    if (error == EAGAIN)
        return plug_fail(plug, err, FRIT_IO, "the server at %.*s does not answer; start it anew",
                         (int)address.len, address.ptr);
    return plug_fail(plug, err, FRIT_IO, "no server at %.*s: %s; start remote-server there",
                     (int)address.len, address.ptr, wire_error(error, text));
}

/* Seconds for an answer, 0: any time. */
static void set_patience(int fd, int seconds)
{
    const struct timeval limit = {.tv_sec = seconds};

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* 0, WIRE_CLOSED or the system's error; the hello may be of another version. */
static int exchange_hellos(int fd, struct wire_hello *hello)
{
    struct wire_head head = {.kind = WIRE_HELLO};
    int error;

    *hello = (struct wire_hello){.magic = WIRE_MAGIC, .version = WIRE_VERSION};
    set_patience(fd, 1);
    error = wire_send(fd, head, hello, sizeof *hello, NULL, 0);
    if (!error)
        error = wire_receive(fd, &head, sizeof head);
    if (!error && (head.kind != WIRE_HELLO || head.bytes != sizeof *hello))
        return EPROTO;
    if (!error)
        error = wire_receive(fd, hello, sizeof *hello);
    set_patience(fd, 0);
    return error;
}

static int connect_at(int fd, frit_str address)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    if (address.len >= sizeof at.sun_path)
        return ENAMETOOLONG;
    memcpy(at.sun_path, address.ptr, address.len);
    return connect(fd, (const struct sockaddr *)(const void *)&at, sizeof at) ? errno : 0;
}

frit_status remote_connect(const struct plug *plug, frit_str address, int *out,
                           struct wire_hello *hello, frit_err *err)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 ? errno : connect_at(fd, address);
    frit_status status = FRIT_OK;

    if (!error)
        error = exchange_hellos(fd, hello);
    if (error)
        status = fail(plug, address, error, err);
    else if (hello->magic != WIRE_MAGIC || hello->version != WIRE_VERSION)
        status = plug_fail(plug, err, FRIT_INCOMPATIBLE,
                           "the server at %.*s speaks version %u of the protocol, not %d",
                           (int)address.len, address.ptr, hello->version, WIRE_VERSION);
    if (!status)
        *out = fd;
    else if (fd >= 0)
        close(fd);
    return status;
}
