/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers of elements that several entry points consist of. */
#ifndef API_DATA_H
#define API_DATA_H

#include <stddef.h>

#include <frit/frit.h>

struct lent_bytes;
struct op_type;
struct transfer_read;

/* A tensor in the lent memory where the device adopts it, else with a copy; frit_wrap_host, of any
 * type.  `call` begins the text of an error. */
frit_tensor *data_wrap(frit_device *device, const struct op_type *type,
                       const struct lent_bytes *lent, const char *call);

/* frit_read_many, but releases nothing.  `reads`: one per item, of any content. */
frit_status data_read(frit_read_item *items, uint64_t count, struct transfer_read *reads,
                      frit_err *err);
/* Releases taken tensors; one that occurs twice is released once.  An item begins with its tensor.
 */
void data_consume(const void *items, size_t item_bytes, uint64_t count);

#endif
