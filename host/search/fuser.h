/* SPDX-License-Identifier: Apache-2.0 */
/* The fusers of all plugins for one device: prototypes, created when the device is opened. Constant
 * afterwards.  Thread-safe. */
#ifndef SEARCH_FUSER_H
#define SEARCH_FUSER_H

#include "search/search.h"

struct device_entry;
struct registry;

struct fusers {
    struct fuser
        *list; /* in order of preference: plugins by priority and id, then in the plugin's order */
    uint32_t count, capacity;
    struct fuser_device *devices; /* the device as each plugin sees it */
};

/* `self`: the driver's device.  `exclude`: fusers that are left out, "PLUGIN/NAME, ...", "none" or
 * NULL.  A plugin that fails to create its fusers is skipped with a warning; fails only if out of
 * memory. */
frit_status fusers_create(struct fusers **out, const struct registry *registry,
                          const struct device_entry *entry, void *self, const char *exclude,
                          frit_err *err);
/* FRIT_INVALID unless the list has the form of `exclude`. */
frit_status fusers_check_list(const char *exclude, frit_err *err);
void fusers_destroy(struct fusers *fusers); /* NULL does nothing */

#endif
