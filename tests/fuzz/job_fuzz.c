/* SPDX-License-Identifier: Apache-2.0 */
/* Any frames from three connections to a roster, and what it sends as frames to a member: rank 0
 * counts right whoever comes and goes, every text is terminated and printable, and every frame that
 * it sends is one.
 *
 * The input is a list of turns: a byte for the connection and what happens, a byte for the number
 * of bytes that follow. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"
#include "job/job_thread.h"
#include "job/roster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINKS = 3, RANKS = 3, LOSE = 0x80, PASS_TIME = 0x40 };
static const uint64_t second = 1000000000u;

struct scene {
    struct roster roster;
    struct roster_link links[LINKS];
    struct job_member *member;
    uint32_t link; /* of this turn */
    uint64_t now;
};

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_text(const char *text, size_t size)
{
    const char *end = memchr(text, '\0', size);

    check(end != NULL);
    for (; text < end; text++)
        check((unsigned char)*text >= ' ' && *text != 0x7f);
}

static void check_roster(const struct roster *roster)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < roster->size; i++) {
        const struct roster_member *member = roster->members[i];

        n += member->state == MEMBER_PRESENT;
        check((member->state == MEMBER_PRESENT) == (member->link != NULL));
        check(!member->link || member->link->member == member);
        check(member->rank == i);
        check_text(member->host, sizeof(member->host));
        check_text(member->place.span, sizeof(member->place.span));
    }
    check(n == roster->n_present);
    check_text(roster->failure.text, sizeof(roster->failure.text));
}

static void take(void *ctx, uint32_t kind, struct wire_reader *in)
{
    struct scene *scene = ctx;

    roster_take(&scene->roster, &scene->links[scene->link], kind, in, scene->now);
    check_roster(&scene->roster);
}

/* The member gets what the roster sends to a connection. */
static void pass_on(struct scene *scene, struct roster_link *link)
{
    struct channel channel = {.fd = -1, .in = link->channel.out};

    check(!link->channel.out.failed);
    check(channel_each(&channel, job_take, scene->member) == 0 && channel.in.length == 0);
    scene->member->n_notes = 0;
    link->channel.out = channel.in;
}

static void lose(struct scene *scene, struct roster_link *link, int error)
{
    roster_lost(&scene->roster, link, error);
    channel_fini(&link->channel);
    *link = (struct roster_link){.channel = {.fd = -1}};
    check_roster(&scene->roster);
}

static void turn(struct scene *scene, uint8_t what, const uint8_t *bytes, size_t n)
{
    struct roster_link *link = &scene->links[scene->link];

    if (what & PASS_TIME) {
        scene->now += n * second;
        (void)roster_tick(&scene->roster, scene->now);
    } else if (what & LOSE) {
        lose(scene, link, CHANNEL_CLOSED);
    } else {
        str_add(&link->channel.in, (const char *)bytes, n);
        if (channel_each(&link->channel, take, scene))
            lose(scene, link, 71);
    }
    for (int i = 0; i < LINKS; i++)
        pass_on(scene, &scene->links[i]);
}

static struct job_member *create_member(void)
{
    struct job_member *member = calloc(1, sizeof(*member));

    check(member != NULL);
    pthread_mutex_init(&member->lock, NULL);
    pthread_cond_init(&member->changed, NULL);
    member->failure = (frit_err)ERR_INIT;
    member->channel.fd = member->wake = -1;
    return member;
}

static void end(struct scene *scene)
{
    for (int i = 0; i < LINKS; i++)
        lose(scene, &scene->links[i], CHANNEL_CLOSED);
    check(scene->roster.n_present == 0 && !scene->roster.waits);
    roster_fini(&scene->roster);
    pthread_mutex_destroy(&scene->member->lock);
    pthread_cond_destroy(&scene->member->changed);
    free(scene->member);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct roster_config config = {.size = RANKS,
                                         .deadline = 30 * second,
                                         .heartbeat_ns = second,
                                         .suspect_ns = 5 * second,
                                         .dead_ns = 5 * second};
    struct scene scene = {.now = 1, .member = create_member()};

    (void)log_configure("off", NULL);
    check(roster_init(&scene.roster, &config));
    for (int i = 0; i < LINKS; i++)
        scene.links[i].channel.fd = -1;
    while (size >= 2) {
        const size_t n = data[1] < size - 2 ? data[1] : size - 2;

        scene.link = data[0] % LINKS;
        turn(&scene, data[0] & (LOSE | PASS_TIME), data + 2, n);
        data += 2 + n;
        size -= 2 + n;
    }
    end(&scene);
    return 0;
}
