/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters: what the driver reads about each device of the runtime, once, before any is opened. */
#ifndef HIP_ADAPTER_H
#define HIP_ADAPTER_H

#include <stdint.h>

#include <frit/backend.h>

#include "vendor.h"

struct instance;

struct adapter {
    int handle;      /* the runtime's number of the device */
    uint32_t reason; /* FRIT_REASON_* why it cannot be opened; 0: it can */
    int attributes[N_ATTRIBUTES];
    char name[320]; /* ends with what is missing, if anything */
    char arch[64];  /* as the run-time compiler's option names it */
    char stable_id[48], pci[24];
    char driver_version[32];
    char fingerprint[192]; /* of architecture, driver and compiler: key of caches */
    uint8_t uuid[16];
    frit_heap heaps[2]; /* device memory; pinned host memory */
};

/* Reads everything about the device with number `index`. */
void adapter_read(const struct instance *instance, int index, struct adapter *out);

#endif
