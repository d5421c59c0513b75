/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this driver share: the instance, the device, its buffers, and compiled code. */
#ifndef CPU_H
#define CPU_H

#include <frit/backend.h>
#include <frit/fuser.h>

#include "emit/tile/tile.h"
#include "kernels.h"
#include "util/budget.h"
#include "util/plug.h"
#include "util/serial.h"

#define CPU_VERSION "0.1.0"

/* One per host.  Constant once open. */
struct instance {
    struct plug plug;
    const frit_host_exec *exec; /* NULL: the calling thread works alone */
    uint32_t threads;
    uint64_t memory_bytes; /* option: what a device may hold, 0 = no cap */
    enum tile_level level; /* option: instruction set */
    char name[96];         /* of the processor */
    char fingerprint[64];
};

/* What a launch needs beside its arguments; used by submit alone, kept between launches. */
struct room {
    uint64_t *words;
    void **args;
    uint32_t n_words, n_args;
    size_t scratch_bytes;
    void **scratch; /* per thread */
};

struct device {
    const struct instance *instance;
    struct budget budget; /* bytes in buffers */
    struct kernels_device kernels;
    struct serial queue;
    struct room room;
};

struct buffer {
    struct serial_memory memory;
};

/* A module made ready to run.  Immutable; any thread. */
struct phase_code {
    struct tile_code *tile;
    uint64_t work; /* instructions of a group */
};

struct module_code {
    const struct instance *instance;
    size_t scratch; /* bytes that a thread needs */
    uint32_t n_phases;
    struct phase_code phases[];
};

/* Slots of frit.backend/1 and frit.native/1; contracts there. */
frit_status device_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err);
frit_status device_open(void *instance, uint32_t index, void **out, frit_err *err);
void device_close(void *self);

frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
void buffer_free(void *self, void *memory);
void *native_get(void *device, void *object, frit_str name);

frit_status queue_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                        frit_err *err);
frit_status queue_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                       frit_err *err);
frit_status queue_submit(void *self, const frit_cmd *cmds, uint32_t count, uint32_t stride,
                         const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err);
frit_status queue_wait(void *self, uint64_t value, uint64_t timeout_ns, frit_failure *failure,
                       frit_err *err);
frit_status queue_kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                              void **kernel, frit_err *err);
void queue_kernel_unload(void *self, void *kernel);

frit_status op_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                        uint64_t *bits, frit_err *err);
frit_status op_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);
extern const frit_fuser_table fuser_table;

/* Slots of struct serial_driver: programs of the kernel library. */
frit_status launch_check(void *device, const frit_launch *launch, frit_err *err);
frit_status launch_run(void *device, const frit_launch *launch, frit_err *err);
frit_str launch_name(const frit_launch *launch);
void room_fini(struct room *room, const struct instance *instance);

/* Slots of struct kernels_device; `self` is the instance. */
frit_status module_compile(void *self, const struct kir_module *module, const uint8_t *digest,
                           const frit_cancel *cancel, void **code, frit_err *err);
void module_release(void *self, void *code);

#endif
