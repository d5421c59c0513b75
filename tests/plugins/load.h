/* SPDX-License-Identifier: Apache-2.0 */
/* Where a rig finds its plugin. */
#ifndef PLUGINS_LOAD_H
#define PLUGINS_LOAD_H

#include <frit/plugin.h>

/* The plugin that is linked into the program, whose allocations can be made to fail
 * (failing_alloc.h); without one the built libfrit-NAME.so. */
const frit_plugin *load_plugin(const char *name);

#endif
