/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that add products to sums and do nothing else: found, and made a step. */
#ifndef EMIT_TILE_PRODUCT_H
#define EMIT_TILE_PRODUCT_H

#include <stdint.h>

struct make;

/* Right after the FOR of the loop at `loop`: the number of the step that does all of its rounds;
 * KIR_NONE: it is another loop. */
uint32_t make_product(struct make *m, uint32_t loop);

#endif
