/* SPDX-License-Identifier: Apache-2.0 */
/* A driver inside the test: host memory, a few ops of f32 (copy, neg, add of a scalar; floor and
 * ceil of what is whole), and a script of what it asks for and what fails. */
#ifndef TESTS_STREAM_DRIVER_H
#define TESTS_STREAM_DRIVER_H

#include "unit.h"

#include <frit/backend.h>

#include "load/registry.h"
#include "stream/device.h"

struct driver {
    /* Script. */
    bool refuse_neg;                        /* supports says no */
    uint32_t refuse_prepare;                /* prepare of this op is FRIT_UNSUPPORTED */
    bool decompose;                         /* composite ops run as core ops */
    bool bad_table;                         /* op_program gives a table without prepare */
    bool fail_writes;                       /* told by waits */
    bool needs_compile;                     /* prepare of neg asks for compile */
    bool wants_dense;                       /* prepare of neg asks for dense strides */
    uint64_t workspace;                     /* bytes that neg wants zeroed; checked at launch */
    uint64_t derived;                       /* bytes that neg derives from its operand */
    uint32_t n_derived;                     /* how many memories of that size, 0: one */
    frit_status odd_answer;                 /* of prepare of neg, where it would be FRIT_OK */
    int64_t *out_strides;                   /* strides neg gives its output, NULL: dense */
    uint64_t out_align;                     /* alignment neg wants for its output */
    uint64_t out_bytes;                     /* and bytes */
    frit_status submit_status;              /* of the next submit with a launch */
    bool silent;                            /* a refused submit gives no reason */
    frit_status complete_status;            /* told by waits after such a submit */
    bool nameless;                          /* a failure comes without its value */
    void (*on_tell)(struct driver *driver); /* in a wait that tells a failure */
    bool inline_queue;

    /* What happened. */
    uint32_t prepares, compiles, launches, programs_alive;
    frit_arg_sig last_in; /* operand 0 of the last prepare */
    uint8_t last_class;   /* of its scalar */
    bool workspace_was_zero;
    uint32_t derived_fills;
    frit_launch_spec last_spec;

    uint64_t timeline;
    frit_failure failure;
    struct plugin plugin;
    frit_device_info info;
    struct device_entry entry;
    atomic_uint_least64_t seed, epoch;
};

/* Opens a device on it; device_destroy ends it. */
frit_device *driver_device(struct driver *driver, int64_t max_ops);

#endif
