/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, whatever the locale. */
#ifndef TEXT_TEXT_NUMBER_H
#define TEXT_TEXT_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include <frit/types.h>

struct str;

/* inf and nan. */
bool number_parse_word(frit_str word, frit_scalar *out);
/* An integer or float in C's spelling, inf and nan with a sign or without; NULL, or why it is none.
 */
const char *number_parse(frit_str text, frit_scalar *out);
/* The fewest digits that give the same number once they have the precision of `dtype`: F64 unless
 * op_check puts a lower one on it.  Floats keep a point; NaN has one form; of bool a word. */
void number_print(struct str *out, const frit_scalar *scalar, uint32_t dtype);

#endif
