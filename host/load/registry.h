/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins of one host: found and loaded; and why the others are not there.
 *
 * A driver is asked for its devices when somebody wants to know them, so that using one driver
 * starts no other's runtime; what it said stays.  All else is constant after registry_open.
 * Threads: any after that. */
#ifndef LOAD_REGISTRY_H
#define LOAD_REGISTRY_H

#include <stdbool.h>

#include <frit/capture.h>
#include <frit/collective.h>
#include <frit/custom.h>
#include <frit/fuser.h>
#include <frit/native.h>
#include <frit/plugin.h>
#include <frit/profile.h>

#include "base/str.h"
#include "conf/conf.h"

/* A custom op that a plugin lists. */
struct plugin_op {
    char name[FRIT_CUSTOM_NAME + 1];
    uint32_t id;     /* 0: refused */
    const char *why; /* it was refused, "" if it was not */
};

struct service;
struct job_queue;

/* A plugin file that was looked at, or a section whose plugin was not found. */
struct plugin {
    struct service *service; /* the host's side of it; NULL if it was not opened */
    const char *path;   /* absolute real path; as configured if there is no such file, "" if none */
    const char *origin; /* why it was looked at */
    char id[48];        /* "" while unknown */
    char version[64];   /* "" while unknown */
    uint32_t reason;    /* FRIT_REASON_*; 0 = loaded */
    uint32_t driver_reason; /* why there are no devices; with `driver_detail` and `devices` once
                               it was asked: registry_ask */
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
    frit_capture_table capture;
    frit_profile_table profile;
    frit_collective_table collective;
    /* Its custom ops, in the table's order. */
    uint32_t n_ops;
    struct plugin_op *ops;
    char driver[48]; /* driver name, "" without a backend */
    /* What the driver said, checked and made plain: numbers 0.., alignment and heap defaults filled
     * in, unknown types FRIT_DEVICE_UNKNOWN, texts copied and terminated with a ptr that is never
     * NULL. */
    bool asked;
    uint32_t n_devices;
    frit_device_info *devices;
    struct device_entry *entries; /* one per device */
};

/* A device in the order of preference. */
struct device_entry {
    const struct plugin *plugin;
    const frit_device_info *info; /* `reason` not 0: can be seen but not used */
    char name[64];                /* "reference:0" */
};

struct registry;

/* The queues of background jobs: whose threads have the program's priority; or less, for what must
 * not take the processors from what computes on them. */
enum registry_jobs { REGISTRY_USUAL, REGISTRY_YIELDING, REGISTRY_JOBS };

const char *reason_name(uint32_t reason);
const char *reason_meaning(uint32_t reason);

/* Fails only where memory is out or a plugin marked critical is unusable.  `conf` outlives the
 * registry. */
frit_status registry_open(const struct conf *conf, struct registry **out, frit_err *err);
/* Closes the instances; nothing is unloaded.  NULL does nothing. */
void registry_close(struct registry *registry);

struct job_queue *registry_jobs(const struct registry *registry, enum registry_jobs which);
uint32_t registry_n_plugins(const struct registry *registry);
const struct plugin *registry_plugin_at(const struct registry *registry, uint32_t index);
/* Asks the plugin at `index` for its devices, if it was not yet.  FRIT_NO_HOST_MEMORY: it is as
 * before. */
frit_status registry_ask(struct registry *registry, uint32_t index);
/* The section of the configuration that is about the plugin, NULL if there is none. */
const struct conf_plugin *registry_section(const struct registry *registry,
                                           const struct plugin *plugin);
/* Whether a plugin of this host offers the custom op. */
bool registry_has_op(const struct registry *registry, uint32_t op);
/* Devices usable or not of all drivers, in the order of preference: discrete, accelerator,
 * integrated, processor, software, unknown; then priority, highest first; then plugin id; then
 * number.  A driver that there is no memory to ask is missing. */
uint32_t registry_n_devices(struct registry *registry);
const struct device_entry *registry_device_at(struct registry *registry, uint32_t index);
/* What lacks nothing but speed: the first usable device of type software of the driver with the
 * least priority, then plugin id, that has one; drivers behind it are not asked.  NULL: none. */
const struct device_entry *registry_plainest(struct registry *registry);

/* The first usable device of a list such as "vulkan:0, hip:uuid=5a1f, cpu, auto": a driver's own
 * order of preference where only the driver is named, the start of a stable id if no other device
 * of the driver has it.  Each skipped entry is logged at warn with its reason.  A malformed list is
 * FRIT_INVALID, a list without a usable device FRIT_UNSUPPORTED; the text has every entry with its
 * reason and what to do.  Drivers that the list gets to are asked, `auto` asks all.  Without `err`
 * it is only a question, and nothing is logged. */
frit_status registry_pick(struct registry *registry, const char *list,
                          const struct device_entry **out, frit_err *err);
/* FRIT_INVALID for a malformed list, whatever devices there are. */
frit_status registry_check_list(const char *list, frit_err *err);
/* Says in words, a line per finding, why a device, driver or plugin is usable or not. */
void registry_why(struct registry *registry, const char *name, struct str *out);

#endif
