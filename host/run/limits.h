/* SPDX-License-Identifier: Apache-2.0 */
/* The device's roofline (tune/limit.h) where something is tuned: measured once per device, type and
 * size with the device's own programs of `add`, `sum` and `matmul`, and kept as decisions are. */
#ifndef RUN_LIMITS_H
#define RUN_LIMITS_H

struct measure;

/* Lets the contest, which has not begun, end early when a candidate is as fast as the device can
 * be.  Measures limits that are not known, in a quarter of the key's budget, if that is at least 50
 * ms. */
void limits_apply(struct measure *m);
/* Forgets the limits where a sample of the contest was shorter: they were measured while something
 * else loaded the device. */
void limits_review(struct measure *m);

#endif
