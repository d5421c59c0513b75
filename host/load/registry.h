/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins of one host: found, loaded, asked for their devices; and why the others are not
 * there.
 *
 * Built once by registry_open, constant afterwards.  Threads: any after that. */
#ifndef LOAD_REGISTRY_H
#define LOAD_REGISTRY_H

#include <stdbool.h>

#include <frit/fuser.h>
#include <frit/native.h>
#include <frit/plugin.h>

#include "base/str.h"
#include "conf/conf.h"

/* A plugin file that was looked at, or a section whose plugin was not found. */
struct plugin {
    const char *path;   /* absolute real path; as configured if there is no such file, "" if none */
    const char *origin; /* why it was looked at */
    char id[48];        /* "" while unknown */
    char version[64];   /* "" while unknown */
    uint32_t reason;    /* FRIT_REASON_*; 0 = loaded */
    uint32_t driver_reason; /* why there are no devices */
    char detail[512];       /* `reason` in words, "" if there is nothing to add */
    char
        driver_detail[512]; /* `driver_reason` in words, or what a plugin without a driver offers */
    int64_t priority;
    const frit_plugin *root; /* NULL until both sides agreed */
    bool opened;             /* `instance` is meant; it may be NULL */
    void *instance;
    /* The plugin's tables, checked, copied over their declared sizes, absent optional slots NULL;
     * all zero where the plugin does not offer them. */
    frit_backend backend;
    frit_fuser_table fusers;
    frit_native_table native;
    char driver[48]; /* driver name, "" without a backend */
    /* What the driver said, checked and made plain: numbers 0.., alignment and heap defaults filled
     * in, unknown types FRIT_DEVICE_UNKNOWN, texts copied and terminated with a ptr that is never
     * NULL. */
    uint32_t n_devices;
    frit_device_info *devices;
};

/* A device in the order of preference. */
struct device_entry {
    const struct plugin *plugin;
    const frit_device_info *info; /* `reason` not 0: can be seen but not used */
    char name[64];                /* "reference:0" */
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

/* Fails only where memory is out or a plugin marked critical is unusable.  `conf` outlives the
 * registry. */
frit_status registry_open(const struct conf *conf, struct registry **out, frit_err *err);
/* Closes the instances; nothing is unloaded.  NULL does nothing. */
void registry_close(struct registry *registry);

uint32_t registry_n_plugins(const struct registry *registry);
const struct plugin *registry_plugin_at(const struct registry *registry, uint32_t index);
/* The section of the configuration that is about the plugin, NULL if there is none. */
const struct conf_plugin *registry_section(const struct registry *registry,
                                           const struct plugin *plugin);
/* Devices usable or not, in the order of preference: discrete, accelerator, integrated, processor,
 * software, unknown; then priority, highest first; then plugin id; then number. */
uint32_t registry_n_devices(const struct registry *registry);
const struct device_entry *registry_device_at(const struct registry *registry, uint32_t index);

/* The first usable device of a list such as "vulkan:0, hip:uuid=5a1f, cpu, auto": a driver's own
 * order of preference where only the driver is named, the start of a stable id if no other device
 * of the driver has it.  Each skipped entry is logged at warn with its reason.  A malformed list is
 * FRIT_INVALID, a list without a usable device FRIT_UNSUPPORTED; the text has every entry with its
 * reason and what to do.  Without `err` it is only a question, and nothing is logged. */
frit_status registry_pick(const struct registry *registry, const char *list,
                          const struct device_entry **out, frit_err *err);
/* FRIT_INVALID for a malformed list, whatever devices there are. */
frit_status registry_check_list(const char *list, frit_err *err);
/* Says in words, a line per finding, why a device, driver or plugin is usable or not. */
void registry_why(const struct registry *registry, const char *name, struct str *out);

#endif
