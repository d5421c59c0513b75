/* SPDX-License-Identifier: Apache-2.0 */
/* Values by key, and those that wait for one. */
#include <stdlib.h>
#include <string.h>

#include "job/roster.h"

struct roster_value {
    size_t n;
    char bytes[];
};

struct roster_wait {
    struct roster_wait *next;
    struct roster_link *link;
    uint64_t deadline;
    uint32_t request;
    size_t n_key;
    char key[];
};

static void reply_text(struct roster_link *link, uint32_t request, frit_status status,
                       const char *text)
{
    roster_reply(link, request, status, text, strlen(text));
}

/* Those that wait for it get it. */
static void give(struct roster *roster, frit_str key, const struct roster_value *value)
{
    struct roster_wait **at = &roster->waits, *wait;

    while ((wait = *at)) {
        if (wait->n_key != key.len || memcmp(wait->key, key.ptr, key.len) != 0) {
            at = &wait->next;
            continue;
        }
        roster_reply(wait->link, wait->request, FRIT_OK, value->bytes, value->n);
        *at = wait->next;
        free(wait);
    }
}

/* NULL, or why it is not kept. */
static const char *put(struct roster *roster, frit_str key, frit_str bytes)
{
    struct roster_value *value;

    if (map_get(&roster->values, key.ptr, key.len))
        return "this key has a value already";
    if (roster->value_bytes + bytes.len + key.len > ROSTER_VALUES_MAX)
        return "the values of the job take 64 MiB already";
    value = malloc(sizeof(*value) + bytes.len);
    if (!value || !map_add(&roster->values, key.ptr, key.len, value)) {
        free(value);
        return "rank 0 has no memory for it";
    }
    value->n = bytes.len;
    memcpy(value->bytes, bytes.ptr, bytes.len);
    roster->value_bytes += bytes.len + key.len;
    give(roster, key, value);
    return NULL;
}

void roster_set(struct roster *roster, struct roster_link *link, struct wire_reader *in)
{
    const uint32_t request = wire_read_u32(in);
    const frit_str key = wire_read_bytes(in, WIRE_KEY), bytes = wire_read_bytes(in, WIRE_VALUE);
    const char *why = in->failed ? NULL : put(roster, key, bytes);

    reply_text(link, request, why ? FRIT_INVALID : FRIT_OK, why ? why : "");
}

static bool wait_for(struct roster *roster, struct roster_link *link, uint32_t request,
                     frit_str key, uint64_t deadline)
{
    struct roster_wait *wait = malloc(sizeof(*wait) + key.len);

    if (!wait)
        return false;
    wait->next = roster->waits;
    wait->link = link;
    wait->deadline = deadline;
    wait->request = request;
    wait->n_key = key.len;
    memcpy(wait->key, key.ptr, key.len);
    roster->waits = wait;
    return true;
}

void roster_get(struct roster *roster, struct roster_link *link, struct wire_reader *in,
                uint64_t now)
{
    const uint32_t request = wire_read_u32(in);
    const uint64_t limit = wire_read_u64(in);
    const frit_str key = wire_read_bytes(in, WIRE_KEY);
    const struct roster_value *value;

    if (in->failed)
        return;
    value = map_get(&roster->values, key.ptr, key.len);
    if (value)
        roster_reply(link, request, FRIT_OK, value->bytes, value->n);
    else if (!wait_for(roster, link, request, key,
                       limit < UINT64_MAX - now ? now + limit : UINT64_MAX))
        reply_text(link, request, FRIT_NO_HOST_MEMORY, "rank 0 has no memory");
}

void roster_drop_waits(struct roster *roster, const struct roster_link *link)
{
    struct roster_wait **at = &roster->waits, *wait;

    while ((wait = *at)) {
        if (wait->link != link) {
            at = &wait->next;
            continue;
        }
        *at = wait->next;
        free(wait);
    }
}

uint64_t roster_expire_waits(struct roster *roster, uint64_t now)
{
    struct roster_wait **at = &roster->waits, *wait;
    uint64_t next = UINT64_MAX;

    while ((wait = *at)) {
        if (wait->deadline > now) {
            next = wait->deadline < next ? wait->deadline : next;
            at = &wait->next;
            continue;
        }
        reply_text(wait->link, wait->request, FRIT_TIMEOUT, "no rank has set it");
        *at = wait->next;
        free(wait);
    }
    return next;
}

void roster_free_values(struct roster *roster)
{
    while (roster->waits) {
        struct roster_wait *next = roster->waits->next;

        free(roster->waits);
        roster->waits = next;
    }
    map_fini(&roster->values, free);
}
