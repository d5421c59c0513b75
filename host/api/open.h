/* SPDX-License-Identifier: Apache-2.0 */
/* What is open in the process, by address: hosts, their devices, and the ranks of these.  A closed
 * one is freed, so a call that closes finds out here, without looking at it, whether it was closed
 * before.  (A new one at the same address is taken for it.)  Threads: any. */
#ifndef API_OPEN_H
#define API_OPEN_H

#include <stdbool.h>

/* `owner`: the host of a device, the device of a rank; NULL of a host.  False: no memory. */
bool open_add(const void *object, void *owner);
/* And what it owns.  False: it is not open. */
bool open_remove(const void *object);
/* Whether it is open; `owner` (may be NULL) gets its owner. */
bool open_find(const void *object, void **owner);

#endif
