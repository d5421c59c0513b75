/* SPDX-License-Identifier: Apache-2.0 */
#include "job/address.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"

enum { HOST_TEXT = 256, PORT_TEXT = 8, BACKLOG = 4096, RETRY_MS = 50 };

static const char scheme[] = "tcp://";

struct address_parts {
    char host[HOST_TEXT], port[PORT_TEXT];
};

static bool is_port(const char *text)
{
    const size_t n = strlen(text);

    return n > 0 && n < 6 && strspn(text, "0123456789") == n && atoi(text) > 0 &&
           atoi(text) < 65536;
}

/* An address of IPv6 stands in brackets, as in URLs. */
static bool split(const char *store, struct address_parts *out)
{
    const char *host = store + sizeof(scheme) - 1, *colon = strrchr(store, ':');
    size_t n;

    if (strncmp(store, scheme, sizeof(scheme) - 1) != 0 || colon < host || !is_port(colon + 1))
        return false;
    n = (size_t)(colon - host);
    if (n > 1 && host[0] == '[' && host[n - 1] == ']') {
        host++;
        n -= 2;
    }
    if (n < 1 || n >= HOST_TEXT)
        return false;
    memcpy(out->host, host, n);
    out->host[n] = '\0';
    snprintf(out->port, sizeof(out->port), "%s", colon + 1);
    return true;
}

static frit_status parse(const char *store, struct address_parts *out, frit_err *err)
{
    return split(store, out) ? FRIT_OK
                             : fail(err, FRIT_INVALID,
                                    "[dist] store '%s' must be tcp://HOST:PORT, with a port from "
                                    "1 to 65535",
                                    store);
}

frit_status address_check(const char *store, frit_err *err)
{
    struct address_parts parts;

    return parse(store, &parts, err);
}

/* ---- listening ---- */

static bool is_number(const char *host)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
    struct addrinfo *found;

    if (getaddrinfo(host, NULL, &hints, &found))
        return false;
    freeaddrinfo(found);
    return true;
}

/* -1 with errno. */
static int listen_at(const struct addrinfo *at)
{
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1, no = 0;
    int error;

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (at->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    if (!bind(fd, at->ai_addr, at->ai_addrlen) && !listen(fd, BACKLOG))
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int listen_any(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_family = AF_UNSPEC};
    struct addrinfo *found;
    int fd = -1;

    if (getaddrinfo(host, port, &hints, &found)) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    /* Of "all networks" the one of IPv6, which is that of IPv4, too, where there is one. */
    for (int family = AF_INET6; fd < 0 && family; family = family == AF_INET6 ? AF_INET : 0) {
        for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
            if (at->ai_family == family)
                fd = listen_at(at);
        }
        if (fd < 0 && errno == EADDRINUSE)
            break;
    }
    freeaddrinfo(found);
    return fd;
}

frit_status address_listen(const char *store, int *out, frit_err *err)
{
    struct address_parts parts;
    bool is_here;

    TRY(parse(store, &parts, err));
    is_here = is_number(parts.host) || strcmp(parts.host, "localhost") == 0;
    *out = listen_any(is_here ? parts.host : NULL, parts.port);
    if (*out < 0 && errno == EADDRNOTAVAIL) /* it is translated on the way */
        *out = listen_any(NULL, parts.port);
    if (*out < 0)
        return fail(err, FRIT_IO, "[dist] store %s: rank 0 cannot listen there: %s%s", store,
                    strerror(errno),
                    errno == EADDRINUSE ? "; another job or program has this port" : "");
    return FRIT_OK;
}

/* ---- connecting ---- */

static int ms_until(uint64_t deadline)
{
    const uint64_t now = clock_ns();

    return now >= deadline ? 0 : (int)((deadline - now) / 1000000 + 1);
}

/* 0 or an error number. */
static int finish_connect(int fd, uint64_t deadline)
{
    struct pollfd polled = {.fd = fd, .events = POLLOUT};
    int error = 0, n;
    socklen_t size = sizeof(error);

    do
        n = poll(&polled, 1, ms_until(deadline));
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return ETIMEDOUT;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? errno : error;
}

/* Where nobody listens a connection inside of this machine may get the wanted port for its own end,
 * and is then connected to itself. */
static bool is_itself(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t n = sizeof(here), m = sizeof(there);

    return !getsockname(fd, (struct sockaddr *)&here, &n) &&
           !getpeername(fd, (struct sockaddr *)&there, &m) && n == m &&
           memcmp(&here, &there, n) == 0;
}

static int connect_at(const struct addrinfo *at, uint64_t deadline, int *out)
{
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error;

    if (fd < 0)
        return errno;
    error = connect(fd, at->ai_addr, at->ai_addrlen) ? errno : 0;
    if (error == EINPROGRESS)
        error = finish_connect(fd, deadline);
    if (!error && is_itself(fd))
        error = ECONNREFUSED;
    if (error)
        close(fd);
    else
        *out = fd;
    return error;
}

/* NULL, or why not. */
static const char *connect_once(const struct address_parts *parts, uint64_t deadline, int *out)
{
    const struct addrinfo hints = {
        .ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM, .ai_family = AF_UNSPEC};
    struct addrinfo *found;
    int error = getaddrinfo(parts->host, parts->port, &hints, &found);

    if (error)
        return gai_strerror(error);
    error = EADDRNOTAVAIL;
    for (const struct addrinfo *at = found; at && error; at = at->ai_next)
        error = connect_at(at, deadline, out);
    freeaddrinfo(found);
    return error ? strerror(error) : NULL;
}

frit_status address_connect(const char *store, uint64_t deadline, int *out, frit_err *err)
{
    const uint64_t begin = clock_ns();
    struct address_parts parts;
    const char *why;

    TRY(parse(store, &parts, err));
    while ((why = connect_once(&parts, deadline, out)) && clock_ns() < deadline)
        poll(NULL, 0, RETRY_MS);
    if (why)
        return fail(err, FRIT_TIMEOUT,
                    "rank 0 is missing: its store %s could not be reached for %.1f s: %s", store,
                    (double)(clock_ns() - begin) * 1e-9, why);
    return FRIT_OK;
}

void address_of_peer(int fd, char out[ADDRESS_TEXT])
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);

    if (getpeername(fd, (struct sockaddr *)&address, &size) ||
        getnameinfo((struct sockaddr *)&address, size, out, ADDRESS_TEXT, NULL, 0, NI_NUMERICHOST))
        snprintf(out, ADDRESS_TEXT, "?");
}
