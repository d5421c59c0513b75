/* SPDX-License-Identifier: Apache-2.0 */
/* Elements as numbers to compute with: floats as double, signed integers as int64_t, unsigned ones
 * and bool as uint64_t.  A store rounds floats once and keeps the low bits of integers. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>

#include <frit/types.h>

union number {
    double real;
    int64_t sint;
    uint64_t uint;
};

enum number_kind { NUMBER_REAL, NUMBER_SINT, NUMBER_UINT, NUMBER_KINDS, NUMBER_NONE };

/* NUMBER_NONE for an element type that this plugin does not compute in. */
enum number_kind number_kind(uint32_t dtype);
union number number_load(uint32_t dtype, const char *from);
void number_store(uint32_t dtype, char *to, union number number);
/* As the row cast does it. */
union number number_cast(union number number, uint32_t from, uint32_t to);

#endif
