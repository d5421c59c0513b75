/* SPDX-License-Identifier: Apache-2.0 */
/* The words of dialects: what precedes the text of phases. */
#ifndef EMIT_C_WORDS_H
#define EMIT_C_WORDS_H

#include "emit/c/ctext.h"

/* Appends the words of the target's dialect that `text` uses, and CTEXT_END_OF_WORDS. */
void words_print(const struct ctext_target *target, const char *text, struct str *out);

#endif
