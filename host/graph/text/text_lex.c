/* SPDX-License-Identifier: Apache-2.0 */
/* Text to tokens, one at a time, never looking past `end`. */
#include "graph/text/text_lex.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "graph/text/text_parse.h"
#include "graph/text/text_script.h"

/* Not the C library's: those follow the locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool starts_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool continues_name(char c)
{
    return starts_name(c) || is_digit(c) || c == '.';
}

static frit_status lex_fail(const struct lexer *lexer, const struct token *token, frit_err *err,
                            const char *text)
{
    return script_fail(lexer->script, token->line, token->column, err, "%s", text);
}

static void skip_blanks(struct lexer *lexer)
{
    while (lexer->at < lexer->end) {
        char c = *lexer->at;

        if (c == '#') {
            const char *line_end = memchr(lexer->at, '\n', (size_t)(lexer->end - lexer->at));

            lexer->at = line_end ? line_end : lexer->end;
            return;
        }
        if (c != ' ' && c != '\t' && c != '\r')
            return;
        lexer->at++;
    }
}

/* Whether what was read from `start` on has a dot, and '/' and a digit follow. */
static bool at_version(const struct lexer *lexer, const char *start)
{
    return lexer->end - lexer->at > 1 && *lexer->at == '/' && is_digit(lexer->at[1]) &&
           memchr(start, '.', (size_t)(lexer->at - start));
}

static void take_version(struct lexer *lexer, struct token *token)
{
    token->kind = TOKEN_CUSTOM;
    lexer->at++;
    while (lexer->at < lexer->end && is_digit(*lexer->at))
        lexer->at++;
}

static frit_status lex_name(struct lexer *lexer, struct token *token, frit_err *err)
{
    const char *start = lexer->at++;

    token->kind = TOKEN_NAME;
    while (lexer->at < lexer->end &&
           (*start == '%' ? is_digit(*lexer->at) : continues_name(*lexer->at)))
        lexer->at++;
    if (at_version(lexer, start))
        take_version(lexer, token);
    if (*start == '%' && lexer->at - start == 1)
        return lex_fail(lexer, token, err, "'%' stands before a number only, as in %3");
    if (lexer->at - start > TEXT_MAX_NAME)
        return lex_fail(lexer, token, err, "name longer than 200 characters");
    return FRIT_OK;
}

/* Whether a number begins at `at`: with a digit or a point, or one of the words after a sign. */
static bool starts_number(const char *at, const char *end)
{
    bool sign = *at == '-' || *at == '+';

    at += sign;
    if (at == end)
        return false;
    if (is_digit(*at) || *at == '.')
        return true;
    return sign && end - at >= 3 && (memcmp(at, "inf", 3) == 0 || memcmp(at, "nan", 3) == 0) &&
           (end - at == 3 || !continues_name(at[3]));
}

/* Everything that C's numbers are made of; number_parse says whether it is one. */
static void lex_number(struct lexer *lexer, struct token *token)
{
    char before = '\0';
    bool hex = false;

    token->kind = TOKEN_NUMBER;
    if (*lexer->at == '-' || *lexer->at == '+')
        lexer->at++;
    while (lexer->at < lexer->end) {
        char c = *lexer->at;
        bool sign = (c == '-' || c == '+') &&
                    (hex ? before == 'p' || before == 'P' : before == 'e' || before == 'E');

        if (!continues_name(c) && !sign)
            break;
        hex = hex || c == 'x' || c == 'X';
        before = c;
        lexer->at++;
    }
}

static frit_status lex_string(struct lexer *lexer, struct token *token, frit_err *err)
{
    const char *start = lexer->at++;

    token->kind = TOKEN_STRING;
    while (lexer->at < lexer->end && *lexer->at != '"' && *lexer->at != '\n') {
        if (*lexer->at == '\0')
            return lex_fail(lexer, token, err, "NUL byte in a text");
        lexer->at +=
            *lexer->at == '\\' && lexer->end - lexer->at > 1 && lexer->at[1] != '\n' ? 2 : 1;
    }
    if (lexer->at == lexer->end || *lexer->at != '"')
        return lex_fail(lexer, token, err, "text without its closing '\"'");
    lexer->at++;
    if (lexer->at - start > TEXT_MAX_FILE)
        return lex_fail(lexer, token, err, "text longer than 4095 bytes");
    return FRIT_OK;
}

static frit_status lex_sign(struct lexer *lexer, struct token *token, frit_err *err)
{
    unsigned char c = (unsigned char)*lexer->at++;

    token->kind = TOKEN_SIGN;
    token->sign = (char)c;
    if (c && strchr("=,:[]?()+-*/", c))
        return FRIT_OK;
    if (c > ' ' && c < 0x7f)
        return script_fail(lexer->script, token->line, token->column, err,
                           "unexpected character '%c'", c);
    return script_fail(lexer->script, token->line, token->column, err, "unexpected byte 0x%02x", c);
}

static frit_status lex_token(struct lexer *lexer, struct token *token, frit_err *err)
{
    char c = *lexer->at;

    if (c == '\n') {
        token->kind = TOKEN_NEWLINE;
        lexer->at++;
        lexer->line++;
        lexer->line_start = lexer->at;
        return FRIT_OK;
    }
    if (starts_name(c) || c == '%')
        return lex_name(lexer, token, err);
    if (starts_number(lexer->at, lexer->end)) {
        lex_number(lexer, token);
        return FRIT_OK;
    }
    if (c == '"')
        return lex_string(lexer, token, err);
    return lex_sign(lexer, token, err);
}

frit_status lex_next(struct lexer *lexer, struct token *token, frit_err *err)
{
    const char *start;

    skip_blanks(lexer);
    start = lexer->at;
    *token = (struct token){.kind = TOKEN_END,
                            .line = lexer->line,
                            .column = (uint32_t)(start - lexer->line_start) + 1};
    if (start == lexer->end)
        return FRIT_OK;
    TRY(lex_token(lexer, token, err));
    token->text = (frit_str){start, (uint64_t)(lexer->at - start)};
    return FRIT_OK;
}

bool lex_is_name(frit_str text)
{
    if (text.len == 0 || text.len > TEXT_MAX_NAME || (text.len == 1 && text.ptr[0] == '%'))
        return false;
    for (uint64_t i = 1; i < text.len; i++) {
        if (text.ptr[0] == '%' ? !is_digit(text.ptr[i]) : !continues_name(text.ptr[i]))
            return false;
    }
    return text.ptr[0] == '%' || starts_name(text.ptr[0]);
}

bool lex_is_text(frit_str text)
{
    if (text.len == 0 || text.len > TEXT_MAX_NAME)
        return false;
    for (uint64_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return false;
    }
    return true;
}

bool lex_is_reserved(frit_str text)
{
    static const char *const words[] = {"input", "const", "output", "none", "inf",
                                        "nan",   "true",  "false",  "_"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (str_is(text, words[i]))
            return true;
    }
    return false;
}

const char *lex_describe(const struct token *token, char *text, size_t size)
{
    if (token->kind == TOKEN_END || token->kind == TOKEN_NEWLINE)
        snprintf(text, size, "the end of the %s", token->kind == TOKEN_END ? "text" : "line");
    else
        snprintf(text, size, "'%.*s'", (int)(token->text.len < 60 ? token->text.len : 60),
                 token->text.ptr);
    return text;
}
