/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest host that a driver can live in: memory, error texts, one option, a trace. */
#ifndef REFERENCE_RIG_H
#define REFERENCE_RIG_H

#include "unit.h"

#include <stdbool.h>

#include <frit/backend.h>
#include <frit/plugin.h>

struct rig {
    const frit_plugin *plugin;
    void *instance;
    const frit_backend *backend;
    void *device;
    int64_t memory_bytes; /* answer to the option; set before rig_open */
    int64_t live;         /* pieces of host memory that the plugin holds */
    bool tracing;         /* spans are wanted */
    char spans[128];      /* names of those that ended, a blank before each */
    double counter;       /* last value of any */
    frit_host_root root;
    frit_err err;
};

/* Loads the built plugin, opens it and its device. */
void rig_open(struct rig *rig);
/* Closes both; every piece of host memory must be back. */
void rig_close(struct rig *rig);

/* A tensor in a buffer of its own. */
struct tensor {
    uint32_t dtype;
    uint32_t rank;
    int64_t dims[FRIT_MAX_RANK];
    int64_t strides[FRIT_MAX_RANK];
    int64_t first; /* elements from the start of the buffer to element 0 */
    void *data;    /* what the buffer holds */
    uint64_t bytes;
};

/* An operand: a tensor, or with dtype only a scalar of that type; all zero: absent. */
struct operand {
    const struct tensor *tensor;
    uint32_t dtype;
    double real;
};

/* One op from op_program to read, through write, prepare and submit. */
struct op_run {
    uint32_t id;
    const void *attrs;
    uint32_t n_in;
    struct operand in[4];
    const struct tensor *out; /* its data is overwritten with the result */
    uint64_t words[2];        /* of rows that draw random numbers */
    const int64_t *bounds;
};

void run_op(struct rig *rig, const struct op_run *run);
/* What prepare answers for it. */
void prepare_op(struct rig *rig, const struct op_run *run, frit_launch_spec *spec);

#endif
