/* SPDX-License-Identifier: Apache-2.0 */
/* Two schedules for tests, in place of the real ones, for dense add, mul and neg of f32 of equal
 * dims:
 *
 *   narrow  any number of them, 32 lanes; not of rank 3
 *   pairs   an even number of them, at least 2; 64 lanes and a workspace that it does nothing with
 *
 * toy_exact: each module says how many elements it is for, so that no two sizes share one. */
#ifndef TESTS_FUSE_TOY_H
#define TESTS_FUSE_TOY_H

#include <stdatomic.h>

#include "lower/sched.h"

extern atomic_uint toy_builds;
extern atomic_uint toy_matches; /* ops that schedules looked at */
extern atomic_uint toy_meet;    /* a build ends when this many have begun */
extern bool toy_exact;

/* What is wrong with the next modules. */
enum { TOY_NONE, TOY_ARGUMENT, TOY_PARAMETER, TOY_PHASES, TOY_BODY };
extern int toy_fault;

#endif
