/* SPDX-License-Identifier: Apache-2.0 */
#include "job/roster.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/log.h"

enum {
    SILENT_PULSES = 60
}; /* of which a silent rank gets one, so that they do not pile up there */

bool roster_init(struct roster *roster, const struct roster_config *config)
{
    *roster = (struct roster){.config = *config,
                              .size = config->size,
                              .verdict = ERR_INIT,
                              .failure = ERR_INIT,
                              .rebuild_deadline = UINT64_MAX};
    roster->members = calloc(config->size, sizeof(struct roster_member *));
    for (uint32_t i = 0; roster->members && i < config->size; i++) {
        roster->members[i] = calloc(1, sizeof(struct roster_member));
        if (!roster->members[i]) {
            roster_fini(roster);
            return false;
        }
        roster->members[i]->rank = i;
    }
    return roster->members;
}

void roster_fini(struct roster *roster)
{
    for (uint32_t i = 0; roster->members && i < roster->size; i++)
        free(roster->members[i]);
    free(roster->members);
    map_fini(&roster->facts, free);
    roster_free_values(roster);
    *roster = (struct roster){0};
}

void roster_name(const struct roster_member *member, char out[ROSTER_NAME])
{
    snprintf(out, ROSTER_NAME, "rank %u (host %s, pid %u)", member->rank, member->host,
             member->pid);
}

void roster_reply(struct roster_link *link, uint32_t request, frit_status status, const void *bytes,
                  size_t n)
{
    struct str *out = &link->channel.out;
    const size_t begin = wire_begin(out, WIRE_REPLY);

    wire_u32(out, request);
    wire_u32(out, (uint32_t)status);
    wire_bytes(out, bytes, n);
    wire_end(out, begin);
}

/* ---- failures ---- */

static void send_failure(const struct roster *roster, struct roster_link *link,
                         const frit_err *failure)
{
    struct str *out = &link->channel.out;
    const size_t begin = wire_begin(out, WIRE_FAILED);

    wire_u32(out, roster->generation);
    wire_u32(out, (uint32_t)failure->status);
    wire_text(out, failure->text);
    wire_end(out, begin);
}

static void fail_all(struct roster *roster)
{
    for (uint32_t i = 0; i < roster->size; i++) {
        if (roster->members[i]->link)
            send_failure(roster, roster->members[i]->link, &roster->failure);
    }
}

void roster_fail(struct roster *roster, frit_status status, const char *format, ...)
{
    va_list args;

    if (roster->failure.status)
        return;
    va_start(args, format);
    (void)fail_v(&roster->failure, status, format, args);
    va_end(args);
    fail_all(roster);
}

/* Of this connection alone: the job goes on. */
static void refuse(struct roster *roster, struct roster_link *link, frit_status status,
                   const char *why)
{
    frit_err failure = ERR_INIT;

    (void)fail(&failure, status, "%s", why);
    log_write(FRIT_LOG_WARN, "job", "%s is refused: %s", link->address, why);
    send_failure(roster, link, &failure);
    link->ends = true;
}

/* ---- forming ---- */

/* "1, 3 and 4"; a long list is cut. */
static void list_missing(const struct roster *roster, char *out, size_t size)
{
    uint32_t n = 0;
    size_t at = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < roster->size && at + 32 < size; i++) {
        if (roster->members[i]->state != MEMBER_ABSENT)
            continue;
        at += (size_t)snprintf(out + at, size - at, "%s%u", n++ ? ", " : "", i);
    }
    if (n < roster->size - roster->n_present)
        snprintf(out + at, size - at, " and %u more", roster->size - roster->n_present - n);
}

static void send_joined(struct roster *roster)
{
    const struct roster_member *first = roster->members[0];

    for (uint32_t i = 0; i < roster->size; i++) {
        struct roster_link *link = roster->members[i]->link;
        struct str *out = link ? &link->channel.out : NULL;
        size_t begin;

        if (!link)
            continue;
        begin = wire_begin(out, WIRE_JOINED);
        wire_text(out, first->host);
        wire_u32(out, first->pid);
        wire_end(out, begin);
    }
}

