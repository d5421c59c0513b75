/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/log.h"

/* ---- the log ---- */

static struct {
    pthread_mutex_t lock;
    char text[RIG_LOG];
    size_t n;
} logged = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep(void *ctx, uint32_t level, const char *topic, const char *text)
{
    (void)ctx;
    if (level > FRIT_LOG_WARN || strcmp(topic, "job") != 0)
        return;
    pthread_mutex_lock(&logged.lock);
    logged.n += (size_t)snprintf(logged.text + logged.n, RIG_LOG - logged.n, "%s\n", text);
    if (logged.n >= RIG_LOG)
        logged.n = RIG_LOG - 1;
    pthread_mutex_unlock(&logged.lock);
}

uint32_t rig_logged(const char *text)
{
    uint32_t n = 0;

    pthread_mutex_lock(&logged.lock);
    for (const char *at = logged.text; (at = strstr(at, text)); at++)
        n++;
    pthread_mutex_unlock(&logged.lock);
    return n;
}

bool rig_wait_logged(const char *text, uint32_t limit_ms)
{
    for (uint32_t i = 0; i < limit_ms / 5 && !rig_logged(text); i++)
        poll(NULL, 0, 5);
    return rig_logged(text) > 0;
}

/* ---- members ---- */

static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

void rig_init(struct rig *rig)
{
    *rig = (struct rig){.config = {.token = "sesame",
                                   .connect_ns = 30000 * rig_ms,
                                   .heartbeat_ns = 20 * rig_ms,
                                   .suspect_ns = 10000 * rig_ms,
                                   .dead_ns = 1000 * rig_ms,
                                   .warn_ns = 0}};
    snprintf(rig->store, sizeof(rig->store), "tcp://127.0.0.1:%u", free_port());
    rig->config.store = rig->store;
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->failed, NULL);
    logged.n = 0;
    logged.text[0] = '\0';
    log_set_sink(keep, NULL);
}

void rig_fini(struct rig *rig)
{
    rig_close_all(rig);
    log_set_sink(NULL, NULL);
    pthread_mutex_destroy(&rig->lock);
    pthread_cond_destroy(&rig->failed);
}

static void *open_member(void *ctx)
{
    struct rig_watch *watch = ctx;
    struct rig *rig = watch->rig;

    rig->errs[watch->rank] = (frit_err)ERR_INIT;
    rig->status[watch->rank] =
        job_open(&watch->config, &rig->jobs[watch->rank], &rig->errs[watch->rank]);
    return NULL;
}

void rig_start(struct rig *rig, uint32_t rank, uint32_t size)
{
    rig->watches[rank] = (struct rig_watch){rig, rank, rig->config};
    rig->watches[rank].config.rank = rank;
    rig->jobs[rank] = NULL;
    rig->watches[rank].config.size = size;
    assert_int_equal(pthread_create(&rig->threads[rank], NULL, open_member, &rig->watches[rank]),
                     0);
}

frit_status rig_join(struct rig *rig, uint32_t rank)
{
    pthread_join(rig->threads[rank], NULL);
    return rig->status[rank];
}

void rig_start_all(struct rig *rig, uint32_t n, uint32_t size)
{
    for (uint32_t i = 0; i < n; i++)
        rig_start(rig, i, size);
}

static void take_failure(void *ctx, const frit_err *why)
{
    struct rig_watch *watch = ctx;
    struct rig *rig = watch->rig;

    pthread_mutex_lock(&rig->lock);
    rig->failure[watch->rank] = *why;
    rig->n_failed++;
    pthread_cond_broadcast(&rig->failed);
    pthread_mutex_unlock(&rig->lock);
}

void rig_join_all(struct rig *rig, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (rig_join(rig, i))
            fail_msg("rank %u: %s", i, rig->errs[i].text);
        job_watch(rig->jobs[i], take_failure, &rig->watches[i]);
    }
}

void rig_close_all(struct rig *rig)
{
    for (uint32_t i = RIG_RANKS; i-- > 0;) {
        job_close(rig->jobs[i]);
        rig->jobs[i] = NULL;
    }
}

bool rig_wait_failed(struct rig *rig, uint32_t n, uint32_t limit_ms)
{
    struct timespec until;
    bool all;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(limit_ms % 1000) * 1000000;
    until.tv_sec += limit_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&rig->lock);
    while (rig->n_failed < n && pthread_cond_timedwait(&rig->failed, &rig->lock, &until) == 0)
        ;
    all = rig->n_failed == n;
    pthread_mutex_unlock(&rig->lock);
    return all;
}

/* ---- fakes ---- */

void fake_connect(const struct rig *rig, struct channel *fake, const void *bytes, size_t n)
{
    frit_err err = ERR_INIT;
    int fd;

    if (address_connect(rig->store, clock_ns() + 30000 * rig_ms, &fd, &err))
        fail_msg("%s", err.text);
    channel_init(fake, fd, 30000 * rig_ms);
    str_add(&fake->out, bytes, n);
    fake_send(fake);
}

void fake_greet(const struct rig *rig, struct channel *fake, const char *token)
{
    char bytes[WIRE_GREETING] = WIRE_MAGIC;

    memcpy(bytes + strlen(WIRE_MAGIC), token, strlen(token));
    fake_connect(rig, fake, bytes, sizeof(bytes));
}

void fake_hello(struct channel *fake, uint32_t rank, uint32_t size, const struct job_fact *facts,
                uint32_t n_facts)
{
    const size_t begin = wire_begin(&fake->out, WIRE_HELLO);

    wire_u32(&fake->out, rank);
    wire_u32(&fake->out, size);
    wire_u32(&fake->out, 1000 + rank);
    wire_u64(&fake->out, 60000 * rig_ms);
    wire_text(&fake->out, "fake");
    wire_u32(&fake->out, n_facts);
    for (uint32_t i = 0; i < n_facts; i++) {
        wire_text(&fake->out, facts[i].name);
        wire_text(&fake->out, facts[i].value);
    }
    wire_end(&fake->out, begin);
    fake_send(fake);
}

void fake_send(struct channel *fake)
{
    assert_int_equal(channel_send(fake), 0);
    assert_false(channel_wants_to_send(fake));
}

bool fake_receive(struct channel *fake, uint32_t kind, struct wire_reader *in)
{
    const uint64_t end = clock_ns() + 30000 * rig_ms;
    static char frame[WIRE_MAX];
    int error = 0;

    while (clock_ns() < end) {
        uint32_t found = 0;
        const int64_t n = wire_next(fake->in.text, fake->in.length, &found, in);

        if (n > 0) {
            const size_t size = (size_t)(in->end - in->at);

            memcpy(frame, in->at, size);
            channel_drop(fake, (size_t)n);
            *in =
                (struct wire_reader){(const uint8_t *)frame, (const uint8_t *)frame + size, false};
            if (found == kind)
                return true;
            continue;
        }
        if (n < 0 || error)
            return false;
        poll(&(struct pollfd){.fd = fake->fd, .events = POLLIN}, 1, 50);
        error = channel_read(fake, WIRE_MAX + 4);
    }
    return false;
}

void fake_beat(struct channel *fake, const struct job_place *place)
{
    const size_t begin = wire_begin(&fake->out, WIRE_BEAT);

    place_write(&fake->out, place);
    wire_end(&fake->out, begin);
    fake_send(fake);
}
