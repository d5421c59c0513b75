/* SPDX-License-Identifier: Apache-2.0 */
#include "job/server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/thread.h"

enum { STRANGERS_MAX = 64, FRAME_BYTES = WIRE_MAX + 4 };
static const uint64_t greeting_ns = 5000000000u, /* for a connection to say who it is */
    end_ns = 1000000000u,                        /* for what is sent last */
    pause_ns = 100000000u;                       /* after an accept that failed */

struct job_server {
    struct server_config config;
    struct roster roster;
    struct roster_link *links;
    size_t n_links;
    struct pollfd *polled;
    size_t n_polled; /* capacity */
    pthread_t thread;
    int listening, wake;
    uint64_t accept_after;
    atomic_bool stops;
    bool has_logged_stranger, has_logged_token, has_logged_accept;
};

/* ---- connections ---- */

static struct roster_link *add_link(struct job_server *server, int fd)
{
    struct roster_link *link = calloc(1, sizeof(*link));

    if (!link) {
        close(fd);
        return NULL;
    }
    channel_init(&link->channel, fd, server->config.roster.dead_ns);
    link->since = clock_ns();
    link->next = server->links;
    server->links = link;
    server->n_links++;
    return link;
}

static void end_link(struct job_server *server, struct roster_link **at)
{
    struct roster_link *link = *at;

    *at = link->next;
    server->n_links--;
    channel_fini(&link->channel);
    free(link);
}