static void form(struct roster *roster, uint64_t now)
{
    roster->is_formed = true;
    roster->next_pulse = now;
    roster_excuse(roster, now);
    if (roster->verdict.status)
        roster_fail(roster, roster->verdict.status, "%s", roster->verdict.text);
    else
        send_joined(roster);
}

/* The limit of the rank that gives up first is that of all. */
static void set_limit(struct roster *roster, uint64_t limit_ns, uint64_t now)
{
    if (limit_ns < UINT64_MAX - now && now + limit_ns < roster->config.deadline)
        roster->config.deadline = now + limit_ns;
}

/* NULL, or why it is not a rank of this job. */
static const char *check_rank(struct roster *roster, uint32_t rank, uint32_t size, char *text,
                              size_t n)
{
    char name[ROSTER_NAME];

    if (rank >= roster->size || size != roster->size) {
        snprintf(text, n, "it is rank %u of %u, and this job has %u ranks", rank, size,
                 roster->size);
        if (!roster->verdict.status) /* the rank that it should be is missing */
            (void)fail(&roster->verdict, FRIT_MISMATCH, "a process was refused: %s", text);
        return text;
    }
    if (roster->generation)
        return "the job has begun, and has lost ranks";
    if (roster->members[rank]->state == MEMBER_ABSENT)
        return NULL;
    roster_name(roster->members[rank], name);
    snprintf(text, n, "%s is here already", name);
    return text;
}

static void take_hello(struct roster *roster, struct roster_link *link, struct wire_reader *in,
                       uint64_t now)
{
    const uint32_t rank = wire_read_u32(in), size = wire_read_u32(in), pid = wire_read_u32(in);
    const uint64_t limit_ns = wire_read_u64(in);
    char host[ROSTER_HOST], text[ROSTER_NAME + 64];
    struct roster_member *member;
    const char *why;

    wire_read_text(in, host, sizeof(host));
    if (in->failed || link->member)
        return;
    if (roster->failure.status) {
        send_failure(roster, link, &roster->failure);
        link->ends = true;
        return;
    }
    /* It is of the job that comes after this one, whose store begins when this one has ended. */
    if (rank < roster->size && !roster->generation && roster->members[rank]->state == MEMBER_LEFT) {
        link->ends = true;
        return;
    }
    why = check_rank(roster, rank, size, text, sizeof(text));
    if (why) {
        refuse(roster, link, FRIT_MISMATCH, why);
        return;
    }
    member = roster->members[rank];
    member->pid = pid;
    snprintf(member->host, sizeof(member->host), "%s", host);
    snprintf(member->address, sizeof(member->address), "%s", link->address);
    if (!roster_take_facts(roster, member, in)) {
        in->failed = true;
        return;
    }
    member->state = MEMBER_PRESENT;
    member->link = link;
    member->heard = now;
    link->member = member;
    set_limit(roster, limit_ns, now);
    if (++roster->n_present == roster->size)
        form(roster, now);
}

/* ---- the next generation ---- */

static uint32_t count_requests(const struct roster *roster)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < roster->size; i++)
        n += roster->members[i]->state == MEMBER_PRESENT && roster->members[i]->rebuilds;
    return n;
}

/* Ranks are numbered anew, in the order that they had. */
static void drop_lost(struct roster *roster)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < roster->size; i++) {
        struct roster_member *member = roster->members[i];

        if (member->state == MEMBER_PRESENT) {
            member->rank = n;
            member->place = (struct job_place){0};
            member->rebuilds = false;
            roster->members[n++] = member;
        } else {
            free(member);
        }
    }
    roster->size = n;
}

static void send_rebuilt(const struct roster *roster, struct roster_member *member)
{
    struct str numbers = {0};

    wire_u32(&numbers, roster->generation);
    wire_u32(&numbers, member->rank);
    wire_u32(&numbers, roster->size);
    wire_text(&numbers, roster->members[0]->host);
    wire_u32(&numbers, roster->members[0]->pid);
    if (!numbers.failed)
        roster_reply(member->link, member->request, FRIT_OK, numbers.text, numbers.length);
    str_fini(&numbers);
}

