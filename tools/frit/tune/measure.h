/* SPDX-License-Identifier: Apache-2.0 */
/* `frit tune FILE`. */
#ifndef CLI_TUNE_MEASURE_H
#define CLI_TUNE_MEASURE_H

struct invocation;

/* Measures the candidates of a text program's launches, in processes of its own: one that dies, or
 * is silent for too long, is followed by the next, which does not try again what two died of. */
int tune_program(const struct invocation *in);
/* The same in this process, for --here. */
int tune_here(const struct invocation *in);

#endif
