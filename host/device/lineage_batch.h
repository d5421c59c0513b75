/* SPDX-License-Identifier: Apache-2.0 */
/* The launches that one submit hands over, see lineage.h. */
#ifndef DEVICE_LINEAGE_BATCH_H
#define DEVICE_LINEAGE_BATCH_H

#include <stdint.h>

/* Numbers of launches; those of other batches may lie between.  `first` 0: none.  All zero is
 * empty. */
struct lineage_batch {
    uint64_t first, last;
};

#endif
