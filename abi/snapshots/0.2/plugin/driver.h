/* SPDX-License-Identifier: Apache-2.0 */
/* A driver with memory in host RAM: what the fake plugins share.  Copies and fills run at once,
 * inside submit; no op is supported.  Threads: as the contract wants. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <frit/backend.h>
#include <frit/native.h>
#include <frit/plugin.h>

/* An instance; every fake plugin's `open` makes one. */
struct fake {
    const frit_host_root *host;
    const frit_host_core *core;
    uint32_t n_devices;
    uint32_t type; /* FRIT_DEVICE_* of all devices */
    frit_backend backend;
    frit_backend plain; /* the same as it was made, for who replaces slots */
};

/* One device of software type. */
frit_status fake_open(const frit_host_root *host, const char *driver_name, struct fake **out,
                      frit_err *err);
void fake_close(void *instance);

/* Writes the err slot through the host. */
frit_status fake_fail(const struct fake *fake, frit_err *err, frit_status status, const char *text);

/* Of a device that device_open gave. */
const struct fake *fake_of(const void *device);

/* frit.backend/1 and frit.native/1 of the instance; NULL for other ids. */
const void *fake_get_interface(void *instance, frit_str id);
frit_status fake_enumerate(void *instance, frit_device_info *out, uint64_t stride,
                           uint32_t capacity, uint32_t *count, frit_driver_info *driver,
                           frit_err *err);

#endif
