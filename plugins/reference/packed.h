/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the packed element types, as they are stored. */
#ifndef PACKED_H
#define PACKED_H

#include <stdbool.h>
#include <stdint.h>

/* Whether quantize and dequantize know the type. */
bool packed_has(uint32_t dtype);

/* The bits of the value nearest to `real`, ties to even, clipped to the finite range; `symmetric`
 * leaves out an integer type's lowest value.  NaN gives NaN, or 0 where the type has none. */
uint8_t packed_encode(uint32_t dtype, bool symmetric, double real);
double packed_decode(uint32_t dtype, uint8_t bits);

/* Element `i` of a dense tensor, which is packed from the low bits of each byte up.  A tensor is
 * written from element 0 up: packed_put clears the higher bits of the byte. */
uint8_t packed_get(uint32_t dtype, const char *data, int64_t i);
void packed_put(uint32_t dtype, char *data, int64_t i, uint8_t bits);

/* Rounded to a type in which scales are kept (FRIT_CHOICE_quant_scale_*). */
double packed_scale(int64_t type, double scale);

#endif
