/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the text form share: the parsed program, tokens, numbers. */
#ifndef GRAPH_TEXT_SCRIPT_H
#define GRAPH_TEXT_SCRIPT_H

#include "base/map.h"
#include "graph/text/text.h"

enum {
    TEXT_MAX_BYTES = 1 << 28,
    TEXT_MAX_VALUES = 1 << 20,
    TEXT_MAX_NAME = 200,
    TEXT_MAX_FILE = 4095,
};

/* ---- the parsed program ---- */

/* A defined name.  Graphs number inputs first, then results. */
struct script_value {
    const char *name;
    uint32_t number; /* among the inputs, or among the results */
    bool result;
};

/* A field of a record that takes a named dim once its extent is known. */
struct script_patch {
    uint32_t offset; /* in the record */
    uint32_t dim;
};

struct script_step {
    enum { STEP_OP = 1, STEP_OUTPUT } kind;
    uint32_t line, column;
    uint32_t value; /* OUTPUT: index of the value; OP: of the first value defined */
    uint32_t n_values;
    uint32_t op;
    uint32_t wanted;
    uint32_t operand, n_in;    /* into operands */
    uint32_t patch, n_patches; /* into patches */
    void *attrs;               /* record, NULL for `none` */
};

/* Arrays grow by array_grow; texts and records lie in the arena. */
struct script {
    struct arena arena;
    const char *name;
    struct script_input *inputs;
    struct script_value *values;
    struct script_step *steps;
    struct graph_operand *operands; /* `value` is an index into values */
    struct script_patch *patches;
    const char **dims; /* names */
    uint32_t n_inputs, n_values, n_steps, n_operands, n_patches, n_dims;
    uint32_t inputs_room, values_room, steps_room, operands_room, patches_room, dims_room;
    uint32_t n_results;
};

/* FRIT_INVALID with "name:line:column: text". */
frit_status script_fail(const struct script *script, uint32_t line, uint32_t column, frit_err *err,
                        const char *format, ...) FRIT_PRINTF(5, 6);

/* ---- tokens (text_lex.c) ---- */

enum token_kind {
    TOKEN_END = 1,
    TOKEN_NEWLINE,
    TOKEN_NAME,
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_SIGN,
    TOKEN_CUSTOM /* the name of a custom op: a NAME with a dot, then '/' and digits */
};

struct token {
    enum token_kind kind;
    char sign;     /* SIGN: one of = , : [ ] ? */
    frit_str text; /* as written, strings with their quotes */
    uint32_t line, column;
};

struct lexer {
    const struct script *script;
    const char *at, *end, *line_start;
    uint32_t line;
};

/* Blanks and comments are between tokens; a NEWLINE ends each line. */
frit_status lex_next(struct lexer *lexer, struct token *token, frit_err *err);
/* Whether text is what a value may be called: a NAME token, or % and digits. */
bool lex_is_name(frit_str text);
/* "'foo'" or "the end of the line" for messages; returns text. */
const char *lex_describe(const struct token *token, char *text, size_t size);

/* ---- numbers (text_number.c) ---- */

/* inf and nan. */
bool number_parse_word(frit_str word, frit_scalar *out);
/* An integer or float in C's spelling, inf and nan with a sign or without; NULL, or why it is none.
 */
const char *number_parse(frit_str text, frit_scalar *out);
/* The fewest digits that give the same number once they have the precision of `dtype`: F64 unless
 * op_check puts a lower one on it.  Floats keep a point; NaN has one form; of bool a word. */
void number_print(struct str *out, const frit_scalar *scalar, uint32_t dtype);

/* ---- the parser ---- */

struct parser {
    struct lexer lexer;
    struct token token; /* the next one, not yet taken */
    struct script *script;
    struct map values; /* name to index + 1 */
    struct map dims;
    frit_err *err;
};

/* text_parse.c */

/* Takes the token. */
frit_status parse_advance(struct parser *p);
bool parse_at_sign(const struct parser *p, char sign);
bool parse_at_word(const struct parser *p, const char *word);
bool parse_at_line_end(const struct parser *p);
/* Takes this sign, or says what stands there instead. */
frit_status parse_sign(struct parser *p, char sign, const char *where);
/* FRIT_INVALID at the token. */
frit_status parse_fail(const struct parser *p, const struct token *at, const char *format, ...)
    FRIT_PRINTF(3, 4);
/* A word as a terminated text, cut to TEXT_MAX_NAME; returns text. */
const char *parse_word(frit_str word, char text[TEXT_MAX_NAME + 1]);
/* Room for one more item in an array of the script, as array_grow. */
frit_status parse_reserve(struct parser *p, void *array, uint32_t *room, uint32_t count,
                          size_t item);

/* text_input.c */

/* Index of a defined value, GRAPH_NO_VALUE if there is none. */
uint32_t parse_find_value(const struct parser *p, frit_str name);
/* FRIT_INVALID: no such value, with the nearest. */
frit_status parse_fail_value(const struct parser *p, const struct token *at);
/* Adds a value of this name. */
frit_status parse_define(struct parser *p, const struct token *at, bool result);
frit_status parse_input(struct parser *p, bool is_const);

/* text_op.c */

/* The names left of a '='. */
struct parse_names {
    struct token name[FRIT_OP_MAX_OUT];
    uint32_t count;
};

frit_status parse_names(struct parser *p, struct parse_names *names);
/* The op and what follows, whose results get the names. */
frit_status parse_op(struct parser *p, const struct parse_names *names);
frit_status parse_add_step(struct parser *p, const struct script_step *step);
/* The token is a name and the next one '='. */
bool parse_at_attr(const struct parser *p);

/* text_attrs.c */

/* "attribute=value, ..." to the end of the line, for a step whose op is known. */
frit_status parse_attrs(struct parser *p, struct script_step *step);

#endif
