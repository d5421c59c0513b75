/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Blocks as bytes, for another process on the same device. */
#ifndef KIT_STATE_H
#define KIT_STATE_H

#include "kit/kit.h"

/* Returns how many bytes there are, and writes them where they fit in `room`. */
uint64_t state_write(const struct kit_block *block, uint32_t version, void *bytes, uint64_t room);
/* Into an empty block.  False where the bytes are not such a block of a fuser of this driver: what
 * they say is pushed again, so that they can do no more than a host can. */
bool state_read(const struct kit_driver *driver, const struct kit_fuser *fuser, const void *bytes,
                uint64_t n_bytes, struct kit_block *block);

/* Pushes an op if the fuser takes it, else closes the block. */
void state_push(const struct kit_driver *driver, const struct kit_fuser *fuser,
                struct kit_block *block, const frit_op_desc *op);

#endif
