/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin gets from its host. */
#ifndef LOAD_SERVICE_H
#define LOAD_SERVICE_H

#include <frit/host.h>
#include <frit/status.h>

struct arena;
struct conf_plugin;
struct lent;
struct plugin;
struct service;

/* service.c: merges the section (may be NULL) with the schema of plugin->root. */
frit_status service_create(struct arena *arena, struct plugin *plugin,
                           const struct conf_plugin *section, const struct lent *lent,
                           struct service **out);
const frit_host_root *service_root(const struct service *service);
/* The space of the plugin's artefacts; NULL: it keeps none. */
const char *service_space(const struct service *service);
/* Cancels the plugin's tasks and waits for those that began.  NULL does nothing. */
void service_end_tasks(const struct service *service);
/* After the plugin is closed.  Its threads may go on using the service: they find no tasks, no
 * options and nothing kept.  NULL does nothing. */
void service_end(struct service *service);

#endif
