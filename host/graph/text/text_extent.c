/* SPDX-License-Identifier: Apache-2.0 */
/* Extents: infix text to postfix terms by two stacks (operators here, values when it is computed),
 * so that nothing recurses.  Both are bounded by the number of operators that may wait for an
 * operand. */
#include "graph/text/text_extent.h"

#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "graph/text/text_input.h"
#include "graph/text/text_lex.h"
#include "graph/text/text_number.h"
#include "graph/text/text_parse.h"
#include "graph/text/text_script.h"

enum { MAX_WAITING = 32 };

/* An extent that is being read. */
struct extent_reading {
    struct parser *p;
    const char *what;
    struct script_extent *out;
    enum term_kind waiting[MAX_WAITING]; /* TERM_NUMBER stands for '(' */
    uint32_t n_waiting;
};

/* ---- terms ---- */

static frit_status add_term(struct extent_reading *r, enum term_kind kind, int64_t value)
{
    struct script *s = r->p->script;

    TRY(parse_reserve(r->p, &s->terms, &s->terms_capacity, s->n_terms, sizeof(*s->terms)));
    s->terms[s->n_terms++] = (struct script_term){kind, value};
    r->out->n_terms++;
    return FRIT_OK;
}

static frit_status push_waiting(struct extent_reading *r, enum term_kind kind)
{
    if (r->n_waiting == MAX_WAITING)
        return parse_fail(r->p, &r->p->token, "%s is nested more than %d deep", r->what,
                          MAX_WAITING);
    r->waiting[r->n_waiting++] = kind;
    return FRIT_OK;
}

static int precedence(enum term_kind kind)
{
    switch (kind) {
    case TERM_ADD:
    case TERM_SUB:
        return 1;
    case TERM_MUL:
    case TERM_DIV:
        return 2;
    case TERM_NEG:
        return 3;
    default: /* '(' */
        return 0;
    }
}

/* Emits operators that bind at least as tightly, up to the last '('. */
static frit_status pop_waiting(struct extent_reading *r, int least)
{
    while (r->n_waiting && precedence(r->waiting[r->n_waiting - 1]) >= least)
        TRY(add_term(r, r->waiting[--r->n_waiting], 0));
    return FRIT_OK;
}

/* ---- operands ---- */

bool parse_at_extent(const struct parser *p)
{
    return p->token.kind == TOKEN_NUMBER || p->token.kind == TOKEN_NAME ||
           p->token.kind == TOKEN_STRING || p->token.kind == TOKEN_CUSTOM ||
           parse_at_sign(p, '(') || parse_at_sign(p, '-');
}

static frit_status fail_operand(const struct extent_reading *r)
{
    char found[80];

    return parse_fail(r->p, &r->p->token, "%s is made of whole numbers, found %s", r->what,
                      lex_describe(&r->p->token, found, sizeof(found)));
}

static frit_status fail_unknown_dim(const struct extent_reading *r, const struct token *name)
{
    const struct script *s = r->p->script;
    char word[TEXT_MAX_NAME + 1];
    const char *nearest = str_nearest(parse_word(name->text, word), s->dims, s->n_dims);

    if (nearest)
        return parse_fail(r->p, name, "unknown dim '%s'; did you mean '%s'?", word, nearest);
    return parse_fail(r->p, name, "unknown dim '%s'; the types of inputs name dims", word);
}

static frit_status read_dim(struct extent_reading *r)
{
    struct token name;
    void *dim;

    TRY(parse_take_name(r->p, "a named dim", &name));
    dim = map_get(&r->p->dims, name.text.ptr, (size_t)name.text.len);
    if (!dim)
        return fail_unknown_dim(r, &name);
    return add_term(r, TERM_DIM, (int64_t)(uintptr_t)dim - 1);
}

/* "a.b/2" is lexed as the name of a custom op: goes back to the '/'. */
static void split_custom(struct parser *p)
{
    const char *slash = memchr(p->token.text.ptr, '/', (size_t)p->token.text.len);

    p->token.kind = TOKEN_NAME;
    p->token.text.len = (uint64_t)(slash - p->token.text.ptr);
    p->lexer.at = slash;
}

/* An operand, or what stands before one; *more: an operand has still to come. */
static frit_status read_operand(struct extent_reading *r, bool *more)
{
    struct parser *p = r->p;
    frit_scalar number;

    *more = false;
    if (p->token.kind == TOKEN_NUMBER) {
        if (number_parse(p->token.text, &number) || number.kind != FRIT_SCALAR_I64)
            return fail_operand(r);
        TRY(add_term(r, TERM_NUMBER, (int64_t)number.bits));
        return parse_advance(p);
    }
    if (p->token.kind == TOKEN_CUSTOM)
        split_custom(p);
    if (p->token.kind == TOKEN_NAME || p->token.kind == TOKEN_STRING)
        return read_dim(r);
    if (!parse_at_sign(p, '(') && !parse_at_sign(p, '-'))
        return fail_operand(r);
    *more = true;
    TRY(push_waiting(r, parse_at_sign(p, '-') ? TERM_NEG : TERM_NUMBER));
    return parse_advance(p);
}