static void rebuild_if_ready(struct roster *roster)
{
    const uint32_t n = count_requests(roster);

    if (n == 0 || n < roster->n_present)
        return;
    map_fini(&roster->facts, free); /* they name members */
    roster->facts = (struct map){0};
    drop_lost(roster);
    roster->generation++;
    roster->failure = (frit_err)ERR_INIT;
    roster->rebuild_deadline = UINT64_MAX;
    for (uint32_t i = 0; i < roster->size; i++)
        send_rebuilt(roster, roster->members[i]);
}

static void take_rebuild(struct roster *roster, struct roster_member *member,
                         struct wire_reader *in, uint64_t now)
{
    const uint32_t request = wire_read_u32(in), generation = wire_read_u32(in);
    const uint64_t limit = wire_read_u64(in);

    if (in->failed)
        return;
    if (generation != roster->generation) {
        roster->n_stale++;
        return;
    }
    member->rebuilds = true;
    member->request = request;
    if (limit < UINT64_MAX - now && now + limit < roster->rebuild_deadline)
        roster->rebuild_deadline = now + limit;
    rebuild_if_ready(roster);
}

static void expire_rebuild(struct roster *roster, uint64_t now)
{
    char text[WIRE_TEXT];
    size_t at;

    if (now < roster->rebuild_deadline)
        return;
    at = (size_t)snprintf(text, sizeof(text), "these ranks did not take part in time:");
    for (uint32_t i = 0; i < roster->size && at + 16 < sizeof(text); i++) {
        if (roster->members[i]->state == MEMBER_PRESENT && !roster->members[i]->rebuilds)
            at += (size_t)snprintf(text + at, sizeof(text) - at, " %u", i);
    }
    roster->rebuild_deadline = UINT64_MAX;
    for (uint32_t i = 0; i < roster->size; i++) {
        struct roster_member *member = roster->members[i];

        if (member->state == MEMBER_PRESENT && member->rebuilds)
            roster_reply(member->link, member->request, FRIT_TIMEOUT, text, at);
        member->rebuilds = false;
    }
}

/* ---- members ---- */

static void take_failure(struct roster *roster, const struct roster_member *member,
                         struct wire_reader *in)
{
    const uint32_t generation = wire_read_u32(in);
    const frit_status status = (frit_status)wire_read_u32(in);
    char text[WIRE_TEXT], name[ROSTER_NAME];

    wire_read_text(in, text, sizeof(text));
    if (in->failed)
        return;
    if (generation != roster->generation) {
        roster->n_stale++;
        return;
    }
    roster_name(member, name);
    roster_fail(roster, status < 0 && status_is_listed(status) ? status : FRIT_ABORTED, "%s: %s",
                name, text);
}

static void leave(struct roster *roster, struct roster_member *member, enum member_state state)
{
    if (roster->is_formed || state == MEMBER_DEAD)
        member->state = state;
    else
        member->state = MEMBER_ABSENT;
    member->link->member = NULL;
    member->link = NULL;
    roster->n_present--;
}

static void take_leave(struct roster *roster, struct roster_link *link)
{
    leave(roster, link->member, MEMBER_LEFT);
    roster_drop_waits(roster, link);
    link->ends = true;
    rebuild_if_ready(roster);
}

void roster_take(struct roster *roster, struct roster_link *link, uint32_t kind,
                 struct wire_reader *in, uint64_t now)
{
    struct roster_member *member = link->member;

    if (link->ends)
        return;
    if (kind == WIRE_HELLO) {
        in->failed |= member != NULL;
        take_hello(roster, link, in, now);
    } else if (!member) {
        in->failed = true;
    } else {
        member->heard = now;
        if (kind == WIRE_BEAT)
            place_read(in, &member->place);
        else if (kind == WIRE_SET)
            roster_set(roster, link, in);
        else if (kind == WIRE_GET)
            roster_get(roster, link, in, now);
        else if (kind == WIRE_FAIL)
            take_failure(roster, member, in);
        else if (kind == WIRE_BEHIND)
            roster_behind(roster, link, in, now);
        else if (kind == WIRE_REBUILD)
            take_rebuild(roster, member, in, now);
        else if (kind == WIRE_LEAVE)
            take_leave(roster, link);
        else
            in->failed = true;
    }
}

