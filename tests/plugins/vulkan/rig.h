/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest host that the driver can live in.  The validation layers, where they are installed,
 * run in every test unless it says otherwise, and what they say fails it. */
#ifndef VULKAN_RIG_H
#define VULKAN_RIG_H

#include "unit.h"

#include <stdatomic.h>
#include <stdbool.h>

#include <frit/backend.h>
#include <frit/plugin.h>

struct rig {
    const char *loader; /* options; NULL: the default */
    const char *staging, *dump;
    bool plain; /* without validation layers */
    /* What the plugin keeps between processes: its last bytes, how often it asked and gave. */
    void *kept;
    uint64_t n_kept;
    int gets, puts;
    const frit_plugin *plugin;
    void *instance;
    const frit_backend *backend;
    void *device;
    int refuse;          /* > 0: the allocation that many from now on finds no memory */
    atomic_int live;     /* pieces of host memory that the plugin holds */
    atomic_int messages; /* logged */
    frit_host_root root;
    frit_err err;
};

/* Of device_open: the device is all the driver's, and nobody listens. */
extern const frit_open_params rig_params;

/* 0, or what a program ends with that skips its tests: there is no device, and why is printed. */
int rig_skips(void);

/* The plugin alone, and what its open says; the same, and it must open; its device 0. */
frit_status rig_load(struct rig *rig);
void rig_open_plugin(struct rig *rig);
void rig_open_device(struct rig *rig);
/* Both, and back: every piece of host memory must be returned, nothing may have been logged. */
void rig_open(struct rig *rig);
void rig_close(struct rig *rig);

/* A buffer; a whole buffer written and read, and waited for. */
frit_allocation rig_alloc(struct rig *rig, uint64_t bytes);
void rig_write(struct rig *rig, void *memory, uint64_t offset, const void *from, uint64_t bytes);
void rig_read(struct rig *rig, void *memory, uint64_t offset, void *into, uint64_t bytes);
/* Submits and waits. */
void rig_run(struct rig *rig, const frit_cmd *cmds, uint32_t n);
uint64_t rig_submit(struct rig *rig, const frit_cmd *cmds, uint32_t n);
void rig_wait(struct rig *rig, uint64_t value);

#endif