static void accept_all(struct job_server *server)
{
    struct roster_link *link;
    int fd;

    while ((fd = accept4(server->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        link = add_link(server, fd);
        if (link)
            address_of_peer(fd, link->address);
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
        return;
    server->accept_after = clock_ns() + pause_ns;
    if (!server->has_logged_accept)
        log_write(FRIT_LOG_WARN, "job", "a rank cannot connect: %s", strerror(errno));
    server->has_logged_accept = true;
}

/* ---- the greeting ---- */

static bool is_token(const uint8_t *a, const uint8_t *b)
{
    uint8_t differ = 0;

    for (size_t i = 0; i < WIRE_TOKEN; i++)
        differ |= (uint8_t)(a[i] ^ b[i]);
    return !differ;
}

static void refuse_stranger(struct job_server *server, const struct roster_link *link)
{
    log_write(server->has_logged_stranger ? FRIT_LOG_DEBUG : FRIT_LOG_WARN, "job",
              "a connection from %s is closed: it is not of a rank%s", link->address,
              server->has_logged_stranger ? "" : "; further ones are not logged");
    server->has_logged_stranger = true;
}

static void refuse_token(struct job_server *server, struct roster_link *link)
{
    static const char why[] = "its token is not that of the job ([dist] token); it is of another "
                              "job, or the launcher did not pass it on";
    struct str *out = &link->channel.out;
    const size_t begin = wire_begin(out, WIRE_FAILED);

    wire_u32(out, 0);
    wire_u32(out, (uint32_t)FRIT_INVALID);
    wire_text(out, why);
    wire_end(out, begin);
    link->ends = true;
    log_write(server->has_logged_token ? FRIT_LOG_DEBUG : FRIT_LOG_WARN, "job",
              "a process at %s is refused: %s%s", link->address, why,
              server->has_logged_token ? "" : "; further ones are not logged");
    server->has_logged_token = true;
}

/* 0: so far it is right. */
static int take_greeting(struct job_server *server, struct roster_link *link)
{
    const struct str *in = &link->channel.in;
    const size_t n = strlen(WIRE_MAGIC), come = in->length < n ? in->length : n;

    if (come && memcmp(in->text, WIRE_MAGIC, come) != 0) {
        refuse_stranger(server, link);
        return EPROTO;
    }
    if (in->length < WIRE_GREETING)
        return 0;
    if (!is_token((const uint8_t *)in->text + n, server->config.token))
        refuse_token(server, link);
    link->is_greeted = true;
    channel_drop(&link->channel, WIRE_GREETING);
    return 0;
}

/* ---- reading and writing ---- */

struct taking {
    struct job_server *server;
    struct roster_link *link;
    uint64_t now;
};

static void take(void *ctx, uint32_t kind, struct wire_reader *in)
{
    struct taking *taking = ctx;

    roster_take(&taking->server->roster, taking->link, kind, in, taking->now);
}

/* What came before the end of a connection counts. */
static int read_link(struct job_server *server, struct roster_link *link)
{
    struct taking taking = {server, link, clock_ns()};
    int error, wrong = 0;

    do {
        const bool was_greeted = link->is_greeted;

        error = channel_read(&link->channel, was_greeted ? FRAME_BYTES : WIRE_GREETING);
        if (was_greeted)
            wrong = channel_each(&link->channel, take, &taking);
        else
            wrong = take_greeting(server, link);
        if (was_greeted || !link->is_greeted)
            break;
    } while (!error && !wrong);
    return wrong ? wrong : error;
}

static bool is_late(const struct roster_link *link, uint64_t now)
{
    return !link->member && now > link->since + greeting_ns;
}

/* Sends, and ends what has ended. */
static void write_links(struct job_server *server)
{
    const uint64_t now = clock_ns();
    struct roster_link **at = &server->links, *link;

    while ((link = *at)) {
        const int error = channel_send(&link->channel);

        if (error && link->member)
            roster_lost(&server->roster, link, error);
        if (error || is_late(link, now) || (link->ends && !channel_wants_to_send(&link->channel)))
            end_link(server, at);
        else
            at = &link->next;
    }
}

static void read_links(struct job_server *server, size_t n)
{
    struct roster_link **at = &server->links, *link;

    for (size_t i = 0; i < n && (link = *at); i++) {
        const int error = server->polled[i + 2].revents ? read_link(server, link) : 0;

        if (!error) {
            at = &link->next;
            continue;
        }
        roster_lost(&server->roster, link, error);
        end_link(server, at);
    }
}

/* Those that have not said who they are: the oldest goes when they are many. */
static void limit_strangers(struct job_server *server)
{
    struct roster_link **oldest = NULL;
    size_t n = 0;

    for (struct roster_link **at = &server->links; *at; at = &(*at)->next) {
        if (!(*at)->member) {
            oldest = at; /* new ones are put in front */
            n++;
        }
    }
    if (n > STRANGERS_MAX + server->roster.size)
        end_link(server, oldest);
}

/* ---- the thread ---- */

static bool prepare_poll(struct job_server *server)
{
    const size_t n = server->n_links + 2;
    struct pollfd *polled = server->polled;

    if (n > server->n_polled) {
        polled = realloc(polled, 2 * n * sizeof(*polled));
        if (!polled)
            return false;
        server->polled = polled;
        server->n_polled = 2 * n;
    }
    polled[0] = (struct pollfd){.fd = server->wake, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = clock_ns() < server->accept_after ? -1 : server->listening,
                                .events = POLLIN};
    polled += 2;
    for (const struct roster_link *link = server->links; link; link = link->next) {
        const short out = channel_wants_to_send(&link->channel) ? POLLOUT : 0;

        *polled++ = (struct pollfd){.fd = link->channel.fd, .events = (short)(POLLIN | out)};
    }
    return true;
}

/* Strangers and a pause of accepting are looked at once a second. */
static int timeout_ms(uint64_t due, uint64_t now)
{
    const uint64_t ms = due <= now ? 0 : (due - now) / 1000000 + 1;

    return ms < 1000 ? (int)ms : 1000;
}

static void turn(struct job_server *server)
{
    const uint64_t now = clock_ns();
    const int ms = timeout_ms(roster_tick(&server->roster, now), now);
    const size_t n = server->n_links;
    uint64_t woke;

    write_links(server);
    if (server->n_links != n)
        return; /* a loss may have given others something to send */
    if (!prepare_poll(server)) {
        poll(NULL, 0, ms);
        return;
    }
    if (poll(server->polled, n + 2, ms) < 0)
        return;
    woke = clock_ns();
    if (woke > now + (uint64_t)ms * 1000000 + server->config.roster.suspect_ns / 2)
        roster_excuse(&server->roster, woke);
    read_links(server, n);
    if (server->polled[1].revents)
        accept_all(server);
    limit_strangers(server);
}

static void *serve(void *ctx)
{
    struct job_server *server = ctx;
    uint64_t end;

    while (!atomic_load(&server->stops))
        turn(server);
    roster_end(&server->roster);
    end = clock_ns() + end_ns;
    for (struct roster_link *link = server->links; link; link = link->next) {
        const uint64_t now = clock_ns();

        channel_end(&link->channel, now < end ? end - now : 0);
    }
    return NULL;
}

/* ---- start and end ---- */

static frit_status open_own(struct job_server *server, int *own, frit_err *err)
{
    struct roster_link *link;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return fail(err, FRIT_IO, "no connection of rank 0 to itself: %s", strerror(errno));
    link = add_link(server, pair[0]);
    if (!link) {
        close(pair[1]);
        return fail_memory(err, sizeof(*link));
    }
    link->is_greeted = true;
    strcpy(link->address, "rank 0");
    *own = pair[1];
    return FRIT_OK;
}

static frit_status open_all(struct job_server *server, int *own, frit_err *err)
{
    int error;

    if (!roster_init(&server->roster, &server->config.roster))
        return fail_memory(err, server->config.roster.size * sizeof(struct roster_member));
    server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wake < 0)
        return fail(err, FRIT_IO, "no event: %s", strerror(errno));
    TRY(address_listen(server->config.store, &server->listening, err));
    TRY(open_own(server, own, err));
    error = thread_start(&server->thread, serve, server);
    if (error) {
        close(*own);
        *own = -1;
        return fail(err, FRIT_NO_HOST_MEMORY, "the thread of the store cannot be started: %s",
                    strerror(error));
    }
    return FRIT_OK;
}

static void free_server(struct job_server *server)
{
    while (server->links)
        end_link(server, &server->links);
    if (server->listening >= 0)
        close(server->listening);
    if (server->wake >= 0)
        close(server->wake);
    roster_fini(&server->roster);
    free(server->polled);
    free(server);
}

frit_status server_start(const struct server_config *config, struct job_server **out, int *own,
                         frit_err *err)
{
    struct job_server *server = calloc(1, sizeof(*server));
    frit_status st;

    *out = NULL;
    *own = -1;
    if (!server)
        return fail_memory(err, sizeof(*server));
    server->config = *config;
    server->listening = server->wake = -1;
    st = open_all(server, own, err);
    if (st)
        free_server(server);
    else
        *out = server;
    return st;
}

void server_stop(struct job_server *server)
{
    const uint64_t one = 1;

    if (!server)
        return;
    atomic_store(&server->stops, true);
    if (write(server->wake, &one, sizeof(one)) < 0)
        log_write(FRIT_LOG_DEBUG, "job", "the store ends within a second");
    pthread_join(server->thread, NULL);
    free_server(server);
}

void server_close_inherited(struct job_server *server)
{
    close(server->listening);
    for (const struct roster_link *link = server->links; link; link = link->next)
        close(link->channel.fd);
}
