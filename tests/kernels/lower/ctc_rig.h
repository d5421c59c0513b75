/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of ctc_loss and its gradient for tests. */
#ifndef TESTS_LOWER_CTC_RIG_H
#define TESTS_LOWER_CTC_RIG_H

#include "kernels/lower/rig.h"

enum { CTC_CLASSES = 3 };

enum { LOG_PROBS, TARGETS, STEPS, LABELS, GRAD, CTC_OPERANDS };

/* Which row, and the extents. */
struct ctc {
    bool gradient;
    uint32_t dtype, int_dtype;
    int64_t steps, items, labels, blank;
    bool negated; /* log_probs are what neg makes of operand 0 */
    bool f64;
    uint32_t width; /* of indices; 0: 32 */
};

/* Begins the rig with the row, whose operands are filled: lengths and classes beyond the extents
 * are among them, the blank is not in a target.  The result. */
uint32_t ctc_rig(struct rig *rig, const struct ctc *c, uint32_t in[CTC_OPERANDS]);
/* The value doubled, of the same type and dims. */
uint32_t ctc_twice(struct rig *rig, uint32_t value);

#endif
