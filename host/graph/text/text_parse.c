/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens to a script, a statement a line:
 *
 *   input NAME : DTYPE[DIM, ...] [= "FILE"]
 *   const NAME [: DTYPE[DIM, ...]] = "FILE"
 *   const NAME : DTYPE[DIM, ...] = NUMBER or [ITEM, ...]
 *   [output] NAME, ... = OP OPERAND, ..., ATTRIBUTE=VALUE, ...
 *   output NAME, ...
 *   output NAME = NAME
 *   OP                                  of an op without results
 *
 * The parser looks one token ahead, two to distinguish an attribute from an operand; nothing
 * recurses.  Names are known from their definition on and defined once. */
#include "graph/text/text_parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "graph/text/text_input.h"
#include "graph/text/text_lex.h"
#include "graph/text/text_op.h"
#include "graph/text/text_script.h"

/* ---- what every statement needs ---- */

frit_status script_fail(const struct script *script, uint32_t line, uint32_t column, frit_err *err,
                        const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail_v(err, FRIT_INVALID, format, args);
    va_end(args);
    fail_context(err, "%s:%u:%u", script->name, line, column);
    return FRIT_INVALID;
}

frit_status parse_fail(const struct parser *p, const struct token *at, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail_v(p->err, FRIT_INVALID, format, args);
    va_end(args);
    fail_context(p->err, "%s:%u:%u", p->script->name, at->line, at->column);
    return FRIT_INVALID;
}

frit_status parse_advance(struct parser *p)
{
    return lex_next(&p->lexer, &p->token, p->err);
}

bool parse_at_sign(const struct parser *p, char sign)
{
    return p->token.kind == TOKEN_SIGN && p->token.sign == sign;
}

bool parse_at_word(const struct parser *p, const char *word)
{
    return p->token.kind == TOKEN_NAME && str_is(p->token.text, word);
}

bool parse_at_line_end(const struct parser *p)
{
    return p->token.kind == TOKEN_NEWLINE || p->token.kind == TOKEN_END;
}

frit_status parse_sign(struct parser *p, char sign, const char *where)
{
    char found[80];

    if (!parse_at_sign(p, sign))
        return parse_fail(p, &p->token, "expected '%c' %s, found %s", sign, where,
                          lex_describe(&p->token, found, sizeof(found)));
    return parse_advance(p);
}

const char *parse_word(frit_str word, char text[TEXT_MAX_NAME + 1])
{
    size_t length = word.len < TEXT_MAX_NAME ? (size_t)word.len : TEXT_MAX_NAME;

    memcpy(text, word.ptr, length);
    text[length] = '\0';
    return text;
}

frit_status parse_reserve(struct parser *p, void *array, uint32_t *capacity, uint32_t count,
                          size_t item)
{
    return array_grow(array, capacity, count, 1, item)
               ? FRIT_OK
               : fail_memory(p->err, ((size_t)count + 1) * item);
}

/* ---- statements ---- */

/* Names to the left of the '=' with `output` before them, or alone. */
static frit_status add_outputs(struct parser *p, const struct result_names *names)
{
    for (uint32_t i = 0; i < names->count; i++) {
        const struct token *name = &names->name[i];
        struct script_step step = {.kind = STEP_OUTPUT, .line = name->line, .column = name->column};

        if (parse_is_unwanted(name))
            continue;
        step.value = parse_find_value(p, name->text);
        if (step.value == GRAPH_NO_VALUE)
            return parse_fail_value(p, name);
        TRY(parse_add_step(p, &step));
    }
    return FRIT_OK;
}

/* Whether the name of a value is all that follows the '='. */
static bool at_renamed_value(const struct parser *p)
{
    return parse_at_only_token(p) &&
           (p->token.kind == TOKEN_STRING ||
            (p->token.kind == TOKEN_NAME && parse_find_value(p, p->token.text) != GRAPH_NO_VALUE));
}

