/* SPDX-License-Identifier: Apache-2.0 */
/* Where plugins are looked for. */
#ifndef LOAD_FIND_H
#define LOAD_FIND_H

#include <frit/status.h>

struct registry;

/* find.c: fills candidates and dirs. */
frit_status find_candidates(struct registry *registry);

#endif
