/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: a driver's are enumerated when they are first needed; all that are known stand in one
 * order. */
#ifndef LOAD_DEVICE_H
#define LOAD_DEVICE_H

#include <stdint.h>

#include <frit/status.h>

struct device_entry;
struct plugin;
struct registry;

/* registry.c, under the lock: what a plugin says of its devices is known afterwards, and theirs are
 * among `devices`.  FRIT_NO_HOST_MEMORY: as before. */
frit_status enumerate_plugin(struct registry *registry, struct plugin *plugin);
frit_status enumerate_all(struct registry *registry);

/* Asks the plugin at `index` for its devices, if it was not yet.  FRIT_NO_HOST_MEMORY: it is as
 * before. */
frit_status registry_enumerate(struct registry *registry, uint32_t index);
/* Devices usable or not of all drivers, in the order of preference: discrete, accelerator,
 * integrated, processor, software, unknown; then priority, highest first; then plugin id; then
 * number.  The devices of a driver are missing if there was no memory to enumerate them. */
uint32_t registry_n_devices(struct registry *registry);
const struct device_entry *registry_device_at(struct registry *registry, uint32_t index);
/* What lacks nothing but speed: the first usable device of type software of the driver with the
 * least priority, then plugin id, that has one; later drivers are not enumerated.  NULL: none. */
const struct device_entry *registry_plainest(struct registry *registry);

#endif
