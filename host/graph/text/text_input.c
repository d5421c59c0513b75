/* SPDX-License-Identifier: Apache-2.0 */
/* Names of values, and the statements `input` and `const`. */
#include "graph/text/text_input.h"

#include <string.h>

#include "base/fail.h"
#include "graph/dtype.h"
#include "graph/foreign.h"
#include "graph/text/text_const.h"
#include "graph/text/text_lex.h"
#include "graph/text/text_number.h"
#include "graph/text/text_parse.h"
#include "graph/text/text_script.h"

/* ---- names ---- */

uint32_t parse_find_value(const struct parser *p, frit_str name)
{
    void *entry = map_get(&p->values, name.ptr, (size_t)name.len);

    return entry ? (uint32_t)(uintptr_t)entry - 1 : GRAPH_NO_VALUE;
}

/* The latest names only, so that a long text costs no more. */
enum { MAX_NEAR = 4096 };

frit_status parse_fail_value(const struct parser *p, const struct token *at)
{
    uint32_t n = p->script->n_values < MAX_NEAR ? p->script->n_values : MAX_NEAR;
    uint32_t first = p->script->n_values - n;
    const char *names[MAX_NEAR], *nearest;
    char word[TEXT_MAX_NAME + 1];

    for (uint32_t i = 0; i < n; i++)
        names[i] = p->script->values[first + i].name;
    nearest = str_nearest(parse_word(at->text, word), names, n);
    if (nearest)
        return parse_fail(p, at, "unknown name '%s'; did you mean '%s'?", word, nearest);
    return parse_fail(p, at, "unknown name '%s'; a name is defined before it is used", word);
}

/* Takes the quotes and backslashes off the token's text. */
static frit_status unquote(struct parser *p, frit_str *out)
{
    frit_str quoted = p->token.text;
    char *text = arena_alloc(&p->script->arena, (size_t)quoted.len);

    if (!text)
        return fail_memory(p->err, (size_t)quoted.len);
    *out = (frit_str){text, 0};
    for (uint64_t i = 1; i + 1 < quoted.len; i++) {
        if (quoted.ptr[i] == '\\')
            i++;
        text[out->len++] = quoted.ptr[i];
    }
    return FRIT_OK;
}

frit_status parse_take_name(struct parser *p, const char *what, struct token *out)
{
    char found[80];

    *out = p->token;
    if (p->token.kind == TOKEN_STRING) {
        TRY(unquote(p, &out->text));
        if (!lex_is_text(out->text))
            return parse_fail(p, &p->token,
                              "a name in quotes has 1 to %d bytes without control characters",
                              TEXT_MAX_NAME);
        out->kind = TOKEN_NAME;
        out->quoted = true;
    } else if (p->token.kind != TOKEN_NAME) {
        return parse_fail(p, &p->token, "expected %s, found %s", what,
                          lex_describe(&p->token, found, sizeof(found)));
    }
    return parse_advance(p);
}

/* Whether a statement may define this name. */
static frit_status check_new_name(const struct parser *p, const struct token *at)
{
    char word[TEXT_MAX_NAME + 1];

    if (!at->quoted && lex_is_reserved(at->text))
        return parse_fail(p, at, "'%s' is a word of the language and cannot be a name",
                          parse_word(at->text, word));
    if (parse_find_value(p, at->text) != GRAPH_NO_VALUE)
        return parse_fail(p, at, "'%s' is defined already", parse_word(at->text, word));
    return FRIT_OK;
}

frit_status parse_define(struct parser *p, const struct token *at, bool result)
{
    struct script *s = p->script;
    size_t length = (size_t)at->text.len;
    const char *name;

    TRY(check_new_name(p, at));
    if (s->n_values == TEXT_MAX_VALUES)
        return parse_fail(p, at, "more than %d values", TEXT_MAX_VALUES);
    TRY(parse_reserve(p, &s->values, &s->values_capacity, s->n_values, sizeof(*s->values)));
    name = arena_text(&s->arena, at->text.ptr, length);
    if (!name || !map_add(&p->values, name, length, (void *)((uintptr_t)s->n_values + 1)))
        return fail_memory(p->err, length);
    s->values[s->n_values++] = (struct script_value){
        .name = name, .number = result ? s->n_results++ : s->n_inputs, .result = result};
    return FRIT_OK;
}

frit_status parse_alias(struct parser *p, const struct token *at, uint32_t value, const char **name)
{
    size_t length = (size_t)at->text.len;

    TRY(check_new_name(p, at));
    *name = arena_text(&p->script->arena, at->text.ptr, length);
    if (!*name || !map_add(&p->values, *name, length, (void *)((uintptr_t)value + 1)))
        return fail_memory(p->err, length);
    return FRIT_OK;
}

/* ---- input, const ---- */

/* The named dim, made known if it is new. */
static frit_status intern_dim(struct parser *p, const char **name, int64_t *number)
{
    struct script *s = p->script;
    struct token dim;
    frit_str text;
    void *entry;

    TRY(parse_take_name(p, "a named dim", &dim));
    text = dim.text;
    entry = map_get(&p->dims, text.ptr, (size_t)text.len);

    if (!entry) {
        const char *copy = arena_text(&s->arena, text.ptr, (size_t)text.len);

        TRY(parse_reserve(p, &s->dims, &s->dims_capacity, s->n_dims, sizeof(*s->dims)));
        entry = (void *)((uintptr_t)s->n_dims + 1);
        if (!copy || !map_add(&p->dims, text.ptr, (size_t)text.len, entry))
            return fail_memory(p->err, (size_t)text.len);
        s->dims[s->n_dims++] = copy;
    }
    *number = (int64_t)(uintptr_t)entry - 1;
    *name = s->dims[*number];
    return FRIT_OK;
}

