/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this driver share: the instance, the device and its programs. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <stdbool.h>

#include <frit/backend.h>

#include "rows.h"
#include "util/hosted.h"
#include "util/plug.h"
#include "util/specs.h"

#define REF_VERSION "0.1.0"

/* One per host. */
struct instance {
    struct plug plug;
    uint64_t memory_bytes; /* option: what a device may hold, 0 = no cap */
    frit_heap heap;        /* of the device; filled by enumerate */
};

struct device {
    struct hosted hosted; /* the first: slots of util/hosted.h take a device */
    const struct instance *instance;
};

struct program {
    const struct instance *instance;
    const struct row *row;
    struct specs specs;
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
frit_status device_open(void *instance, uint32_t index, const frit_open_params *params, void **out,
                        frit_err *err);
void device_close(void *self);

frit_status program_supports(void *self, const frit_op_desc *ops, uint32_t count, uint32_t stride,
                             uint64_t *bits, frit_err *err);
frit_status program_create(void *self, const frit_op_desc *op, frit_program *out, frit_err *err);

/* Slots of struct serial_driver.  What passed the check cannot fail. */
frit_status program_check(void *device, const frit_launch *launch, frit_err *err);
frit_status program_run(void *device, const frit_launch *launch, frit_err *err);
frit_str program_name(const frit_launch *launch);

#endif
