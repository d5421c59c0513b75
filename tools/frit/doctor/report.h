/* SPDX-License-Identifier: Apache-2.0 */
/* `frit doctor report`. */
#ifndef DOCTOR_REPORT_H
#define DOCTOR_REPORT_H

struct invocation;

/* Writes a text for a report of a fault, with what `frit explain` says of the program in->args[1]
 * if there is one. */
int report_command(const struct invocation *in);

#endif
