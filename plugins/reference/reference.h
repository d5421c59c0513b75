/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this driver share: the instance, the device, its buffers and its programs. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <frit/backend.h>

#include "progress.h"
#include "rows.h"

#define REF_VERSION "0.1.0"

/* One per host. */
struct instance {
    const frit_host_root *host;
    const frit_host_core *core;
    const frit_host_trace *trace; /* NULL: the host records nothing */
    uint64_t memory_bytes;        /* option: what a device may hold, 0 = no cap */
};

struct device {
    const struct instance *instance;
    _Atomic uint64_t in_use; /* bytes in buffers */
    struct progress progress;
};

/* The header of a block of memory; the bytes follow, aligned as asked for. */
struct buffer {
    char *data;
    uint64_t bytes;
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

/* Writes the caller's slot and returns `status`. */
frit_status ref_fail(const struct instance *instance, frit_err *err, frit_status status,
                     const char *format, ...) FRIT_PRINTF(4, 5);

/* Slots of frit.backend/1; contracts there. */
frit_status device_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                             uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                             frit_err *err);
frit_status device_open(void *instance, uint32_t index, void **out, frit_err *err);
void device_close(void *self);

frit_status buffer_alloc(void *self, const frit_alloc_desc *desc, frit_allocation *out,
                         frit_err *err);
void buffer_free(void *self, void *memory);
/* Whether the range lies in the buffer. */
bool buffer_holds(const struct buffer *buffer, uint64_t offset, uint64_t bytes);

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
frit_status kernel_load(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                        void **kernel, frit_err *err);
void kernel_unload(void *self, void *kernel);

/* Slot of frit.native/1. */
void *native_get(void *device, void *object, frit_str name);

/* FRIT_INVALID with a text where an argument or the workspace leaves its buffer. */
frit_status launch_check(const struct instance *instance, const char *name,
                         const frit_launch *launch, frit_err *err);
/* FRIT_INVALID with a text where the launch is not one that program_run can take. */
frit_status program_check(const struct instance *instance, const frit_launch *launch,
                          frit_err *err);
/* Runs a launch that passed program_check; cannot fail. */
void program_run(const frit_launch *launch);
/* The name of the program of a launch that passed program_check. */
const char *program_name(const frit_launch *launch);

/* The same for a DISPATCH, which can fail. */
frit_status kernel_check(const struct instance *instance, const frit_cmd *cmd, frit_err *err);
frit_status kernel_run(const frit_cmd *cmd, frit_err *err);

#endif