static frit_status parse_renamed_output(struct parser *p, const struct result_names *names)
{
    const struct token *name = &names->name[0];
    struct script_step step = {.kind = STEP_OUTPUT, .line = name->line, .column = name->column};
    struct token value;

    if (names->count > 1)
        return parse_fail(p, &names->name[1], "one name stands before the '=' and a value");
    TRY(parse_take_name(p, "a name", &value));
    step.value = parse_find_value(p, value.text);
    if (step.value == GRAPH_NO_VALUE)
        return parse_fail_value(p, &value);
    TRY(parse_alias(p, name, step.value, &step.name));
    return parse_add_step(p, &step);
}

static frit_status parse_output(struct parser *p)
{
    struct result_names names = {.count = 0};

    TRY(parse_advance(p));
    TRY(parse_result_names(p, &names));
    if (parse_at_sign(p, '=')) {
        TRY(parse_advance(p));
        if (at_renamed_value(p))
            return parse_renamed_output(p, &names);
        TRY(parse_op(p, &names));
    }
    return add_outputs(p, &names);
}

/* A row without results stands alone. */
static bool at_bare_op(const struct parser *p)
{
    bool custom = p->token.kind == TOKEN_CUSTOM; /* no value is called so */
    const frit_op_info *row = custom || p->token.kind == TOKEN_NAME ? op_find(p->token.text) : NULL;

    if (custom && !row)
        return true;
    return row && op_n_out(row) == 0 && !parse_at_attr(p);
}

static frit_status parse_assignment(struct parser *p)
{
    struct result_names names = {.count = 0};

    if (at_bare_op(p))
        return parse_op(p, &names);
    TRY(parse_result_names(p, &names));
    TRY(parse_sign(p, '=', "after the name"));
    return parse_op(p, &names);
}

static frit_status parse_statement(struct parser *p)
{
    char found[80];

    if (parse_at_word(p, "input") || parse_at_word(p, "const"))
        TRY(parse_input(p, parse_at_word(p, "const")));
    else if (parse_at_word(p, "output"))
        TRY(parse_output(p));
    else
        TRY(parse_assignment(p));
    if (!parse_at_line_end(p))
        return parse_fail(p, &p->token, "expected the end of the line, found %s",
                          lex_describe(&p->token, found, sizeof(found)));
    return FRIT_OK;
}

static frit_status parse_program(struct parser *p)
{
    TRY(parse_advance(p));
    while (p->token.kind != TOKEN_END) {
        if (p->token.kind != TOKEN_NEWLINE)
            TRY(parse_statement(p));
        if (p->token.kind == TOKEN_NEWLINE)
            TRY(parse_advance(p));
    }
    return FRIT_OK;
}

frit_status script_parse(const char *name, const char *text, size_t length, struct script **out,
                         frit_err *err)
{
    struct parser p = {.err = err};
    struct script *script = calloc(1, sizeof(*script));
    frit_status st;

    *out = NULL;
    if (!script)
        return fail_memory(err, sizeof(*script));
    script->name = arena_text(&script->arena, name, strlen(name));
    p.script = script;
    p.lexer = (struct lexer){script, text, text + length, text, 1};
    if (!script->name)
        st = fail_memory(err, strlen(name));
    else if (length > TEXT_MAX_BYTES)
        st = fail(err, FRIT_INVALID, "%s: a program of more than %d bytes", name, TEXT_MAX_BYTES);
    else
        st = parse_program(&p);
    map_fini(&p.values, NULL);
    map_fini(&p.dims, NULL);
    if (st)
        script_destroy(script);
    else
        *out = script;
    return st;
}

void script_destroy(struct script *script)
{
    if (!script)
        return;
    free(script->inputs);
    free(script->values);
    free(script->steps);
    free(script->operands);
    free(script->patches);
    free(script->terms);
    free(script->dims);
    arena_fini(&script->arena);
    free(script);
}

uint32_t script_n_inputs(const struct script *script)
{
    return script->n_inputs;
}

const struct script_input *script_input_at(const struct script *script, uint32_t index)
{
    return &script->inputs[index];
}
