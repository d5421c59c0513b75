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

#endif
