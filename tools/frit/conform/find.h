/* SPDX-License-Identifier: Apache-2.0 */
/* Which device DRIVER, DEVICE or a plugin's file means. */
#ifndef CONFORM_FIND_H
#define CONFORM_FIND_H

#include <stdbool.h>
#include <stdio.h>

#include "conform/conform.h"

struct conform_found;
struct conform_options;

/* Finds what DRIVER, DEVICE or a plugin's file means with the settings of the run, in a child,
 * since plugins may crash.  False with a reason. */
bool conform_find(const struct conform_options *options, const char *name,
                  struct conform_found *out, char reason[CONFORM_REASON]);
/* Calls `send` in a child process and `receive` in this one with what the child writes.  `*status`
 * is the child's, as waitpid gives it.  Returns false and sets errno if the child or the pipe
 * cannot be made. */
bool conform_fork(void (*send)(void *ctx, FILE *to), void (*receive)(void *ctx, FILE *from),
                  void *ctx, int *status);
/* How a child ended that should not have, in words, by its status from waitpid. */
const char *conform_ended(int status, char reason[CONFORM_REASON]);

#endif
