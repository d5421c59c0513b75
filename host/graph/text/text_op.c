/* SPDX-License-Identifier: Apache-2.0 */
/* Statements with an op: operands, attributes and the names of results. */
#include "graph/text/text_op.h"

#include <string.h>

#include "base/fail.h"
#include "graph/custom.h"
#include "graph/foreign.h"
#include "graph/scalar.h"
#include "graph/text/text_attrs.h"
#include "graph/text/text_input.h"
#include "graph/text/text_lex.h"
#include "graph/text/text_number.h"
#include "graph/text/text_parse.h"
#include "graph/text/text_script.h"

bool parse_at_only_token(const struct parser *p)
{
    struct lexer ahead = p->lexer;
    struct token next;

    return lex_next(&ahead, &next, NULL) == FRIT_OK &&
           (next.kind == TOKEN_NEWLINE || next.kind == TOKEN_END);
}

bool parse_at_attr(const struct parser *p)
{
    struct lexer ahead = p->lexer;
    struct token next;

    return p->token.kind == TOKEN_NAME && lex_next(&ahead, &next, NULL) == FRIT_OK &&
           next.kind == TOKEN_SIGN && next.sign == '=';
}

bool parse_is_unwanted(const struct token *name)
{
    return !name->quoted && str_is(name->text, "_");
}

/* A name of a value, or a word that stands for a scalar. */
static frit_status read_word_operand(const struct parser *p, const struct token *word,
                                     struct graph_operand *out)
{
    bool yes = str_is(word->text, "true");

    if (!word->quoted && str_is(word->text, "none")) {
        out->kind = FRIT_OPERAND_ABSENT;
        return FRIT_OK;
    }
    out->kind = FRIT_OPERAND_SCALAR;
    if (!word->quoted && (yes || str_is(word->text, "false"))) {
        out->scalar = scalar_i(yes);
        return FRIT_OK;
    }
    if (!word->quoted && number_parse_word(word->text, &out->scalar))
        return FRIT_OK;
    out->kind = FRIT_OPERAND_TENSOR;
    out->value = parse_find_value(p, word->text);
    return out->value == GRAPH_NO_VALUE ? parse_fail_value(p, word) : FRIT_OK;
}

static frit_status parse_operand(struct parser *p, struct graph_operand *out)
{
    struct token word;
    const char *why;
    char found[80];

    *out = (struct graph_operand){0};
    if (p->token.kind == TOKEN_NAME || p->token.kind == TOKEN_STRING) {
        TRY(parse_take_name(p, "a name", &word));
        return read_word_operand(p, &word, out);
    }
    if (p->token.kind != TOKEN_NUMBER)
        return parse_fail(p, &p->token, "expected an operand: a name, a number or none, found %s",
                          lex_describe(&p->token, found, sizeof(found)));
    out->kind = FRIT_OPERAND_SCALAR;
    why = number_parse(p->token.text, &out->scalar);
    if (why)
        return parse_fail(p, &p->token, "%s %s", lex_describe(&p->token, found, sizeof(found)),
                          why);
    return parse_advance(p);
}

static frit_status add_operand(struct parser *p, struct script_step *step,
                               const struct graph_operand *operand)
{
    struct script *s = p->script;

    TRY(parse_reserve(p, &s->operands, &s->operands_capacity, s->n_operands, sizeof(*s->operands)));
    s->operands[s->n_operands++] = *operand;
    step->n_in++;
    return FRIT_OK;
}

/* Operands to the first attribute or the end of the line; optional ones at the end may be left out.
 */
static frit_status parse_operands(struct parser *p, struct script_step *step)
{
    const frit_op_info *row = op_row(step->op);
    uint32_t slots = op_n_slots(row);
    struct graph_operand operand;

    step->operand = p->script->n_operands;
    while (!parse_at_line_end(p) && !parse_at_attr(p)) {
        TRY(parse_operand(p, &operand));
        TRY(add_operand(p, step, &operand));
        if (parse_at_line_end(p))
            break;
        TRY(parse_sign(p, ',', "after an operand"));
        if (parse_at_line_end(p))
            return parse_fail(p, &p->token, "nothing follows the ','");
    }
    operand = (struct graph_operand){.kind = FRIT_OPERAND_ABSENT};
    while (step->n_in < slots && row->in[step->n_in].role == FRIT_ROLE_OPT)
        TRY(add_operand(p, step, &operand));
    return FRIT_OK;
}