/* ---- operators ---- */

/* What the token does between two operands; TERM_NUMBER: nothing, the extent ends before it. */
static enum term_kind operator_of(const struct token *token)
{
    char sign = token->sign;

    if (token->kind == TOKEN_NUMBER)
        sign = token->text.ptr[0];
    else if (token->kind != TOKEN_SIGN)
        return TERM_NUMBER;
    switch (sign) {
    case '+':
        return TERM_ADD;
    case '-':
        return TERM_SUB;
    case '*':
        return TERM_MUL;
    case '/':
        return TERM_DIV;
    default:
        return TERM_NUMBER;
    }
}

/* The "-1" of "n -1" is an operator and a number. */
static frit_status take_operator(struct parser *p)
{
    if (p->token.kind != TOKEN_NUMBER)
        return parse_advance(p);
    p->token.text.ptr++;
    p->token.text.len--;
    p->token.column++;
    return FRIT_OK;
}

static bool in_parentheses(const struct extent_reading *r)
{
    for (uint32_t i = 0; i < r->n_waiting; i++) {
        if (r->waiting[i] == TERM_NUMBER)
            return true;
    }
    return false;
}

/* After an operand: closing parentheses, then an operator, or the end. */
static frit_status read_operator(struct extent_reading *r, bool *more)
{
    enum term_kind kind;

    while (parse_at_sign(r->p, ')') && in_parentheses(r)) {
        TRY(pop_waiting(r, 1));
        r->n_waiting--;
        TRY(parse_advance(r->p));
    }
    kind = operator_of(&r->p->token);
    *more = kind != TERM_NUMBER;
    if (!*more)
        return FRIT_OK;
    TRY(pop_waiting(r, precedence(kind)));
    TRY(push_waiting(r, kind));
    return take_operator(r->p);
}

frit_status parse_extent(struct parser *p, const char *what, struct script_extent *out)
{
    struct extent_reading r = {.p = p, .what = what, .out = out};
    bool more;

    *out = (struct script_extent){p->script->n_terms, 0};
    do {
        do {
            TRY(read_operand(&r, &more));
        } while (more);
        TRY(read_operator(&r, &more));
    } while (more);
    TRY(pop_waiting(&r, 1));
    return r.n_waiting ? parse_sign(p, ')', "after what stands in parentheses") : FRIT_OK;
}

/* ---- values ---- */

bool extent_is_number(struct script *script, const struct script_extent *extent, int64_t *out)
{
    if (extent->n_terms != 1 || script->terms[extent->term].kind != TERM_NUMBER)
        return false;
    *out = script->terms[extent->term].value;
    script->n_terms = extent->term;
    return true;
}

static const char *divide(int64_t a, int64_t b, int64_t *out)
{
    if (b == 0)
        return "divides by 0";
    if (b == -1)
        return __builtin_sub_overflow(0, a, out) ? "does not fit in 64 bits" : NULL;
    *out = a / b - (a % b != 0 && (a < 0) != (b < 0)); /* down */
    return NULL;
}

/* The operands of a binary term are at `at`, and so is its result. */
static const char *compute(enum term_kind kind, int64_t *at)
{
    bool overflow;

    switch (kind) {
    case TERM_ADD:
        overflow = __builtin_add_overflow(at[0], at[1], at);
        break;
    case TERM_SUB:
        overflow = __builtin_sub_overflow(at[0], at[1], at);
        break;
    case TERM_MUL:
        overflow = __builtin_mul_overflow(at[0], at[1], at);
        break;
    default:
        return divide(at[0], at[1], at);
    }
    return overflow ? "does not fit in 64 bits" : NULL;
}

const char *extent_value(const struct script *script, const struct script_extent *extent,
                         const int64_t *dims, int64_t *out)
{
    int64_t values[MAX_WAITING + 2] = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < extent->n_terms; i++) {
        const struct script_term *term = &script->terms[extent->term + i];
        const char *why = NULL;

        if (term->kind == TERM_NUMBER || term->kind == TERM_DIM) {
            values[n++] = term->kind == TERM_NUMBER ? term->value : dims[term->value];
        } else if (term->kind == TERM_NEG) {
            if (__builtin_sub_overflow(0, values[n - 1], &values[n - 1]))
                why = "does not fit in 64 bits";
        } else {
            n--;
            why = compute(term->kind, &values[n - 1]);
        }
        if (why)
            return why;
    }
    *out = values[0];
    return NULL;
}
