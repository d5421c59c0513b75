/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins of one host: found, loaded, asked for their devices; and why the others are not there.
 *
 * Built once by registry_open, constant afterwards.  Threads: any after that. */
#ifndef LOAD_REGISTRY_H
#define LOAD_REGISTRY_H

#include <stdbool.h>

#include <frit/backend.h>
#include <frit/plugin.h>

#include "base/str.h"
#include "conf/conf.h"

/* A plugin file that was looked at. */
struct plugin {
    const char *path;    /* absolute real path; as configured if there is no such file */
    const char *origin;  /* why it was looked at */
    char id[48];         /* "" while unknown */
    const char *version; /* "" while unknown */
    uint32_t reason;     /* FRIT_REASON_*; 0 = loaded */
    const char *detail;  /* in words, "" if none */
    int64_t priority;
    void *instance;
    const frit_plugin *root;
    /* The driver's table, copied over its declared size, absent optional slots NULL; all zero without a backend. */
    frit_backend backend;
    char driver[48]; /* driver name, "" without a backend */
    uint32_t driver_reason; /* why there are no devices */
    const char *driver_detail;
    uint32_t n_devices;
    frit_device_info *devices; /* n_devices, filled over the driver's declared size */
};

/* A device in the order of preference. */
struct device_entry {
    const struct plugin *plugin;
    const frit_device_info *info;
    char name[64]; /* "reference:0" */
};

struct registry;

/* FRIT_REASON_NOT_FOUND and so on. */
enum {
#define FRIT_REASON(value, NAME, name, meaning) FRIT_REASON_##NAME = (value),
#include <frit/reasons.def>
    FRIT_REASON_LIMIT
};
const char *reason_name(uint32_t reason);
const char *reason_meaning(uint32_t reason);

/* Fails only where memory is out or a plugin marked critical is unusable.  `conf` outlives the registry. */
frit_status registry_open(const struct conf *conf, struct registry **out, frit_err *err);
/* Closes the instances; nothing is unloaded. */
void registry_close(struct registry *registry);

uint32_t registry_n_plugins(const struct registry *registry);
const struct plugin *registry_plugin_at(const struct registry *registry, uint32_t index);
uint32_t registry_n_devices(const struct registry *registry);
const struct device_entry *registry_device_at(const struct registry *registry, uint32_t index);

/* The first usable device of a list such as "vulkan:0, uuid..., cpu, auto"; each skipped entry is logged at
 * warn with its reason.  The text of a failure lists every entry with its reason and what to do. */
frit_status registry_pick(const struct registry *registry, const char *list, const struct device_entry **out,
                          frit_err *err);
/* Says in words why `name` is usable or not. */
void registry_why(const struct registry *registry, const char *name, struct str *out);

/* The root handed to plugins in `open`, with core and options tables; used by registry.c. */

#endif
