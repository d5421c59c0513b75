/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of plugins and files, as they may be shown: valid UTF-8 without anything that a terminal
 * obeys. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>

/* Copies `length` bytes into `out`, cut between characters to fit its `size` >= 1, and ends it with
 * a 0.  A control character (C0, DEL, C1), a line or paragraph separator and a control of writing
 * direction become a blank, each byte that is not UTF-8 a question mark.  `out` may be `from`: the
 * text never grows. */
void text_clean(const char *from, size_t length, char *out, size_t size);

/* The length of the UTF-8 character at `at`, of which `left` >= 1 bytes are there; 0: it is none.
 */
size_t text_char_bytes(const char *at, size_t left);

#endif
