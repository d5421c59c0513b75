/* SPDX-License-Identifier: Apache-2.0 */
/* The environment variables of the process. */
#ifndef PROBE_ENVIRONMENT_H
#define PROBE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Keeps a copy of all variables. */
void environment_note(void);
/* Whether a variable has been added, changed or removed since; writes the name of the first. */
bool environment_changed(char *name, size_t size);

#endif