/* Rank 0 takes part in the same operations, and knows exactly where it is; what the lost rank last
 * said is up to a heartbeat old. */
static void place_of_loss(const struct roster *roster, const struct roster_member *member,
                          struct job_place *out)
{
    *out = roster->members[0]->place;
    if (roster->config.own_place)
        roster->config.own_place(roster->config.ctx, out);
    if (place_compare(out, &member->place) < 0)
        *out = member->place;
}

static void report_loss(struct roster *roster, const struct roster_member *member, int error)
{
    char name[ROSTER_NAME], reason[CHANNEL_REASON], place[JOB_PLACE_TEXT];
    struct job_place at;

    roster_name(member, name);
    channel_reason(error, roster->config.dead_ns, reason);
    place_of_loss(roster, member, &at);
    place_text(&at, place);
    roster_fail(roster, FRIT_PEER_LOST, "%s %s, %s%s; %u of %u ranks are alive", name, reason,
                place[0] ? "at " : "before the first operation", place, roster->n_present,
                roster->size);
}

void roster_lost(struct roster *roster, struct roster_link *link, int error)
{
    struct roster_member *member = link->member;

    roster_drop_waits(roster, link);
    if (!member)
        return;
    leave(roster, member, MEMBER_DEAD);
    report_loss(roster, member, error);
    rebuild_if_ready(roster);
}

/* ---- time ---- */

static void check_silence(struct roster *roster, struct roster_member *member, uint64_t now)
{
    const bool is_silent = now > member->heard + roster->config.suspect_ns;
    char text[WIRE_TEXT], name[ROSTER_NAME];

    if (is_silent && !member->is_silent) {
        roster_silence(member, now, text, sizeof(text));
        log_write(FRIT_LOG_WARN, "job", "%s", text);
    } else if (!is_silent && member->is_silent) {
        roster_name(member, name);
        log_write(FRIT_LOG_INFO, "job", "%s sends heartbeats again", name);
    }
    member->is_silent = is_silent;
}

static void pulse(struct roster_member *member)
{
    struct str *out = &member->link->channel.out;

    if (member->is_silent && member->skipped++ % SILENT_PULSES != 0)
        return;
    wire_end(out, wire_begin(out, WIRE_PULSE));
}

static void pulse_all(struct roster *roster, uint64_t now)
{
    if (now < roster->next_pulse)
        return;
    roster->next_pulse = now + roster->config.heartbeat_ns;
    for (uint32_t i = 0; i < roster->size; i++) {
        if (roster->members[i]->state != MEMBER_PRESENT)
            continue;
        check_silence(roster, roster->members[i], now);
        pulse(roster->members[i]);
    }
}

static void expire_forming(struct roster *roster, uint64_t now)
{
    char missing[256];

    if (roster->is_formed || roster->failure.status || now < roster->config.deadline)
        return;
    list_missing(roster, missing, sizeof(missing));
    roster_fail(roster, FRIT_TIMEOUT,
                "%u of %u ranks have come in the time limit; missing: rank %s%s%s",
                roster->n_present, roster->size, missing, roster->verdict.status ? "; and " : "",
                roster->verdict.text);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t roster_tick(struct roster *roster, uint64_t now)
{
    uint64_t due;

    expire_forming(roster, now);
    expire_rebuild(roster, now);
    due = earlier(roster_expire_waits(roster, now), roster->rebuild_deadline);
    if (roster->is_formed) {
        pulse_all(roster, now);
        return earlier(due, roster->next_pulse);
    }
    return roster->failure.status ? due : earlier(due, roster->config.deadline);
}

void roster_excuse(struct roster *roster, uint64_t now)
{
    for (uint32_t i = 0; i < roster->size; i++)
        roster->members[i]->heard = now;
}

void roster_end(struct roster *roster)
{
    for (uint32_t i = 0; i < roster->size; i++) {
        struct roster_link *link = roster->members[i]->link;

        if (link)
            wire_end(&link->channel.out, wire_begin(&link->channel.out, WIRE_END));
    }
}
