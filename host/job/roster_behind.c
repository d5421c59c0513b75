/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks keep the others waiting, in words. */
#include <stdio.h>

#include "job/roster.h"

enum { NAMED_MAX = 3 };

static const char silent_reasons[] = "stopped, swapping or in a debugger";

static double seconds(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) * 1e-9 : 0;
}

void roster_silence(const struct roster_member *member, uint64_t now, char *out, size_t size)
{
    char name[ROSTER_NAME];

    roster_name(member, name);
    snprintf(out, size, "no heartbeat from %s for %.1f s but its kernel still answers: %s", name,
             seconds(member->heard, now), silent_reasons);
}

static void describe(const struct roster *roster, const struct roster_member *member,
                     const struct job_place *of, uint64_t now, struct str *out)
{
    char name[ROSTER_NAME], begun[JOB_PLACE_TEXT];

    roster_name(member, name);
    if (now > member->heard + roster->config.suspect_ns) {
        str_addf(out, "%s: no heartbeat from it for %.1f s but its kernel still answers: %s", name,
                 seconds(member->heard, now), silent_reasons);
        return;
    }
    place_begun_text(&member->place, of, begun);
    str_addf(out, "%s: it has begun %s (last heartbeat %.1f s ago: alive, not progressing)", name,
             begun, seconds(member->heard, now));
}

/* A rank that is behind, or that is silent: what it last said is old. */
static bool is_waited_for(const struct roster *roster, const struct roster_member *member,
                          const struct job_place *of, uint64_t now)
{
    return member->state == MEMBER_PRESENT && (now > member->heard + roster->config.suspect_ns ||
                                               place_compare(&member->place, of) < 0);
}

/* Rank 0 has logged it already. */
static bool is_known(const struct roster_member *reader, const struct roster_member *member)
{
    return reader->rank == 0 && member->is_silent;
}

void roster_behind(const struct roster *roster, struct roster_link *link, struct wire_reader *in,
                   uint64_t now)
{
    const uint32_t request = wire_read_u32(in), is_error = wire_read_u32(in);
    struct job_place of;
    struct str text = {0};
    uint32_t n = 0, n_known = 0;

    place_read(in, &of);
    if (in->failed)
        return;
    for (uint32_t i = 0; i < roster->size; i++) {
        const struct roster_member *member = roster->members[i];

        if (member == link->member || !is_waited_for(roster, member, &of, now))
            continue;
        n_known += !is_error && is_known(link->member, member);
        if (n++ < NAMED_MAX) {
            str_addf(&text, "%s", n > 1 ? "; " : "");
            describe(roster, member, &of, now, &text);
        }
    }
    if (n > NAMED_MAX)
        str_addf(&text, "; and %u more ranks", n - NAMED_MAX);
    if (n == 0)
        str_addf(&text, "all ranks: each has begun it");
    if (text.failed)
        roster_reply(link, request, FRIT_NO_HOST_MEMORY, "", 0);
    else
        roster_reply(link, request, FRIT_OK, text.text, n && n == n_known ? 0 : text.length);
    str_fini(&text);
}
