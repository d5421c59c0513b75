/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of one bucket share what was measured of one of them. */
#ifndef TUNE_ANCHOR_H
#define TUNE_ANCHOR_H

#include <stdint.h>

enum tune_level {
    TUNE_OFF,      /* nothing is measured */
    TUNE_MINIMAL,  /* buckets end at powers of four */
    TUNE_BALANCED, /* at powers of two */
    TUNE_FULL      /* each size is its own */
};

/* The largest size of the bucket that `size` is in: it is never rounded down, since what is valid
 * for a small size may not be for a larger one.  anchor(anchor(x)) == anchor(x).  Sizes beyond the
 * last power are their own. */
uint64_t tune_anchor(uint64_t size, enum tune_level level);

#endif
