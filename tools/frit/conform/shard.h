/* SPDX-License-Identifier: Apache-2.0 */
/* Shards: disjoint parts of a run that take about equally long, for devices that can be used only
 * for a limited time at once. */
#ifndef CONFORM_SHARD_H
#define CONFORM_SHARD_H

#include <stdbool.h>

struct conform_cases;
struct conform_shard;

enum { CONFORM_SHARDS = 1000 };

/* Parses "2/8"; at most CONFORM_SHARDS.  False: it is not a shard. */
bool conform_shard_parse(const char *text, struct conform_shard *out);
/* Keeps the shard's cases, in their order.  Each case is in exactly one of the shards of the same
 * cases.  False: out of memory. */
bool conform_shard_keep(struct conform_cases *cases, const struct conform_shard *shard);

#endif
