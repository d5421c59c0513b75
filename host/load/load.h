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
struct elf_facts;

struct registry {
    struct arena arena;
    const struct conf *conf;
    struct job_queue *jobs[REGISTRY_JOBS];
    uint32_t n_candidates, candidates_capacity, n_dirs;
    uint32_t n_plugins, n_devices;
    struct candidate *candidates;
    struct search_dir *dirs;
    struct plugin *plugins;
    pthread_mutex_t lock;                /* of devices, and of what plugins hold about them */
    const struct device_entry **devices; /* of the drivers that were enumerated, in order */
};

/* load.c: notes why and returns FRIT_UNSUPPORTED. */
frit_status plugin_refuse(struct plugin *plugin, uint32_t reason, const char *format, ...)
    FRIT_PRINTF(3, 4);
/* Reads the file without running any code of it; refuses what must not be loaded. */
frit_status plugin_inspect(const struct conf *conf, const struct candidate *candidate,
                           struct plugin *plugin, struct elf_facts *facts);
/* All further stages.  On refusal the instance is closed again. */
frit_status plugin_load(struct registry *registry, const struct candidate *candidate,
                        struct plugin *plugin, const struct elf_facts *facts);
void plugin_close(struct plugin *plugin);

/* An option of a plugin with its effective value. */
struct option {
    uint32_t type; /* FRIT_OPTION_* */
    const char *name;
    const char *text; /* as written in the file */
    int64_t i64;      /* I64, and 0 or 1 of BOOL */
    double f64;       /* F64 */
};

/* What the host's tables lend, by its configuration. */
struct lent {
    int64_t threads;        /* of the team; 0: as many as the process has processors */
    struct job_queue *jobs; /* for what plugins spawn */
    const char *artefacts;  /* folder; NULL: nothing is kept */
    uint64_t artefact_bytes;
};

/* Copies a plugin's text into `out` as text_clean does. */
void plugin_text(frit_str text, char *out, size_t size);

/* pick.c: one entry of a device list. */
struct device_request {
    char driver[48]; /* "auto" for all */
    bool has_index;
    uint32_t index;
    char stable_id[128]; /* start of it, "": any */
};

#endif
