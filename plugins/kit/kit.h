/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A driver on host memory from a few tables.
 *
 * What its author writes is a struct kit_driver: devices, a function per op, perhaps fusers.  The
 * kit is the rest of the contract: instance, memory, an in-order queue that runs launches inside of
 * submit, programs, prepare, fusers that remember what they were shown, programs as bytes.  It
 * takes rows of at most KIT_IN operands, and kernels of other plugins as host functions.
 *
 * What a driver does otherwise it does by slots of its own, which its `init` puts into the
 * instance's tables.  Slots of one timeline go together: write, read, submit, wait (util/progress.h
 * is for queues that run on after submit); and alloc with free.  Threads: `run` as
 * frit_backend.submit says, what is called once per instance one at a time, all else any. */
#ifndef KIT_H
#define KIT_H

#include <stdbool.h>

#include <frit/fuser.h>
#include <frit/native.h>
#include <frit/plugin.h>

#include "kit/call.h"
#include "util/hosted.h"

/* An element is written after the last read of its place: an output may take the memory of an input
 * that lies as it does. */
#define KIT_INPLACE 0x1u
/* Tensor operands are dense, in row-major order; wants the row `copy`. */
#define KIT_DENSE 0x2u
/* Runs with code of kit_driver.compiler, which the host has made in the background or waits for, as
 * frit_program_table.compile says. */
#define KIT_COMPILED 0x4u

#define KIT_TYPE(dtype) (1ull << (dtype)) /* a bit of kit_row.dtypes */

/* Another way to compute what a row or fuser does.  The host offers it beside the function `run` of
 * these, checks its results against theirs, measures, and runs the fastest. */
struct kit_candidate {
    uint32_t version;       /* bumped when what was measured of it is void */
    uint32_t numeric_class; /* FRIT_NUMERIC_*: how its results may differ from those of `run` */
    uint32_t flags;         /* its own, as of a row */
    /* Stable text, by which the host keeps what it measured; no other of the row or fuser has it,
     * and it is not "plain", which `run` has.  Empty: the end of a list. */
    frit_str identity;
    /* As of a row. */
    frit_status (*run)(const struct kit_call *call, frit_err *err);
    /* Whether it takes such operands; with KIT_DENSE they may come in other strides yet.  Pure, and
     * shorter than any launch.  NULL: it takes all. */
    bool (*accepts)(const struct kit_program *program, const frit_signature *sig);
    /* As frit_program_table.priority says, where it accepts; `run` has 0.  NULL: 0. */
    int32_t (*priority)(const struct kit_program *program, const frit_signature *sig);
};

/* An op that the driver runs. */
struct kit_row {
    uint32_t op;     /* FRIT_OP_* */
    uint64_t dtypes; /* KIT_TYPE of each type that its operands and results may be of */
    uint32_t flags;  /* KIT_INPLACE, KIT_DENSE, KIT_COMPILED */
    /* Computes results from operands.  A negative status, by plug_fail, is the launch's failure.
     * NULL: the driver has a submit of its own. */
    frit_status (*run)(const struct kit_call *call, frit_err *err);
    const struct kit_candidate *candidates; /* a list, see there; NULL: `run` alone */
};

/* Makes one program of several ops that have rows. */
struct kit_fuser {
    frit_str name;
    uint32_t version; /* bumped when saved programs are not to be taken any more */
    /* 1..1000: how near its programs come to a streaming copy, measured or guessed: 900 where it
     * loads and stores once.  Of equal scores the first fuser wins. */
    uint32_t quality;
    uint32_t flags; /* as of a row, for the whole block */
    /* Whether the block, with this op after it, is still a program.  Pure.  NULL: always.  What is
     * accepted may end there: each beginning of a block may be run as a program. */
    bool (*accepts)(const struct kit_block *block, const frit_op_desc *op);
    /* As of a row. */
    frit_status (*run)(const struct kit_call *call, frit_err *err);
    const struct kit_candidate *candidates; /* as of a row */
};

