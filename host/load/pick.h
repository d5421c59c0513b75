/* SPDX-License-Identifier: Apache-2.0 */
/* Device lists. */
#ifndef LOAD_PICK_H
#define LOAD_PICK_H

#include <stddef.h>
#include <stdint.h>

#include <frit/status.h>

struct device_entry;
struct device_request;
struct registry;
struct str;

/* FRIT_INVALID with what is allowed. */
frit_status request_parse(const char *text, size_t length, struct device_request *out,
                          frit_err *err);
/* The device that is meant, or a reason other than NONE, NULL, and in `why` the reason's name and
 * words.  Under the lock; enumerates the drivers that may have it. */
uint32_t request_find(struct registry *registry, const struct device_request *request,
                      const struct device_entry **out, struct str *why);

/* The first usable device of a list such as "vulkan:0, hip:uuid=5a1f, cpu, auto": a driver's own
 * order of preference where only the driver is named, the start of a stable id if no other device
 * of the driver has it.  Each skipped entry is logged at warn with its reason.  A malformed list is
 * FRIT_INVALID, a list without a usable device FRIT_UNSUPPORTED; the text has every entry with its
 * reason and what to do.  Drivers are enumerated as the list reaches them, `auto`
 * enumerates all.  Without `err` nothing is logged. */
frit_status registry_pick(struct registry *registry, const char *list,
                          const struct device_entry **out, frit_err *err);
/* FRIT_INVALID for a malformed list, whatever devices there are. */
frit_status registry_check_list(const char *list, frit_err *err);

#endif
