/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A device on host memory (util/memory.h) whose queues run commands inside of submit, in order, on
 * the thread of its caller: the slots of frit.backend/1, frit.native/1 and frit.profile/1 that need
 * nothing of the driver but its launches.
 *
 * `self` of the slots is the driver's device, whose first member is the struct hosted.  Each queue
 * beside the first is a struct of the driver whose first member is a struct hosted_queue; its
 * address is the frit_queue.
 *
 * Invalid commands are found before the first command of their submit runs.  Commands that fail
 * later (a kernel of another plugin, a launch that lacks memory) are kept for wait.  Every value
 * that submit returned is reached; a submit that waits for another queue blocks until then.
 * Threads: as the slots say. */
#ifndef UTIL_HOSTED_H
#define UTIL_HOSTED_H

#include <stdatomic.h>

#include <frit/backend.h>
#include <frit/native.h>
#include <frit/profile.h>

#include "util/budget.h"
#include "util/progress.h"

enum { HOSTED_QUEUES = 16 }; /* of a device at most */

/* What the driver does with a LAUNCH; `ctx` is that of the queue. */
struct hosted_driver {
    /* Negative with a text for a launch that `run` cannot take; its arguments and workspace lie in
     * their memory. */
    frit_status (*check)(void *ctx, const frit_launch *launch, frit_err *err);
    frit_status (*run)(void *ctx, const frit_launch *launch, frit_err *err);
    /* Of the program of a launch that passed the check. */
    frit_str (*name)(const frit_launch *launch);
};

struct hosted_queue {
    struct hosted *device;
    void *ctx; /* first argument of the driver's functions */
    struct progress progress;
};

struct hosted {
    const struct plug *plug;
    const struct hosted_driver *driver;
    struct budget budget; /* bytes in buffers */
    struct hosted_queue first;
    _Atomic(struct hosted_queue *) more[HOSTED_QUEUES - 1]; /* the others; NULL: free */
};

/* `ctx`: of the first queue.  `memory_bytes`: what its buffers may hold together, 0 = no cap. */
void hosted_init(struct hosted *hosted, const struct plug *plug, const struct hosted_driver *driver,
                 void *ctx, uint64_t memory_bytes);
void hosted_fini(struct hosted *hosted);

/* A queue beside the first.  FRIT_UNSUPPORTED with a text where the device has HOSTED_QUEUES. */
frit_status hosted_queue_init(struct hosted_queue *queue, struct hosted *device, void *ctx,
                              frit_err *err);
void hosted_queue_fini(struct hosted_queue *queue);

/* The heap of such a device: `memory_bytes` or, if that is 0, the machine's memory. */
frit_heap hosted_heap(uint64_t memory_bytes);
/* Sets what follows from the slots of this file: capabilities, kernel formats, the size of the
 * processors' last cache, and the one heap, which is the caller's. */
void hosted_describe(frit_device_info *out, const frit_heap *heap);
/* Bytes of the last level of the processors' caches; 0 where the system does not say. */
uint64_t hosted_cache_bytes(void);

/* Where element 0 of an argument lies, NULL if out of memory. */
char *hosted_element(const frit_arg *arg);

/* ---- slots ---- */

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
/* Ticks are the host's nanoseconds. */
frit_status hosted_clock(void *self, frit_clock *out, frit_err *err);
frit_status hosted_kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                               frit_kernel **kernel, frit_err *err);
void hosted_kernel_unload(void *self, frit_kernel *kernel);

/* The initializers of a frit_backend by the slots above, but for `alloc`. */
#define HOSTED_BACKEND_SLOTS                                                         \
    .struct_size = sizeof(frit_backend), .write = hosted_write, .read = hosted_read, \
    .submit = hosted_submit, .wait = hosted_wait, .kernel_load = hosted_kernel_load, \
    .kernel_unload = hosted_kernel_unload, .free = hosted_free, .import_host = hosted_import

extern const frit_native_table hosted_native_table;
extern const frit_profile_table hosted_profile_table;

#endif
