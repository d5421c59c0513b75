/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of host/load: how a file becomes a plugin.
 *
 * Stages in order, the first that refuses decides: find, check the file, load, negotiate, options,
 * open, backend.  A stage returns FRIT_OK to go on, FRIT_UNSUPPORTED when the plugin is
 * refused (reason and words are then in the plugin), FRIT_NO_HOST_MEMORY when nothing can go on.
 * Threads: one per registry while it opens, any number of registries. */
#ifndef LOAD_LOAD_H
#define LOAD_LOAD_H

#include <pthread.h>

#include "base/arena.h"
#include "load/registry.h"

/* A file to look at. */
struct candidate {
    const char *path;
    const char *origin;
    const struct conf_plugin *section; /* that names the file, NULL if a directory was searched */
};

/* A directory that was searched. */
struct search_dir {
    const char *path;
    const char *origin;
    const char *trouble; /* why it could not be read, NULL if it was */
    uint32_t n_files;    /* candidates in it */
};

/* What a plugin gets from its host: the root, and its options. */
struct service;
struct job_queue;

struct registry {
    struct arena arena;
    const struct conf *conf;
    struct job_queue *jobs[REGISTRY_JOBS];
    uint32_t n_candidates, candidates_room, n_dirs;
    uint32_t n_plugins, n_devices;
    struct candidate *candidates;
    struct search_dir *dirs;
    struct plugin *plugins;
    pthread_mutex_t lock;                /* of what drivers say of their devices */
    const struct device_entry **devices; /* of those that were asked, in order */
};

/* find.c: fills candidates and dirs. */
frit_status find_candidates(struct registry *registry);

/* elf.c: FRIT_REASON_NONE, NOT_FOUND, NOT_A_FILE, NOT_ELF or LOAD_FAILED with words in `text`.
 * Reads the file's headers only. */
uint32_t elf_check(const char *path, char *text, size_t size);

/* load.c: notes why and returns FRIT_UNSUPPORTED. */
frit_status plugin_refuse(struct plugin *plugin, uint32_t reason, const char *format, ...)
    FRIT_PRINTF(3, 4);
/* All stages.  On refusal the instance is closed again. */
frit_status plugin_load(struct registry *registry, const struct candidate *candidate,
                        struct plugin *plugin);
void plugin_close(struct plugin *plugin);

/* An option of a plugin with its effective value. */
struct option {
    uint32_t type; /* FRIT_OPTION_* */
    const char *name;
    const char *text; /* as it stands in the file */
    int64_t i64;      /* I64, and 0 or 1 of BOOL */
    double f64;       /* F64 */
};

/* option.c: the schema of plugin->root (n_options of them) merged with the section (may be NULL).
 */
frit_status options_merge(struct arena *arena, struct plugin *plugin,
                          const struct conf_plugin *section, const struct option **out);
const char *option_type_name(uint32_t type);

/* What the host's tables lend, by its configuration. */
struct lent {
    int64_t threads;        /* of the team; 0: as many as the process has processors */
    struct job_queue *jobs; /* for what plugins spawn */
    const char *artefacts;  /* folder; NULL: nothing is kept */
    uint64_t artefact_bytes;
};

/* service.c: merges the section (may be NULL) with the schema of plugin->root. */
frit_status service_create(struct arena *arena, struct plugin *plugin,
                           const struct conf_plugin *section, const struct lent *lent,
                           struct service **out);
const frit_host_root *service_root(const struct service *service);
/* Cancels the plugin's tasks and waits for those that began.  NULL does nothing. */
void service_end_tasks(const struct service *service);

/* table.c: copies and checks one table of a plugin. */
frit_status table_take_backend(struct plugin *plugin, const void *table);
frit_status table_take_fusers(struct plugin *plugin, const void *table);
frit_status table_take_native(struct plugin *plugin, const void *table);
frit_status table_take_capture(struct plugin *plugin, const void *table);
frit_status table_take_profile(struct plugin *plugin, const void *table);
frit_status table_take_collective(struct plugin *plugin, const void *table);
frit_status table_take_ops(struct plugin *plugin, const void *table, frit_ops_table *out);

/* ops.c: takes the table of custom ops.  An op that cannot be is refused by itself. */
frit_status ops_take(struct arena *arena, struct plugin *plugin, const void *table);

/* driver.c: takes the backend's table and the driver's name. */
frit_status driver_take(struct plugin *plugin, const void *table);
/* driver.c: lists its devices, which sets driver_reason and refuses nothing. */
frit_status driver_list(struct arena *arena, struct plugin *plugin);

/* registry.c, under the lock: what a plugin says of its devices is known afterwards, and theirs are
 * among `devices`.  FRIT_NO_HOST_MEMORY: as before. */
frit_status ask_plugin(struct registry *registry, struct plugin *plugin);
frit_status ask_all(struct registry *registry);

/* Copies a plugin's text into `out`, cut to fit, control characters as blanks. */
void plugin_text(frit_str text, char *out, size_t size);

/* pick.c: one entry of a device list. */
struct device_request {
    char driver[48]; /* "auto" for all */
    bool has_index;
    uint32_t index;
    char stable_id[128]; /* start of it, "" if not asked for */
};

/* FRIT_INVALID with what is allowed. */
frit_status request_parse(const char *text, size_t length, struct device_request *out,
                          frit_err *err);
/* The device that is meant, or a reason other than NONE, NULL, and in `why` the reason's name and
 * words.  Under the lock; asks the drivers that it may be of. */
uint32_t request_find(struct registry *registry, const struct device_request *request,
                      const struct device_entry **out, struct str *why);
/* "name: words" of a reason. */
void reason_print(uint32_t reason, const char *detail, struct str *out);
/* The loaded plugin of a driver name, NULL if there is none. */
struct plugin *driver_find(const struct registry *registry, const char *driver);
/* A plugin of this id, or from the file of section [plugin.NAME], or from file libfrit-NAME.so,
 * loaded or not; from `*index` on, which moves. */
const struct plugin *plugin_next(const struct registry *registry, const char *name,
                                 uint32_t *index);

#endif
