/* SPDX-License-Identifier: Apache-2.0 */
/* Where a segment ends that no block ends: by counted ops, so that the same ops always end alike.
 *
 * A loop that never waits must neither pile up ops without limit nor be cut at another place of its
 * body each time, since every cut makes a plan of its own.  So a segment that repeats itself ends
 * at the first whole number of periods that is long enough.  One whose beginning is something else
 * ends when its last half repeats itself, or at a fixed length; the loop's next segments then begin
 * and end at one place of its body.  Threads: one at a time. */
#ifndef RUN_PERIOD_H
#define RUN_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

struct segment;

enum {
    PERIODIC_OPS = 64, /* a segment that repeats itself gets at least this many */
    APERIODIC_OPS = 256
};

/* All zero is empty. */
struct period {
    uint32_t *border; /* per op: the length of the longest proper prefix of the segment that is also
                         a suffix up to and with it */
    uint32_t *half;   /* the same of the last half, while that is looked at */
    uint32_t count, border_capacity, half_capacity;
};

void period_fini(struct period *period);
void period_reset(struct period *period);
/* Whether a segment ends after its first `n_calls` ops.  Between resets the ops stay and n_calls
 * grows.  Amortised constant cost per op; if out of memory, it ends. */
bool period_ends(struct period *period, const struct segment *segment, uint32_t n_calls);

#endif
