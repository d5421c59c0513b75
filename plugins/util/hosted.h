/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A device on host memory that runs commands inside of submit: what such a device of a driver
 * begins with, and the slots of frit.backend/1, frit.native/1 and frit.profile/1 that then need
 * nothing of the driver.
 *
 * `self` of the slots is the device, whose first member is the struct hosted.  Threads: as the
 * slots say. */
#ifndef UTIL_HOSTED_H
#define UTIL_HOSTED_H

#include "util/budget.h"
#include "util/serial.h"

struct hosted {
    const struct plug *plug;
    struct budget budget; /* bytes in buffers */
    struct serial queue;  /* the first one */
};

/* `ctx`: of the first queue.  `memory_bytes`: what its buffers may hold together, 0 = no cap. */
void hosted_init(struct hosted *hosted, const struct plug *plug, const struct serial_driver *driver,
                 void *ctx, uint64_t memory_bytes);
void hosted_fini(struct hosted *hosted);

/* Bytes of the machine's memory; 0 where the system does not say. */
uint64_t hosted_machine_bytes(void);
/* Bytes of the last level of the processors' caches; 0 where the system does not say. */
uint64_t hosted_cache_bytes(void);

frit_status hosted_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
/* For drivers whose `free` is hosted_free, or looks at is_imported as that does. */
frit_status hosted_import(void *self, const frit_import_desc *desc, frit_allocation *out,
                          frit_err *err);
void hosted_free(void *self, frit_memory *memory);
void *hosted_native(void *self, frit_memory *memory, frit_str name);

frit_status hosted_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                         frit_err *err);
frit_status hosted_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                        frit_err *err);
frit_status hosted_submit(void *self, frit_queue *queue, const frit_cmd *cmds, uint32_t count,
                          uint32_t stride, const frit_point *waits, uint32_t n_waits,
                          uint64_t *value, frit_err *err);
frit_status hosted_wait(void *self, frit_queue *queue, uint64_t value, uint64_t timeout_ns,
                        frit_failure *failure, frit_err *err);
frit_status hosted_clock(void *self, frit_clock *out, frit_err *err);
frit_status hosted_kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                               frit_kernel **kernel, frit_err *err);
void hosted_kernel_unload(void *self, frit_kernel *kernel);

#endif
