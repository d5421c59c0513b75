/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of ops that plugins bring. */
#ifndef CONFORM_CUSTOM_H
#define CONFORM_CUSTOM_H

#include <stdbool.h>

#include "conform/conform.h"

struct conform_cases;
struct conform_custom;
struct conform_options;

/* Adds cases of the custom ops of a host with these settings: of those that have a decomposition
 * and results; of others one that is skipped.  False, with a reason, without memory or a child, or
 * where that crashes.  `*out` keeps what the cases point to, also then; conform_customs_free once
 * they are done with. */
bool conform_customs_add(const struct conform_options *options, struct conform_cases *cases,
                         struct conform_custom **out, char reason[CONFORM_REASON]);
void conform_customs_free(struct conform_custom *list);

#endif
