/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin's backend. */
#ifndef LOAD_DRIVER_H
#define LOAD_DRIVER_H

#include <frit/status.h>

struct arena;
struct plugin;

/* driver.c: takes the backend's table and the driver's name. */
frit_status driver_take(struct plugin *plugin, const void *table);
/* driver.c: lists its devices, which sets driver_reason and refuses nothing. */
frit_status driver_list(struct arena *arena, struct plugin *plugin);

#endif
