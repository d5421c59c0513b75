/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal host for drivers of GPUs; RIG_DRIVER, a definition of the build, is the driver's name.
 * The drivers hip and cuda run on the fake runtime RIG_LIBRARY with the compiler RIG_COMPILER,
 * files of tests/fake in the build tree.  vulkan has the validation layers if they are installed,
 * unless `no_validation` is set; a message of the layers fails the test. */
#ifndef GPU_RIG_H
#define GPU_RIG_H

#include "unit.h"

#include <stdatomic.h>
#include <stdbool.h>

#include <frit/backend.h>
#include <frit/plugin.h>

struct rig {
    const char *loader, *staging, *dump, *library, *compiler; /* options; NULL: the default */
    const char *products;                                     /* likewise; NULL: "none" */
    bool no_validation;
    int64_t min_product; /* an option */
    void *cached;        /* the host's disk cache: the last bytes that the plugin put */
    uint64_t n_cached;
    int gets, puts; /* calls of the disk cache */
    const frit_plugin *plugin;
    void *instance;
    const frit_backend *backend;
    void *device;
    int fail_alloc;      /* > 0: counts allocations down; the one that makes it 0 fails */
    atomic_int n_allocs; /* host allocations that the plugin has not freed */
    atomic_int messages; /* that the plugin logged, except for debugging */
    frit_host_root root;
    frit_err err;
};

/* Parameters of device_open: no native objects, no callback. */
extern const frit_open_params rig_params;

/* Exit status of a test program that has to be skipped because there is no device; prints the
 * reason. 0: there is a device. */
int rig_skips(void);

/* Opens the plugin and returns its status; opens the plugin, or fails the test; opens device 0, or
 * fails the test. */
frit_status rig_load(struct rig *rig);
void rig_open_plugin(struct rig *rig);
void rig_open_device(struct rig *rig);
/* Opens plugin and device; closes both, and fails the test if host memory is leaked or a message
 * was logged. */
void rig_open(struct rig *rig);
void rig_close(struct rig *rig);

/* Allocates a buffer, in the first or another heap; writes to one; reads from one and waits.  Each
 * fails the test on an error. */
frit_allocation rig_alloc(struct rig *rig, uint64_t bytes);
frit_allocation rig_alloc_in(struct rig *rig, uint32_t heap, uint64_t bytes);
void rig_write(struct rig *rig, void *memory, uint64_t offset, const void *from, uint64_t bytes);
void rig_read(struct rig *rig, void *memory, uint64_t offset, void *into, uint64_t bytes);
/* Submits commands and waits; submits; waits.  Each fails the test on an error. */
void rig_run(struct rig *rig, const frit_cmd *cmds, uint32_t n);
uint64_t rig_submit(struct rig *rig, const frit_cmd *cmds, uint32_t n);
void rig_wait(struct rig *rig, uint64_t value);

#endif
