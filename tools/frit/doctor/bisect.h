/* SPDX-License-Identifier: Apache-2.0 */
/* `frit doctor bisect`. */
#ifndef DOCTOR_BISECT_H
#define DOCTOR_BISECT_H

struct invocation;

/* Finds what makes the results of the program in->args[1] differ.  CLI_FAILED if they do. */
int bisect_command(const struct invocation *in);

#endif
