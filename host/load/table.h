/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a plugin's tables. */
#ifndef LOAD_TABLE_H
#define LOAD_TABLE_H

#include <frit/custom.h>
#include <frit/status.h>

struct plugin;

/* table.c: copies and checks one table of a plugin. */
frit_status table_take_backend(struct plugin *plugin, const void *table);
frit_status table_take_fusers(struct plugin *plugin, const void *table);
frit_status table_take_extmem(struct plugin *plugin, const void *table);
frit_status table_take_native(struct plugin *plugin, const void *table);
frit_status table_take_capture(struct plugin *plugin, const void *table);
frit_status table_take_profile(struct plugin *plugin, const void *table);
frit_status table_take_collective(struct plugin *plugin, const void *table);
frit_status table_take_ops(struct plugin *plugin, const void *table, frit_ops_table *out);

#endif
