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
/* An element as a double, exact but for 64-bit integers. */
double compare_number(uint32_t dtype, const void *element);

#endif
