/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of a value between element types, as the row `cast` does it. */
#ifndef LOWER_ROWS_LOWER_CAST_H
#define LOWER_ROWS_LOWER_CAST_H

#include <stdint.h>

struct kir_module;

/* Converts `value` from one dtype to another; rounds once. */
uint32_t lower_convert(struct kir_module *m, uint32_t from, uint32_t to, uint32_t value);
/* F64 to F32, rounded to odd; a value that is F32 stays. */
uint32_t lower_narrow_odd(struct kir_module *m, uint32_t x);

#endif
