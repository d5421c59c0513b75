/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank's engine is given to do: a table before the engine's own, which logs. */
#ifndef TESTS_DIST_SPY_H
#define TESTS_DIST_SPY_H

#include "dist/members.h"

enum { MOST_LOGGED = 1 << 16 };

/* Operations in the order of their beginning. */
struct spy {
    uint32_t n;
    uint64_t counts[MOST_LOGGED]; /* elements of all buffers */
    uint32_t dtypes[MOST_LOGGED];
};

/* Logs what the member's rank begins from now on, until spy_end or the end of the group.  `spy`
 * stays where it is.  Read it when the rank has nothing under way. */
void spy_begin(struct spy *spy, struct member *member);
void spy_end(struct spy *spy);

#endif
