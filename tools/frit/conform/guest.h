/* SPDX-License-Identifier: Apache-2.0 */
/* Fusers of plugins that bring no device, on the device of a bare driver. */
#ifndef CLI_CONFORM_GUEST_H
#define CLI_CONFORM_GUEST_H

#include "conform/bare.h"

/* What a bare driver is when no guest stands in its place. */
struct guest {
    const frit_plugin *plugin;
    void *instance;
    const frit_fuser_table *fusers;
    frit_fuser_device seen;
};

/* From now on `bare->fusers`, `seen` and `instance` are the plugin's, of that path, until
 * guest_close; fusers NULL: it has none.  On failure all is as before. */
frit_status guest_open(struct bare *bare, const char *path, struct guest *driver);
/* Where the queue hangs the guest stays open, as the device does. */
void guest_close(struct bare *bare, const struct guest *driver);

#endif
