/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Saved programs.  There is nothing in a program that its ops do not say: the bytes are what proves
 * that they were made of these ops, by this version. */
#ifndef KIT_STATE_H
#define KIT_STATE_H

#include "kit/kit.h"

/* Returns how many bytes there are, and writes them where they fit in `capacity`. */
uint64_t state_write(const struct kit_block *block, uint32_t version, void *bytes,
                     uint64_t capacity);
/* Whether the bytes are those of this block. */
bool state_fits(const struct kit_block *block, uint32_t version, const void *bytes,
                uint64_t n_bytes);

#endif
