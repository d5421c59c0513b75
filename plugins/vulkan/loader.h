/* SPDX-License-Identifier: Apache-2.0 */
/* The Vulkan loader, opened by name, and the instance. */
#ifndef VULKAN_LOADER_H
#define VULKAN_LOADER_H

#include <frit/status.h>

struct instance;

/* Opens the loader and makes a Vulkan instance.  Without one `trouble` says why, and that is
 * FRIT_OK. */
frit_status loader_open(struct instance *instance, frit_err *err);
/* The functions of `handle`; the name of one that is not there, NULL: all are. */
const char *loader_functions(struct instance *instance);
void loader_close(struct instance *instance);

#endif
