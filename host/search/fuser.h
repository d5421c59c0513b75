/* SPDX-License-Identifier: Apache-2.0 */
/* The fusers of all plugins that target one device: prototypes, made when the device is opened.
 * Constant after that.  Threads: any. */
#ifndef SEARCH_FUSER_H
#define SEARCH_FUSER_H

#include "load/registry.h"
#include "search/search.h"

struct fusers {
    struct fuser *list; /* in order of preference: plugins by priority and id, then as each said */
    uint32_t count, room;
    struct fuser_device *devices; /* what the plugins were told of the device */
};

/* `self`: what the driver's device_open gave.  A plugin that fails to give its fusers is left out
 * with a warning; only memory makes this fail. */
frit_status fusers_create(struct fusers **out, const struct registry *registry,
                          const struct device_entry *entry, void *self, frit_err *err);
void fusers_destroy(struct fusers *fusers); /* NULL does nothing */

#endif
