/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from the memory of another device. */
#ifndef HIP_PEER_H
#define HIP_PEER_H

#include <stdatomic.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>

enum { PEER_PLACES = 16 };

/* The openings of devices for which access to their memory was enabled, or is not to be had; each
 * at the place of its adapter's number modulo PEER_PLACES, where a later one replaces it. */
struct peers {
    _Atomic uint64_t openings[PEER_PLACES];
};

/* Slot `copy_from` of frit.backend/1. */
frit_status peer_copy(void *self, const frit_transfer *to, const frit_peer_source *from,
                      uint64_t *value, frit_err *err);

#endif
