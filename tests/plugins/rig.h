/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest host that a driver can live in: memory, error texts, options, a trace, and threads
 * that do nothing. */
#ifndef PLUGINS_RIG_H
#define PLUGINS_RIG_H

#include "unit.h"

#include <stdbool.h>

#include <frit/backend.h>
#include <frit/plugin.h>

struct rig {
    const frit_plugin *plugin;
    void *instance;
    const frit_backend *backend;
    void *device;
    int64_t memory_bytes; /* answers to options; set before rig_open */
    const char *isa;      /* NULL: auto */
    const char *tier;     /* NULL: 0 */
    const char *llvm;     /* NULL: the system's */
    bool check;
    uint32_t threads;     /* 0: the host has no table of them */
    uint32_t n_split;     /* calls of parallel_for; it gives each thread a part, one by one */
    int64_t refuse;       /* > 0: the allocation that many from now on finds no memory */
    _Atomic int64_t live; /* pieces of host memory that the plugin holds */
    bool tracing;         /* spans are wanted */
    char spans[128];      /* names of those that ended, a blank before each */
    double counter;       /* last of "bytes in use" */
    frit_host_root root;
    frit_err err;
    /* Returns a table of the test in place of the rig's, with the rig as `self`; NULL: the rig's.
     * May be NULL. */
    const void *(*own_table)(frit_str id);
};

/* Of device_open: the device is all the driver's, and nobody listens. */
extern const frit_open_params rig_params;

/* Loads the built plugin that FRIT_TEST_PLUGIN names, `reference` if none, and opens it. */
frit_status rig_load(struct rig *rig);
/* The same, and its device. */
void rig_open(struct rig *rig);
/* Closes both; every piece of host memory must be back. */
void rig_close(struct rig *rig);

/* Inputs whose memory an output may take, by the spec: a bit each. */
uint64_t rig_aliases(const frit_launch_spec *spec, uint32_t output);

#endif
