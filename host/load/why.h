/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to "why is it not there". */
#ifndef LOAD_WHY_H
#define LOAD_WHY_H

struct registry;
struct str;

/* Says in words, a line per finding, why a device, driver or plugin is usable or not. */
void registry_why(struct registry *registry, const char *name, struct str *out);

#endif
