/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this driver share: the instance, the device, its buffers and its programs. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <stdbool.h>

#include <frit/backend.h>

#include "rows.h"
#include "util/budget.h"
#include "util/plug.h"
#include "util/serial.h"

#define REF_VERSION "0.1.0"

/* One per host. */
struct instance {
    struct plug plug;
    uint64_t memory_bytes; /* option: what a device may hold, 0 = no cap */
};

struct device {
    const struct instance *instance;
    struct budget budget; /* bytes in buffers */
    struct serial queue;
};

/* The header of a block of memory; the bytes follow, aligned as asked for. */
struct buffer {
    struct serial_memory memory;
};

struct program {
    const struct instance *instance;
    const struct row *row;
    frit_candidate candidate;
    uint32_t n_in;
    uint32_t n_out;
    uint32_t n_scalars;        /* scalar operands */
    uint32_t n_launch_scalars; /* with the REAL attributes and what the host adds */
    uint32_t *operand_dtype;   /* of each input, as it is used; 0 if absent */
    uint8_t *operand_kind;     /* of each input: FRIT_OPERAND_* */
    void *attrs;               /* the row's record */
};

/* Slots of frit.backend/1; contracts there. */
frit_status device_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err);
frit_status device_open(void *instance, uint32_t index, void **out, frit_err *err);
void device_close(void *self);

frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
void buffer_free(void *self, void *memory);

frit_status queue_write(void *self, const frit_transfer *to, const void *from, uint64_t *value,
                        frit_err *err);
frit_status queue_read(void *self, const frit_transfer *from, void *into, uint64_t *value,
                       frit_err *err);
frit_status queue_submit(void *self, const frit_cmd *cmds, uint32_t count, uint32_t stride,
                         const frit_point *waits, uint32_t n_waits, uint64_t *value, frit_err *err);
frit_status queue_wait(void *self, uint64_t value, uint64_t timeout_ns, frit_failure *failure,
                       frit_err *err);

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err);
frit_status program_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);
frit_status queue_kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                              void **kernel, frit_err *err);
void queue_kernel_unload(void *self, void *kernel);

/* Slot of frit.native/1. */
void *native_get(void *device, void *object, frit_str name);

/* Slots of struct serial_driver.  What passed the check cannot fail. */
frit_status program_check(void *device, const frit_launch *launch, frit_err *err);
frit_status program_run(void *device, const frit_launch *launch, frit_err *err);
frit_str program_name(const frit_launch *launch);

#endif
