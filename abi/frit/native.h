/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What lies behind a driver's objects, for plugins that have to reach it: a fuser whose kernels run
 * on the host, a collective.  Offered by a plugin with a backend; optional. */
#ifndef FRIT_NATIVE_H
#define FRIT_NATIVE_H

#include <frit/types.h>

#define FRIT_NATIVE_TABLE "frit.native/1"

/* Names are "interface.thing"; a driver adds its own.
 *   host.ptr   of an allocation: the address of its first byte, readable and writable by the
 *              process while commands run; an argument's range begins `offset` bytes further
 *   cuda.ptr   of an allocation: its address on the device (CUdeviceptr); of the device: its
 *              context (CUcontext)
 *   hip.ptr    of an allocation: its address on the device; of the device: a pointer to its number
 *              (const int *) */
typedef struct frit_native_table {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] +nonblock  required.  `device` is what device_open returned, `memory` an allocation on
     * it, or NULL for the device itself.  NULL: there is nothing of this name.  Valid as long as
     * the object. */
    void *(*get)(void *device, frit_memory *memory, frit_str name);
    /* The name of what engines of collectives reach the memory of the driver's devices by; empty:
     * they go through the host's memory. */
    frit_str space;
} frit_native_table;

FRIT_STATIC_ASSERT(FRIT_END_OF(frit_native_table, get) == 16, "0.2");
FRIT_STATIC_ASSERT(FRIT_END_OF(frit_native_table, space) == 32, "0.2");

#endif
