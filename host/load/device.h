/* SPDX-License-Identifier: Apache-2.0 */
/* Devices.  A driver's devices are enumerated when they are first needed; the registry keeps the
 * devices of all drivers in one list, ordered by preference. */
#ifndef LOAD_DEVICE_H
#define LOAD_DEVICE_H

#include <stdint.h>

#include <frit/status.h>

struct device_entry;
struct plugin;
struct registry;

/* For registry.c, under the lock: enumerates the devices of one plugin or of all, and adds them to
 * registry->devices.  On FRIT_NO_HOST_MEMORY nothing has changed for the plugin that failed. */
frit_status enumerate_plugin(struct registry *registry, struct plugin *plugin);
frit_status enumerate_all(struct registry *registry);

/* Enumerates the devices of the plugin at `index` unless that has been done.  On
 * FRIT_NO_HOST_MEMORY nothing has changed. */
frit_status registry_enumerate(struct registry *registry, uint32_t index);
/* The devices of all drivers, usable or not, in the order of preference: discrete, accelerator,
 * integrated, processor, software, unknown; then priority, highest first; then plugin id; then
 * number.  The devices of a driver are missing if there was no memory to enumerate them. */
uint32_t registry_n_devices(struct registry *registry);
const struct device_entry *registry_device_at(struct registry *registry, uint32_t index);
/* A copy, which lives as long as the registry, of what compute_info said of that device; NULL: no
 * memory. */
const char *registry_keep_compute(struct registry *registry, uint32_t index, frit_str text);
/* The device for [frit] fallback = auto.  Drivers are tried by ascending priority, then plugin id;
 * the first usable device of type software is returned, and later drivers are not enumerated.
 * NULL: there is no such device. */
const struct device_entry *registry_fallback(struct registry *registry);

#endif
