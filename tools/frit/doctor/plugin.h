/* SPDX-License-Identifier: Apache-2.0 */
/* `frit doctor plugin`. */
#ifndef DOCTOR_PLUGIN_H
#define DOCTOR_PLUGIN_H

struct invocation;

/* Shows what the file in->args[1] is, and whether it works.  CLI_FAILED if it does not. */
int plugin_command(const struct invocation *in);

#endif
