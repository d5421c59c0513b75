/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts and devices of the process that are open, by address.  A closed one is freed, so a call
 * that closes finds out here, without looking at it, whether it was closed before.  (A new one at
 * the same address is taken for it.)  Threads: any. */
#ifndef API_OPEN_H
#define API_OPEN_H

#include <stdbool.h>

#include <frit/frit.h>

/* `object` is the host, or a device of it.  False: no memory. */
bool open_add(const void *object, frit_host *host);
/* False: it is not open. */
bool open_remove(const void *object);
/* The host of an object; NULL: it is not open. */
frit_host *open_host(const void *object);

#endif
