/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from the memory of another device. */
#ifndef HIP_PEER_H
#define HIP_PEER_H

#include <stdatomic.h>
#include <stdint.h>

#include <frit/backend.h>
#include <frit/status.h>

enum { PEER_PLACES = 16 };

/* The other devices, by their open_number, for which enabling peer access was already tried.  Each
 * is stored at its adapter's number modulo PEER_PLACES, and replaces what was there. */
struct peers {
    _Atomic uint64_t open_numbers[PEER_PLACES];
};

/* Slot `copy_from` of frit.backend/1. */
frit_status peer_copy(void *self, const frit_transfer *to, const frit_peer_source *from,
                      uint64_t *value, frit_err *err);

#endif
