/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins of one host: found and loaded; and why the others are not there.
 *
 * A driver's devices are enumerated when they are first needed, so that using one driver starts no
 * other's runtime; they are enumerated once.  All else is constant after registry_open.
 * Threads: any after that. */
#ifndef LOAD_REGISTRY_H
#define LOAD_REGISTRY_H

#include <stdbool.h>

#include <frit/backend.h>
#include <frit/capture.h>
#include <frit/collective.h>
#include <frit/custom.h>
#include <frit/extmem.h>
#include <frit/fuser.h>
#include <frit/native.h>
#include <frit/plugin.h>
#include <frit/profile.h>

/* A custom op that a plugin lists. */
struct plugin_op {
    char name[FRIT_CUSTOM_NAME + 1];
    uint32_t id;     /* 0: refused */
    const char *why; /* it was refused, "" if it was not */
};

/* How a plugin was tried before it was loaded. */
enum plugin_probe {
    PLUGIN_UNPROBED,
    PLUGIN_TRUSTED, /* built with this library: not tried */
    PLUGIN_PROBED,  /* now */
    PLUGIN_RECALLED /* earlier, and the result was kept */
};

struct conf;
struct conf_plugin;
struct elf_identity;
struct search_dir;
struct service;
struct suspect;
struct job_queue;

/* A plugin file that was looked at, or a section whose plugin was not found. */
struct plugin {
    struct service *service;             /* the host's side of it; NULL if it was not opened */
    const struct elf_identity *identity; /* of the file; NULL: it was not looked at in full */
    struct suspect *suspect;             /* NULL: no process died in it */
    const char *path;   /* absolute real path; as configured if there is no such file, "" if none */
    const char *origin; /* why it was looked at */
    char id[48];        /* "" while unknown */
    char version[64];   /* "" while unknown */
    char build_id[72];  /* of its file, hexadecimal, "" if there is none */
    uint32_t reason;    /* FRIT_REASON_*; 0 = loaded */
    uint32_t driver_reason; /* why there are no devices; with `driver_detail` and `devices` once
                               it was enumerated */
    char detail[512];       /* `reason` in words, "" if there is nothing to add */
    char
        driver_detail[512]; /* `driver_reason` in words, or what a plugin without a driver offers */
    enum plugin_probe probe;
    int64_t priority;
    const frit_plugin *root; /* NULL until both sides agreed */
    bool opened;             /* `instance` is meant; it may be NULL */
    void *instance;
    /* The plugin's tables, checked, copied over their declared sizes, absent optional slots NULL;
     * all zero where the plugin does not offer them. */
    frit_backend backend;
    frit_fuser_table fusers;
    frit_native_table native;
    frit_extmem_table extmem;
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
    bool enumerated;
    uint32_t n_devices;
    frit_device_info *devices;
    struct device_entry *entries; /* one per device */
};

/* A device in the order of preference. */
struct device_entry {
    const struct plugin *plugin;
    const frit_device_info *info; /* `reason` not 0: can be seen but not used */
    char name[64];                /* "reference:0" */
    const char *compute;          /* of registry_keep_compute; NULL: none yet */
};

struct registry;

/* The queues of background jobs: whose threads have the program's priority; or less, for what must
 * not take the processors from what computes on them. */
enum registry_jobs { REGISTRY_USUAL, REGISTRY_YIELDING, REGISTRY_JOBS };

/* Fails only where memory is out or a plugin marked critical is unusable.  `conf` outlives the
 * registry. */
frit_status registry_open(const struct conf *conf, struct registry **out, frit_err *err);
/* As registry_open, of these files and no others.  Paths are absolute and outlive the registry. */
frit_status registry_open_files(const struct conf *conf, const char *const *paths, uint32_t n,
                                struct registry **out, frit_err *err);
/* Closes the instances; nothing is unloaded.  NULL does nothing. */
void registry_close(struct registry *registry);

struct job_queue *registry_jobs(const struct registry *registry, enum registry_jobs which);
uint32_t registry_n_plugins(const struct registry *registry);
const struct plugin *registry_plugin_at(const struct registry *registry, uint32_t index);
/* The folders that were searched for plugins, in order; NULL beyond the last. */
const struct search_dir *registry_dir_at(const struct registry *registry, uint32_t index);
/* The section of the configuration that is about the plugin, NULL if there is none. */
const struct conf_plugin *registry_section(const struct registry *registry,
                                           const struct plugin *plugin);
/* Whether a plugin of this host offers the custom op. */
bool registry_has_op(const struct registry *registry, uint32_t op);

/* The loaded plugin of a driver name, NULL if there is none. */
struct plugin *driver_find(const struct registry *registry, const char *driver);
/* A plugin of this id, or from the file of section [plugin.NAME], or from file libfrit-NAME.so,
 * loaded or not; from `*index` on, which moves. */
const struct plugin *plugin_next(const struct registry *registry, const char *name,
                                 uint32_t *index);

/* Forgets the deaths of each of these plugins (load/quarantine.h); this registry stays as it is.
 * FRIT_INVALID: there is none, or no process died in it. */
frit_status registry_forgive(const struct registry *registry, const char *name, frit_err *err);

#endif
