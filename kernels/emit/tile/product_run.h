/* SPDX-License-Identifier: Apache-2.0 */
/* Running a product loop as one step. */
#ifndef EMIT_TILE_PRODUCT_RUN_H
#define EMIT_TILE_PRODUCT_RUN_H

#include "emit/tile/code.h"

/* Does the rounds from the counter's on; false: offsets would leave their type, nothing is done. */
bool tile_product_run(const struct tile_product *product, void *const *args, char *scratch);

#endif
