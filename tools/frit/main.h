/* SPDX-License-Identifier: Apache-2.0 */
/* The command `frit`. */
#ifndef FRIT_MAIN_H
#define FRIT_MAIN_H

#include <stddef.h>

struct command;

/* All commands in the order of help; NULL beyond the last. */
const struct command *command_at(size_t index);
const struct command *command_find(const char *name);

#endif
