/* SPDX-License-Identifier: Apache-2.0 */
/* Cases are dealt in rounds: of each `count` consecutive ones every shard gets one.  So each shard
 * has its part of every row, and no estimate of what a case costs is needed, which differs from
 * driver to driver.  The shard with which a round begins is the next of the sequence of multiples
 * of the golden ratio, which has no period: that of element types and layouts in the list never
 * meets that of the rounds. */
#include "conform/shard.h"

#include <ctype.h>
#include <stdlib.h>

#include "conform/conform.h"

/* A number from 1 to CONFORM_SHARDS at `*at`, which is moved past it; 0: there is none. */
static uint32_t parse_number(const char **at)
{
    char *end;
    unsigned long number;

    if (!isdigit((unsigned char)**at))
        return 0;
    number = strtoul(*at, &end, 10);
    *at = end;
    return number <= CONFORM_SHARDS ? (uint32_t)number : 0;
}

bool conform_shard_parse(const char *text, struct conform_shard *out)
{
    out->number = parse_number(&text);
    if (*text++ != '/')
        return false;
    out->count = parse_number(&text);
    return *text == '\0' && out->number >= 1 && out->number <= out->count;
}

/* Which shard gets case `index`, from 0. */
static uint64_t shard_of(size_t index, uint32_t count)
{
    uint64_t fraction = (index / count * 0x9e3779b97f4a7c15u) >> 32; /* of 2^32 */

    return (index + (fraction * count >> 32)) % count;
}

void conform_shard_keep(struct conform_cases *cases, const struct conform_shard *shard)
{
    size_t n = 0;

    for (size_t i = 0; i < cases->count; i++)
        if (shard_of(i, shard->count) == shard->number - 1)
            cases->at[n++] = cases->at[i];
    cases->count = n;
}
