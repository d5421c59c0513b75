/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static int send_all(int fd, const void *from, uint64_t bytes)
{
    const char *at = from;

    while (bytes) {
        ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return errno;
        at += sent > 0 ? sent : 0;
        bytes -= sent > 0 ? (uint64_t)sent : 0;
    }
    return 0;
}

int wire_send(int fd, struct wire_head head, const void *first, uint64_t n_first,
              const void *second, uint64_t n_second)
{
    int error;

    head.bytes = n_first + n_second;
    error = send_all(fd, &head, sizeof head);
    if (!error)
        error = send_all(fd, first, n_first);
    return error ? error : send_all(fd, second, n_second);
}

int wire_receive(int fd, void *into, uint64_t bytes)
{
    char *at = into;

    while (bytes) {
        ssize_t got = recv(fd, at, bytes, 0);

        if (got == 0)
            return WIRE_CLOSED;
        if (got < 0 && errno != EINTR)
            return errno;
        at += got > 0 ? got : 0;
        bytes -= got > 0 ? (uint64_t)got : 0;
    }
    return 0;
}

int wire_skip(int fd, uint64_t bytes)
{
    char unwanted[4096];
    int error = 0;

    while (bytes && !error) {
        uint64_t n = bytes < sizeof unwanted ? bytes : sizeof unwanted;

        error = wire_receive(fd, unwanted, n);
        bytes -= n;
    }
    return error;
}

const char *wire_error(int error, char text[64])
{
    if (error == WIRE_CLOSED)
        return "the connection was closed";
    return strerror_r(error, text, 64);
}
