/* SPDX-License-Identifier: Apache-2.0 */
/* Help and the manual page, both generated from the command table. */
#ifndef FRIT_HELP_H
#define FRIT_HELP_H

#include <stdio.h>

struct command;

void help_all(FILE *out);
void help_of(FILE *out, const struct command *command);
void help_manual(FILE *out);

#endif
