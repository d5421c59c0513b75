/* SPDX-License-Identifier: Apache-2.0 */
/* Text to tokens, one at a time, never looking past `end`. */
#ifndef TEXT_TEXT_LEX_H
#define TEXT_TEXT_LEX_H

#include <stdbool.h>
#include <stddef.h>

#include <frit/status.h>
#include <frit/types.h>

struct lexer;
struct token;

/* Blanks and comments are between tokens; a NEWLINE ends each line. */
frit_status lex_next(struct lexer *lexer, struct token *token, frit_err *err);
/* Whether text is a name as it stands: a NAME token, or % and digits. */
bool lex_is_name(frit_str text);
/* Whether text is a name in quotes: 1 to 200 bytes, none of them a control character. */
bool lex_is_text(frit_str text);
/* Whether text is a word of the language, which is a name in quotes only. */
bool lex_is_reserved(frit_str text);
/* "'foo'" or "the end of the line" for messages; returns text. */
const char *lex_describe(const struct token *token, char *text, size_t size);

#endif
