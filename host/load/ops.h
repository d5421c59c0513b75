/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin's custom ops. */
#ifndef LOAD_OPS_H
#define LOAD_OPS_H

#include <frit/status.h>

struct arena;
struct plugin;

/* ops.c: takes the table of custom ops.  An op that cannot be is refused by itself. */
frit_status ops_take(struct arena *arena, struct plugin *plugin, const void *table);

#endif
