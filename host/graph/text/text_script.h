/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the text form share: the parsed program, tokens, numbers. */
#ifndef GRAPH_TEXT_SCRIPT_H
#define GRAPH_TEXT_SCRIPT_H

#include "base/map.h"
#include "graph/text/text.h"
#include "graph/text/text_op.h"

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
    uint32_t inputs_capacity, values_capacity, steps_capacity, operands_capacity, patches_capacity,
        dims_capacity;
    uint32_t n_results;
};

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

/* text_input.c */

/* text_op.c */

/* The names left of a '='. */
struct result_names {
    struct token name[FRIT_OP_MAX_OUT];
    uint32_t count;
};

/* text_attrs.c */

#endif
