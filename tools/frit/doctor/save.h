/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a program as a recording of its own, with its operands. */
#ifndef DOCTOR_SAVE_H
#define DOCTOR_SAVE_H

struct invocation;
struct judge;
struct region;

/* Makes the folder: trace.frit, which `frit replay` and `frit doctor bisect` take, and a file for
 * each input, as the reference has it. */
int save_region(const struct invocation *in, const struct judge *judge, const struct region *region,
                const char *folder);

#endif
