/* SPDX-License-Identifier: Apache-2.0 */
/* Records for tests. */
#ifndef TESTS_TUNE_RECORD_RIG_H
#define TESTS_TUNE_RECORD_RIG_H

#include <stdint.h>

#include "tune/record.h"

/* Any record within the limits, as `seed` gives it, for tune_record_destroy. */
struct tune_record *record_rig_random(uint64_t seed);
/* A record of a key of one number with three candidates; the first one's only sample is `ns`. */
struct tune_record *record_rig_small(uint64_t key, uint64_t ns);

#endif
