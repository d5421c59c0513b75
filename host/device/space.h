/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that name everything which saved things of a device follow from: what was saved under
 * another text is of another device, or of another build. */
#ifndef DEVICE_SPACE_H
#define DEVICE_SPACE_H

#include <stdbool.h>

#include <frit/frit.h>

struct device_entry;
struct registry;
struct str;

/* For plans: this library and the plugins concerned, by version and file, with the options set for
 * them; the device; the fusers in their order; the options of the search.  False: a library has no
 * file, so that one build cannot be known from the next. */
bool space_of_plans(const frit_device *device, struct str *out);
/* For decisions of the tuner: space_of_kind and which device it is.  False, as above. */
bool space_of_decisions(const frit_device *device, struct str *out);
/* What decides which candidate is the fastest, and is the same on another machine of the same kind:
 * the contract, the builds of the plugins concerned, with their options, name, fingerprint, cache
 * and driver of the device, and the threads of one that is the processors; a line each.  False, as
 * above. */
bool space_of_kind(const frit_device *device, struct str *out);

/* A device that is not open. */
struct space_subject {
    const struct registry *registry;
    const struct device_entry *entry;
    uint32_t threads; /* as in struct device_config */
};
/* Whether a text may be that of space_of_decisions for it, with which plugins only the open device
 * shows: its length then, so that the one with the most of them is the longest; else 0. */
size_t space_fit_decisions(const struct space_subject *subject, const char *space);

#endif
