/* SPDX-License-Identifier: Apache-2.0 */
/* Which device DRIVER, DEVICE or a plugin's file means. */
#ifndef CONFORM_FIND_H
#define CONFORM_FIND_H

#include <stdbool.h>
#include <stdio.h>

#include "conform/conform.h"

struct conform_found;

/* Finds what DRIVER, DEVICE or a plugin's file means, in a child, since plugins may crash.  False
 * with a reason. */
bool conform_find(const char *name, struct conform_found *out, char reason[CONFORM_REASON]);
/* Calls `ask` in a child and `hear` with what that writes; false, and errno, where there is no
 * child or it cannot be heard.  `*status` is what wait tells of it. */
bool conform_ask(void (*ask)(void *ctx, FILE *to), void (*hear)(void *ctx, FILE *from), void *ctx,
                 int *status);
/* In words how a child ended that should not have, by what wait tells of it. */
const char *conform_ended(int status, char reason[CONFORM_REASON]);

#endif