struct kit_instance;
struct kit_device;

struct kit_driver {
    frit_str name;    /* the part of a device name before the colon */
    frit_str version; /* with the device it names what saved programs depend on */
    /* As frit_backend.enumerate fills them; what is 0 or empty of index, caps, formats, heaps,
     * cache_bytes, dtype_use and versions the kit fills: every type stored, those of the rows
     * computed on, instance->heap, and what comes with the slots of the instance's tables that are
     * still the kit's. */
    const frit_device_info *devices;
    uint32_t n_devices;
    uint32_t n_rows;
    const struct kit_row *rows;
    const struct kit_fuser *fusers; /* best first */
    uint32_t n_fusers;
    const struct kit_compiler *compiler; /* of rows, fusers and candidates with KIT_COMPILED */
    /* Called first: makes what the instance has of its own, in instance->own, and puts the driver's
     * slots into instance->backend and the other tables.  A failing init has made nothing.  NULL:
     * nothing. */
    frit_status (*init)(struct kit_instance *instance, frit_err *err);
    /* Reads the plugin's options.  NULL: it has none. */
    frit_status (*configure)(struct kit_instance *instance, const frit_host_options *options,
                             frit_err *err);
    /* Finds the devices, whenever the host enumerates them: sets instance->devices and n_devices,
     * or n_devices = 0 and in `out` the reason.  NULL: the devices are those above. */
    frit_status (*enumerate)(struct kit_instance *instance, frit_driver_info *out, frit_err *err);
    /* Makes and ends what a device has of its own, in device->own.  Both NULL: nothing.  A failing
     * open has made nothing. */
    frit_status (*open)(struct kit_device *device, frit_err *err);
    void (*close)(struct kit_device *device);
    /* Called last, when all devices are closed, or `configure` failed: ends what init made.  NULL:
     * nothing. */
    void (*fini)(struct kit_instance *instance);
};

/* One per host. */
struct kit_instance {
    struct plug plug;
    const struct kit_driver *driver;
    /* That the buffers of a device may hold together, 0 = no cap.  The kit's `alloc` refuses more;
     * one in its place is to do so too. */
    int64_t memory_bytes;
    void *own;                       /* the driver's */
    const frit_device_info *devices; /* of the driver, or of its `enumerate` */
    uint32_t n_devices;
    /* Of devices that name none.  With the kit's `alloc` the kit fills it: memory_bytes, or the
     * machine's memory.  A driver with its own fills what it knows of its memory, in `init`,
     * `configure` or `enumerate`; `bytes` left 0 become memory_bytes, 0 being unknown. */
    frit_heap heap;
    frit_backend backend;
    frit_fuser_table fuser;
    frit_native_table native;   /* offered as long as `free` is the kit's, or `get` is not */
    frit_profile_table profile; /* offered as long as `submit` is the kit's, or `clock` is not */
};

struct kit_device {
    struct hosted hosted; /* the first: slots of util/hosted.h take a device */
    const struct kit_instance *instance;
    uint32_t index;
    void *own; /* the driver's */
    /* As frit_open_params gives them. */
    void (*lost)(void *ctx, const frit_err *why);
    void *lost_ctx;
    uint64_t serial; /* of code, see kit_improved */
};

/* Reports to the host that the device is lost; `why` is what its user reads.  From any thread, but
 * not inside of a slot: there FRIT_DEVICE_LOST with the text does it. */
void kit_lost(const struct kit_device *device, const frit_err *why);

/* For the slots of frit_plugin. */
frit_status kit_open(const struct kit_driver *driver, const frit_host_root *host, void **instance,
                     frit_err *err);
void kit_close(void *instance);
const void *kit_interface(void *instance, frit_str id);

/* The row that runs the op, NULL if none does: for its rev, types and number of operands too. */
const struct kit_row *kit_row_of(const struct kit_driver *driver, const frit_op_desc *op);

#endif
