/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A fuser: is shown relative ops, says whether it could make one program of them, and makes it.
 *
 * The host keeps a prototype per fuser and device, clones it for each block of ops it considers,
 * and picks for a block the fuser that saves most.  A fuser sees relative ops only: no identity, no
 * extent, no scalar value, so that its programs serve every size.
 *
 * What the host relies on:
 *  1. push never fails.  An op that the fuser cannot take, or has no memory for, closes it and is
 *     not counted; after that pushes are ignored.
 *  2. state is pure and takes the same short time whatever was pushed.  A fuser that is not ready,
 *     or whose quality is 0, is never chosen.
 *  3. `accepted` is the prefix of what was pushed that finish covers, and `n_ops` of the program;
 *     finish does not change it.
 *  4. clone is deep in any state and leaves its argument as it is; reset brings back the
 *     prototype's state.  A clone may outlive what it was cloned from, a prototype included.
 *  5. The program's arguments are, in this order: each value that the covered ops use and none of
 *     them makes, in order of first use (operands in the row's order), once; then each value that
 *     they make and that does not die in them, in order of making.  A value dies in them if a
 *     covered op lists it in `dead`.  `scalars` and `bounds` are those of the covered ops one after
 *     the other, as frit_launch says.
 *
 * Ops are pushed in the order in which the program must seem to run them; between two of them the
 * host runs nothing.  VIEW rows come like any other op.
 *
 * Numbers of values and extents mean the same in all pushes until reset, but have gaps and begin
 * anywhere: the ops are some of a longer list.  So do the numbers of scalar operands, which
 * therefore say nothing about places in `scalars`: count them.
 *
 * Custom ops (custom.h) come like any other, with a number of this process from FRIT_OP_CUSTOM on
 * and their name; the bytes of to_state hold the name. */
#ifndef FRIT_FUSER_H
#define FRIT_FUSER_H

#include <frit/backend.h>

/* What a fuser knows of the device its programs are for.  Lives as long as the prototypes, their
 * clones and the programs made for it. */
typedef struct frit_fuser_device {
    uint32_t struct_size;
    uint32_t same_plugin; /* 1: the device's driver is this plugin; LAUNCH reaches its submit */
    const frit_device_info *info;
    void *device; /* what device_open returned; only to be used where same_plugin */
    void *self;   /* first argument of the slots below */
    /* [any] +mayblock  As in backend.h, for plugins other than the driver's too; both NULL where
     * the driver takes no kernels (`info` lists its formats). */
    frit_status (*kernel_load)(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                               frit_kernel **kernel, frit_err *err);
    void (*kernel_unload)(void *self, frit_kernel *kernel);
    /* [any] +nonblock  `get` of native.h for this device; NULL where the driver does not offer it.
     */
    void *(*native_get)(void *self, void *object, frit_str name);
} frit_fuser_device;

/* One fuser of a plugin, filled by prototypes into the host's zeroed struct. */
typedef struct frit_fuser {
    uint32_t struct_size;
    uint32_t version; /* a saved program of another version is not offered to from_state */
    frit_str name;    /* a word, unique in the plugin; lives as long as the instance */
    void *prototype;  /* not NULL; the host's until it calls destroy; never pushed to */
} frit_fuser;

typedef struct frit_fuser_state {
    uint32_t struct_size;
    uint32_t open;     /* 1: could take more */
    uint32_t ready;    /* 1: finish can be called now */
    uint32_t accepted; /* ops covered, from the first pushed on */
    uint32_t quality;  /* 0..1000: how near the program comes to a streaming copy */
    uint32_t reserved;
} frit_fuser_state;

#define FRIT_FUSER_TABLE "frit.fuser/1"

/* All slots but from_state are required. */
typedef struct frit_fuser_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* [init] +mayblock  Writes up to `capacity` fusers at `stride` bytes, best first, and the true
     * count; a device that the plugin has no fusers for is FRIT_OK with none.  Each call makes new
     * ones; a failing call has made none. */
    frit_status (*prototypes)(void *instance, const frit_fuser_device *device, frit_fuser *out,
                              uint64_t stride, uint32_t capacity, uint32_t *count, frit_err *err);
    /* [any] +nonblock  Several threads may clone one prototype at once. */
    frit_status (*clone)(const void *fuser, void **out, frit_err *err);
    /* [object] +nonblock  NULL does nothing. */
    void (*destroy)(void *fuser);
    /* [object] +nonblock */
    void (*reset)(void *fuser);
    /* [object] +nonblock  The ops are borrowed for the call. */
    void (*push)(void *fuser, const frit_op_desc *ops, uint32_t count, uint32_t stride);
    /* [object] +nonblock */
    void (*state)(const void *fuser, frit_fuser_state *out);
    /* [object] +mayblock  Once, only when ready; then only state, reset and destroy follow.  The
     * program outlives the fuser, not the device.  A failure leaves the ops to run by themselves.
     */
    frit_status (*finish)(void *fuser, frit_program *out, frit_err *err);
    /* [any] +mayblock  NULL: programs are not saved.  A program of the ops, as a fuser of this name
     * was pushed them when finish made the one that to_state was called of; `bytes` are what that
     * gave, in another process: decisions that need not be taken again.  FRIT_INCOMPATIBLE for
     * bytes that the fuser does not know, that are not as to_state wrote them, or that do not
     * belong to these ops. Only for the device that they were saved on: the same number, stable_id,
     * fingerprint and versions, and the same builds of host and plugin, but opened anew. */
    frit_status (*from_state)(void *instance, const frit_fuser_device *device, frit_str name,
                              const frit_op_desc *ops, uint32_t n_ops, uint32_t op_stride,
                              const void *bytes, uint64_t n_bytes, frit_program *out,
                              frit_err *err);
} frit_fuser_table;

FRIT_STATIC_ASSERT(FRIT_END_OF(frit_fuser_device, native_get) == 56, "0.2");
FRIT_STATIC_ASSERT(sizeof(frit_fuser) == 32, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_fuser_table, from_state) == 72, "0.2");

#endif