static frit_status fail_unknown_op(const struct parser *p)
{
    char word[TEXT_MAX_NAME + 1], hint[160];
    const char *nearest = op_nearest(parse_word(p->token.text, word));
    const struct foreign *foreign = foreign_op(p->token.text);
    struct str known = {0};
    frit_status st;

    if (parse_find_value(p, p->token.text) != GRAPH_NO_VALUE && parse_at_only_token(p))
        return parse_fail(p, &p->token,
                          "'%s' is a value, not an op; output NAME = %s gives it another name",
                          word, word);

    if (strchr(word, '.')) {
        custom_explain_unknown(p->token.text, &known);
        st = parse_fail(p, &p->token, "unknown op '%s': %s", word, known.text ? known.text : "");
        str_fini(&known);
        return st;
    }
    if (foreign)
        return parse_fail(p, &p->token, "unknown op '%s'%s", word,
                          foreign_text(foreign, hint, sizeof(hint)));
    if (nearest)
        return parse_fail(p, &p->token, "unknown op '%s'; did you mean '%s'?", word, nearest);
    return parse_fail(p, &p->token, "unknown op '%s'", word);
}

static frit_status parse_op_name(struct parser *p, struct script_step *step)
{
    char word[TEXT_MAX_NAME + 1];
    const frit_op_info *row;

    if (p->token.kind != TOKEN_NAME && p->token.kind != TOKEN_CUSTOM)
        return parse_fail(p, &p->token, "expected an op, found %s",
                          lex_describe(&p->token, word, sizeof(word)));
    step->line = p->token.line;
    step->column = p->token.column;
    row = op_find(p->token.text);
    if (!row)
        return fail_unknown_op(p);
    step->op = row->id;
    return parse_advance(p);
}

frit_status parse_result_names(struct parser *p, struct result_names *names)
{
    for (;;) {
        struct token name = p->token;

        TRY(parse_take_name(p, "a name", &name));
        if (names->count == FRIT_OP_MAX_OUT)
            return parse_fail(p, &name, "no op has more than %d results", FRIT_OP_MAX_OUT);
        names->name[names->count++] = name;
        if (!parse_at_sign(p, ','))
            return FRIT_OK;
        TRY(parse_advance(p));
    }
}

/* Matches names with the row's results and defines them. */
static frit_status define_results(struct parser *p, const struct result_names *names,
                                  struct script_step *step)
{
    const frit_op_info *row = op_row(step->op);
    uint32_t n = op_n_out(row);

    if (names->count > n)
        return parse_fail(p, &names->name[n], "%s has %u result%s, %u are named", row->name, n,
                          n == 1 ? "" : "s", names->count);
    step->value = p->script->n_values;
    for (uint32_t i = 0; i < n; i++) {
        bool named = i < names->count && !parse_is_unwanted(&names->name[i]);

        if (named)
            TRY(parse_define(p, &names->name[i], true));
        else if (row->out[i].role == FRIT_ROLE_OUT)
            return parse_fail(p, &names->name[i < names->count ? i : 0],
                              "result %s of %s is always computed and needs a name",
                              row->out[i].name, row->name);
        step->n_values += named;
        step->wanted |= (named ? 1u : 0u) << i;
    }
    return FRIT_OK;
}

frit_status parse_add_step(struct parser *p, const struct script_step *step)
{
    struct script *s = p->script;

    TRY(parse_reserve(p, &s->steps, &s->steps_capacity, s->n_steps, sizeof(*s->steps)));
    s->steps[s->n_steps++] = *step;
    return FRIT_OK;
}

/* The operands are read before the results are defined, so that they cannot name them. */
frit_status parse_op(struct parser *p, const struct result_names *names)
{
    struct script_step step = {.kind = STEP_OP};

    TRY(parse_op_name(p, &step));
    TRY(parse_operands(p, &step));
    TRY(parse_attrs(p, &step));
    TRY(define_results(p, names, &step));
    return parse_add_step(p, &step);
}
