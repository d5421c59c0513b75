/* SPDX-License-Identifier: Apache-2.0 */
/* The plugins that were built together with this library, by their build ids: frit/trusted-plugins
 * beside libfrit, a hexadecimal id per line.  They are not probed. */
#ifndef LOAD_TRUST_H
#define LOAD_TRUST_H

#include <stdbool.h>

struct trust;

/* NULL: there is no list. */
struct trust *trust_open(void);
void trust_close(struct trust *trust);
bool trust_has(const struct trust *trust, const char *build_id);

#endif
