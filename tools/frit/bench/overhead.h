/* SPDX-License-Identifier: Apache-2.0 */
/* `frit bench overhead`. */
#ifndef BENCH_OVERHEAD_H
#define BENCH_OVERHEAD_H

struct bench;

/* The suite `overhead`. */
int bench_overhead(const struct bench *bench);

#endif
