/* SPDX-License-Identifier: Apache-2.0 */
/* Which plugin's code the process is in, for whoever finds it dead or waiting: loading, opening,
 * enumerating and closing. */
#ifndef LOAD_BREADCRUMB_H
#define LOAD_BREADCRUMB_H

#include <stdbool.h>

/* `entered`: the plugin of file `path` is about to be called; else it has returned. */
typedef void breadcrumb_sink(void *ctx, const char *path, const char *slot, bool entered);

/* Before the first registry is opened.  NULL: nobody listens. */
void breadcrumb_set_sink(breadcrumb_sink *sink, void *ctx);

void breadcrumb_enter(const char *path, const char *slot);
void breadcrumb_leave(const char *path, const char *slot);

#endif
