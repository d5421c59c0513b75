/* SPDX-License-Identifier: Apache-2.0 */
/* Options of plugins. */
#ifndef LOAD_OPTION_H
#define LOAD_OPTION_H

#include <stdint.h>

#include <frit/status.h>

struct arena;
struct conf_plugin;
struct option;
struct plugin;

/* option.c: the schema of plugin->root (n_options of them) merged with the section (may be NULL).
 */
frit_status options_merge(struct arena *arena, struct plugin *plugin,
                          const struct conf_plugin *section, const struct option **out);
const char *option_type_name(uint32_t type);

#endif
