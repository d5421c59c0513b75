/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a device.  What a query fails to report stays 0, which is the cautious answer. */
#include "adapter.h"

#include <stdio.h>
#include <string.h>

#include "buffer.h"
#include "plugin.h"

enum { COMPUTE_PROHIBITED = 2 /* value of ATTRIBUTE_COMPUTE_MODE */ };

/* The UUID, else the address on the bus, which too stays over restarts. */
static void read_ids(const struct api *api, struct adapter *out)
{
    const uint8_t *u = out->uuid;

    if (api->DeviceGetPCIBusId(out->pci, sizeof out->pci, out->handle))
        out->pci[0] = 0;
    if (api->DeviceGetUuid && !api->DeviceGetUuid(out->uuid, out->handle))
        snprintf(out->stable_id, sizeof out->stable_id,
                 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
                 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
                 u[15]);
    else
        snprintf(out->stable_id, sizeof out->stable_id, "%s", out->pci);
}

static void set_reason(struct adapter *out, uint32_t reason, const char *text)
{
    const size_t used = strlen(out->name);

    if (out->reason)
        return;
    out->reason = reason;
    snprintf(out->name + used, sizeof out->name - used, " (%s)", text);
}

static void read_heaps(const struct api *api, struct adapter *out)
{
    size_t bytes = 0;

    (void)api->DeviceTotalMem(&bytes, out->handle);
    out->heaps[0] = (frit_heap){.struct_size = sizeof out->heaps[0],
                                .kind = FRIT_HEAP_DEVICE,
                                .bytes = bytes,
                                .granularity = BUFFER_GRANULARITY};
    out->heaps[1] = (frit_heap){.struct_size = sizeof out->heaps[1],
                                .kind = FRIT_HEAP_PINNED,
                                .granularity = BUFFER_GRANULARITY};
}

void adapter_read(const struct instance *instance, int index, struct adapter *out)
{
    const struct api *api = &instance->api;
    char name[256] = "";

    *out = (struct adapter){0};
    if (api->DeviceGet(&out->handle, index))
        out->handle = index;
    (void)api->DeviceGetName(name, sizeof name - 1, out->handle);
    snprintf(out->name, sizeof out->name, "%s", name);
    for (uint32_t i = 0; i < N_ATTRIBUTES; i++)
        (void)api->DeviceGetAttribute(&out->attributes[i], vendor.attributes[i], out->handle);
    read_ids(api, out);
    read_heaps(api, out);
    if (!vendor.read_arch(instance, out))
        set_reason(out, FRIT_REASON_RUNTIME_TOO_OLD,
                   "this architecture is not supported by the driver and its compiler");
    if (out->attributes[ATTRIBUTE_COMPUTE_MODE] == COMPUTE_PROHIBITED)
        set_reason(out, FRIT_REASON_NO_PERMISSION, "its compute mode prohibits use");
    snprintf(out->driver_version, sizeof out->driver_version, "%d", instance->runtime_version);
    snprintf(out->fingerprint, sizeof out->fingerprint, "%s-%s-%d-%d.%d", vendor.name, out->arch,
             instance->runtime_version, instance->compiler_version[0],
             instance->compiler_version[1]);
}
