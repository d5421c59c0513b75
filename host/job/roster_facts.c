/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks say of themselves and must be the same on all that say it. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"
#include "job/roster.h"

enum { FACT_NAME = 80, FACT_VALUE = 128 };

struct roster_fact {
    const struct roster_member *member; /* the first that had it */
    char value[FACT_VALUE];
};

static void differ(struct roster *roster, const struct roster_fact *fact, const char *name,
                   const struct roster_member *member, const char *value)
{
    const bool is_lower = member->rank < fact->member->rank;
    char first[ROSTER_NAME], second[ROSTER_NAME];

    if (roster->verdict.status)
        return;
    roster_name(is_lower ? member : fact->member, first);
    roster_name(is_lower ? fact->member : member, second);
    (void)fail(&roster->verdict, FRIT_MISMATCH,
               "%s has the %s '%s', %s has '%s'; it must be the same on all ranks", first, name,
               is_lower ? value : fact->value, second, is_lower ? fact->value : value);
}

static bool add(struct roster *roster, const struct roster_member *member, const char *name,
                const char *value)
{
    struct roster_fact *fact = calloc(1, sizeof(*fact));

    if (!fact || !map_add(&roster->facts, name, strlen(name), fact)) {
        free(fact);
        return false;
    }
    fact->member = member;
    memcpy(fact->value, value, strlen(value) + 1);
    return true;
}

bool roster_take_facts(struct roster *roster, const struct roster_member *member,
                       struct wire_reader *in)
{
    const uint32_t n = wire_read_u32(in);

    if (n > ROSTER_FACTS)
        return false;
    for (uint32_t i = 0; i < n && !in->failed; i++) {
        char name[FACT_NAME], value[FACT_VALUE];
        const struct roster_fact *fact;

        wire_read_text(in, name, sizeof(name));
        wire_read_text(in, value, sizeof(value));
        if (in->failed || !name[0])
            return false;
        fact = map_get(&roster->facts, name, strlen(name));
        if (!fact && !add(roster, member, name, value))
            return false;
        if (fact && strcmp(fact->value, value) != 0)
            differ(roster, fact, name, member, value);
    }
    return !in->failed;
}
