/* SPDX-License-Identifier: Apache-2.0 */
/* Rows are dealt whole, since the device is opened anew for each: the longest first, each to the
 * shard that has the fewest cases.  A row with more cases than a shard should have is cut. */
#include "conform/shard.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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

/* Consecutive cases of one row. */
struct piece {
    size_t first, count;
};

/* How many consecutive cases from `first` on, at most `most`, belong to one row. */
static size_t piece_length(const struct conform_cases *cases, size_t first, size_t most)
{
    size_t n = 1;

    while (n < most && first + n < cases->count &&
           strcmp(cases->at[first + n].row.name, cases->at[first].row.name) == 0)
        n++;
    return n;
}

/* Returns how many there are. */
static size_t cut(const struct conform_cases *cases, size_t most, struct piece *pieces)
{
    size_t n = 0;

    for (size_t first = 0; first < cases->count; first += pieces[n++].count)
        pieces[n] = (struct piece){first, piece_length(cases, first, most)};
    return n;
}

/* By length, the longest first; pieces of one length in the order of the list. */
static int compare(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Deals the pieces, which it sorts; sets `kept` for the cases of `shard`. */
static void deal(struct piece *pieces, size_t n, const struct conform_shard *shard, bool *kept)
{
    size_t load[CONFORM_SHARDS] = {0};

    qsort(pieces, n, sizeof(*pieces), compare);
    for (size_t i = 0; i < n; i++) {
        uint32_t to = 0;

        for (uint32_t k = 1; k < shard->count; k++)
            if (load[k] < load[to])
                to = k;
        load[to] += pieces[i].count;
        for (size_t j = 0; to == shard->number - 1 && j < pieces[i].count; j++)
            kept[pieces[i].first + j] = true;
    }
}

bool conform_shard_keep(struct conform_cases *cases, const struct conform_shard *shard)
{
    const size_t most = cases->count / shard->count + 1;
    struct piece *pieces = malloc((cases->count + 1) * sizeof(*pieces));
    bool *kept = calloc(cases->count + 1, sizeof(*kept));
    const bool good = pieces && kept;
    size_t n = 0;

    if (good) {
        deal(pieces, cut(cases, most, pieces), shard, kept);
        for (size_t i = 0; i < cases->count; i++)
            if (kept[i])
                cases->at[n++] = cases->at[i];
        cases->count = n;
    }
    free(pieces);
    free(kept);
    return good;
}
