/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of neighbours in resampling, as core ops. */
#ifndef GRAPH_DECOMPOSE_TAPS_H
#define GRAPH_DECOMPOSE_TAPS_H

#include "graph/decompose/build.h"

/* How many neighbours a mode (FRIT_CHOICE_resample_*) looks at along a dim. */
int64_t taps_count(int64_t mode);
/* Their places relative to the sample at or before the point, along the last of `rank` dims, i64.
 */
term taps_places(struct build *b, int64_t mode, uint32_t rank);
/* Their weights: `fraction` is how far the point lies beyond that sample, with a last extent of 1;
 * the result's last dim is that of `places`. */
term taps_weights(struct build *b, int64_t mode, term fraction, term places);

#endif
