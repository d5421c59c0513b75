/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the packed element types, and the types in which their scales are kept.  Tensors of
 * them are dense; memory is read and written as bytes, whose elements follow one another from the
 * low bits up. */
#ifndef LOWER_PACKED_H
#define LOWER_PACKED_H

#include "ir/kir.h"
#include "ir/target.h"

/* The dtype that memory of a dtype is read and written as: bytes where it is packed. */
uint32_t packed_stored(uint32_t dtype);
uint32_t packed_width(uint32_t dtype); /* bits of an element */

/* The element whose bits, of an I32, begin at bit `at` (I32, or KIR_NONE: 0), as F64 if `wide`,
 * else as F32: all are. */
uint32_t packed_decode(struct kir_module *m, bool wide, uint32_t dtype, uint32_t bits, uint32_t at);
/* Of an integer type: the last element of a byte that was extended by its sign, times
 * 2^packed_top(dtype), which is 1 where a byte is an element. */
uint32_t packed_decode_top(struct kir_module *m, uint32_t dtype, uint32_t byte);
uint32_t packed_top(uint32_t dtype);
/* The bits, as I32, of the value nearest to a float, ties to even, clipped to the finite range;
 * `symmetric` leaves out an integer type's lowest value.  NaN gives NaN, or 0 where the type has
 * none. */
uint32_t packed_encode(struct kir_module *m, uint32_t dtype, bool symmetric, uint32_t real);

/* A scale, loaded from memory of `dtype`, rounded to a type (FRIT_CHOICE_quant_scale_*), as F32 or
 * F64. */
uint32_t packed_scale(struct kir_module *m, uint32_t dtype, int64_t type, uint32_t scale);
/* The bits of a scale's significand then. */
uint32_t packed_digits(uint32_t dtype, int64_t type);

#endif
