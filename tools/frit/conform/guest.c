/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of fusers beside the driver: it gets the driver's device as libfrit passes it. */
#include "conform/guest.h"

/* ---- slots that it may call ---- */

static frit_status load_kernel(void *self, frit_str format, const void *bytes, uint64_t n_bytes,
                               frit_kernel **kernel, frit_err *err)
{
    const struct bare *bare = self;

    return bare->backend->kernel_load(bare->device, format, bytes, n_bytes, kernel, err);
}

static void unload_kernel(void *self, frit_kernel *kernel)
{
    const struct bare *bare = self;

    bare->backend->kernel_unload(bare->device, kernel);
}

static void *get_native(void *self, void *object, frit_str name)
{
    const struct bare *bare = self;

    return bare->native->get(bare->device, object, name);
}

static frit_fuser_device seen_by_guest(struct bare *bare)
{
    const bool takes = FRIT_HAS(bare->backend, frit_backend, kernel_unload) &&
                       bare->backend->kernel_load && bare->backend->kernel_unload;

    return (frit_fuser_device){.struct_size = sizeof(frit_fuser_device),
                               .info = &bare->info,
                               .self = bare,
                               .kernel_load = takes ? load_kernel : NULL,
                               .kernel_unload = takes ? unload_kernel : NULL,
                               .native_get = bare->native ? get_native : NULL};
}

/* ---- opening ---- */

static void put_back(struct bare *bare, const struct guest *driver)
{
    bare->plugin = driver->plugin;
    bare->instance = driver->instance;
    bare->fusers = driver->fusers;
    bare->seen = driver->seen;
}

frit_status guest_open(struct bare *bare, const char *path, struct guest *driver)
{
    frit_status status;

    *driver = (struct guest){bare->plugin, bare->instance, bare->fusers, bare->seen};
    bare->native = bare->plugin->get_interface(bare->instance, FRIT_STR(FRIT_NATIVE_TABLE));
    status = bare_load(bare, path);
    if (!status && (status = bare->plugin->open(&bare->root, &bare->instance, &bare->err)))
        bare_fail(bare, "open", status);
    if (status) {
        put_back(bare, driver);
        return status;
    }
    bare->fusers = bare->plugin->get_interface(bare->instance, FRIT_STR(FRIT_FUSER_TABLE));
    bare->seen = seen_by_guest(bare);
    return FRIT_OK;
}

void guest_close(struct bare *bare, const struct guest *driver)
{
    if (!bare->late)
        bare->plugin->close(bare->instance);
    put_back(bare, driver);
}
