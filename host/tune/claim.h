/* SPDX-License-Identifier: Apache-2.0 */
/* Who tunes a key: a store of a process.  Its claim ends with the process, however that ends, and
 * in any case after a time in which no key takes so long to tune. */
#ifndef TUNE_CLAIM_H
#define TUNE_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

struct tune_claim {
    int64_t machine; /* digest of the boot and the process namespace, in which `process` counts */
    int64_t process; /* id */
    int64_t started; /* in ticks since the boot, since ids are used again; 0: unknown */
    int64_t store;   /* of the process */
    int64_t since;   /* in seconds since 1970 */
};

/* Of this process, from now on. */
struct tune_claim tune_claim_own(int64_t store);
/* Whether both are of one store. */
bool tune_claim_same(const struct tune_claim *a, const struct tune_claim *b);
/* Whether its process may still be tuning. */
bool tune_claim_is_live(const struct tune_claim *claim);

#endif