static frit_status parse_dim(struct parser *p, struct script_input *input)
{
    uint32_t axis = input->rank;
    char found[80];

    if (axis == FRIT_MAX_RANK)
        return parse_fail(p, &p->token, "more than %d dims", FRIT_MAX_RANK);
    input->dim_columns[axis] = p->token.column;
    input->dims[axis] = -1;
    input->rank++;
    if (p->token.kind == TOKEN_NUMBER) {
        frit_scalar number;

        if (number_parse(p->token.text, &number) || number.kind != FRIT_SCALAR_I64 ||
            (int64_t)number.bits < 0)
            return parse_fail(p, &p->token,
                              "%s is not an extent: a whole number from 0 on, a name or ?",
                              lex_describe(&p->token, found, sizeof(found)));
        input->dims[axis] = (int64_t)number.bits;
    } else if (p->token.kind == TOKEN_STRING ||
               (p->token.kind == TOKEN_NAME && p->token.text.ptr[0] != '%')) {
        return intern_dim(p, &input->dim_names[axis], &input->dims[axis]);
    } else if (!parse_at_sign(p, '?')) {
        return parse_fail(p, &p->token, "expected an extent: a number, a name or ?, found %s",
                          lex_describe(&p->token, found, sizeof(found)));
    }
    return parse_advance(p);
}

static bool at_arithmetic(const struct parser *p)
{
    return p->token.kind == TOKEN_NUMBER ||
           (p->token.kind == TOKEN_SIGN && strchr("+-*/", p->token.sign));
}

/* DTYPE[DIM, ...] */
static frit_status parse_type(struct parser *p, struct script_input *input)
{
    const char *foreign;
    char found[80];

    if (p->token.kind == TOKEN_NAME)
        input->dtype = dtype_find(p->token.text);
    if (input->dtype == FRIT_NO_DTYPE) {
        foreign = p->token.kind == TOKEN_NAME ? foreign_dtype(p->token.text) : NULL;
        return parse_fail(p, &p->token, "expected an element type such as %s, found %s",
                          foreign ? foreign : "f32", lex_describe(&p->token, found, sizeof(found)));
    }
    input->has_dims = true;
    TRY(parse_advance(p));
    TRY(parse_sign(p, '[', "after the element type"));
    while (!parse_at_sign(p, ']')) {
        if (input->rank && input->dim_names[input->rank - 1] && at_arithmetic(p))
            return parse_fail(p, &p->token, "arithmetic on dims stands in attributes only");
        if (input->rank)
            TRY(parse_sign(p, ',', "or ']' after a dim"));
        TRY(parse_dim(p, input));
    }
    return parse_advance(p);
}

static frit_status parse_file(struct parser *p, const char **out)
{
    char found[80];
    frit_str text;

    if (p->token.kind != TOKEN_STRING || p->token.text.len == 2)
        return parse_fail(p, &p->token, "expected a file name in double quotes, found %s",
                          lex_describe(&p->token, found, sizeof(found)));
    TRY(unquote(p, &text));
    *out = text.ptr; /* shorter than its memory, which is zeroed */
    return parse_advance(p);
}

/* What follows the '=': a file, or the elements of a constant. */
static frit_status parse_source(struct parser *p, struct script_input *input)
{
    char found[80];

    if (input->is_const && parse_at_constant(p))
        return parse_constant(p, input);
    if (parse_at_constant(p))
        return parse_fail(p, &p->token,
                          "the elements of an input are in a file; a const may have "
                          "them here");
    if (!input->is_const || p->token.kind == TOKEN_STRING)
        return parse_file(p, &input->file);
    return parse_fail(p, &p->token,
                      "expected a file name in double quotes, a number or a list in [ ], found %s",
                      lex_describe(&p->token, found, sizeof(found)));
}

frit_status parse_input(struct parser *p, bool is_const)
{
    struct script *s = p->script;
    struct script_input input = {.is_const = is_const};
    struct token name;

    TRY(parse_advance(p));
    TRY(parse_take_name(p, "a name", &name));
    input.line = name.line;
    input.column = name.column;
    TRY(parse_define(p, &name, false));
    input.name = s->values[s->n_values - 1].name;
    if (parse_at_sign(p, ':')) {
        TRY(parse_advance(p));
        TRY(parse_type(p, &input));
    } else if (!is_const) {
        TRY(parse_sign(p, ':', "and the type, such as f32[n, 4], after the input's name"));
    }
    if (parse_at_sign(p, '=')) {
        TRY(parse_advance(p));
        TRY(parse_source(p, &input));
    } else if (is_const) {
        TRY(parse_sign(p, '=', "and the file of the constant"));
    }
    TRY(parse_reserve(p, &s->inputs, &s->inputs_capacity, s->n_inputs, sizeof(*s->inputs)));
    s->inputs[s->n_inputs++] = input;
    return FRIT_OK;
}
