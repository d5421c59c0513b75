/* SPDX-License-Identifier: Apache-2.0 */
/* Composite ops that the driver has programs for: whether they run by these, or as the core ops
 * that they stand for because that was measured to be faster for their sizes.
 *
 * It is decided before the search: an op that is expanded is one for the plan's key, for fusers and
 * for everything that follows.  Both forms are measured by themselves, op by op, so that what the
 * core ops gain by being fused comes on top. */
#ifndef RUN_CHOICE_H
#define RUN_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/frit.h>

struct launch;
struct program_call;

/* Whether the op, for which there is a program, was found to be faster as what it stands for.
 * `context`: that it was recorded in. */
bool choice_is_decomposed(frit_device *device, const struct program_call *call, uint32_t context);

/* Measures both forms of each composite op of the launch for which that was not done.  The launch
 * is one that may be measured. */
void choice_measure(const struct launch *l);

#endif
