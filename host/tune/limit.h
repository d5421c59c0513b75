/* SPDX-License-Identifier: Apache-2.0 */
/* The roofline of a device: how fast it is at best, measured at a few sizes.
 *
 * A ladder has times for growing amounts of work: bytes moved, or operations of a product.  Between
 * two steps a launch takes at least what follows from the rise of time before them, if time rises
 * more and more steeply, as where a cache ends; or what lies on the line between the two, if it
 * rises less and less, as while a launch does not fill the device: the lesser of both.  Above the
 * last step its rate holds if that launch filled the device: it took long, or the rate has not
 * grown in the last two steps.  Below the second step nothing is known.  Pure. */
#ifndef TUNE_LIMIT_H
#define TUNE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TUNE_LIMIT_STEPS = 6,
    TUNE_LIMIT_FILLED_NS = 2000000, /* a launch that takes so long fills any device */
    TUNE_LIMIT_ENOUGH = 110,        /* percent of the least time */
    TUNE_LIMIT_WRONG = 95
};

struct tune_ladder {
    uint32_t n_steps;
    uint64_t work[TUNE_LIMIT_STEPS]; /* growing */
    uint64_t ns[TUNE_LIMIT_STEPS];   /* the least; 0: unknown */
};

/* Adds a step. */
void tune_ladder_add(struct tune_ladder *ladder, uint64_t work, uint64_t ns);
/* Whether a further step would teach nothing: the last one filled the device, or failed. */
bool tune_ladder_is_whole(const struct tune_ladder *ladder);
/* The least time that so much work can take; 0: unknown. */
uint64_t tune_ladder_ns(const struct tune_ladder *ladder, uint64_t work);

/* From the least times of what a launch has to do, 0: unknown, the time within which it is fast
 * enough, and that below which the limits are wrong. */
uint64_t tune_limit_enough(uint64_t bytes_ns, uint64_t product_ns);
uint64_t tune_limit_least(uint64_t bytes_ns, uint64_t product_ns);

#endif
