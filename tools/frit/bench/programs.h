/* SPDX-License-Identifier: Apache-2.0 */
/* `frit bench programs`. */
#ifndef BENCH_PROGRAMS_H
#define BENCH_PROGRAMS_H

struct bench;

/* The suite `programs`. */
int bench_programs(const struct bench *bench);

#endif
