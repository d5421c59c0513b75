/* SPDX-License-Identifier: Apache-2.0 */
/* Whether elements are what they should be, and how to say it. */
#ifndef ROWS_COMPARE_H
#define ROWS_COMPARE_H

#include "rows/cases.h"

/* One element against what it should be. */
bool compare_element(uint32_t dtype, const struct tolerance *tolerance, const void *want,
                     const void *got);
/* An element for people; returns text. */
const char *compare_text(uint32_t dtype, const void *element, char *text, size_t size);
/* Makes zeros of denormal floats, of the same sign; returns how many there were. */
uint64_t compare_flush(uint32_t dtype, void *elements, uint64_t count);
/* The smallest normal number of a float's type, 0 for others. */
double compare_least(uint32_t dtype);
/* An element as a double, exact but for 64-bit integers. */
double compare_number(uint32_t dtype, const void *element);

#endif
