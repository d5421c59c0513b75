/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the text form share: the parsed program, tokens, numbers. */
#ifndef GRAPH_TEXT_SCRIPT_H
#define GRAPH_TEXT_SCRIPT_H

#include "base/map.h"
#include "graph/text/text.h"
#include "graph/text/text_extent.h"
#include "graph/text/text_op.h"

enum {
    TEXT_MAX_BYTES = 1 << 28,
    TEXT_MAX_VALUES = 1 << 20,
    TEXT_MAX_NAME = 200,
    TEXT_MAX_FILE = 4095,
    TEXT_MAX_ELEMENTS = 1 << 24, /* of all constants in the text together */
};

/* ---- the parsed program ---- */

/* A defined name.  Graphs number inputs first, then results. */
struct script_value {
    const char *name;
    uint32_t number; /* among the inputs, or among the results */
    bool result;
};

/* A part of an extent, see text_extent.h. */
enum term_kind {
    TERM_NUMBER = 1, /* `value` */
    TERM_DIM,        /* the extent of the named dim `value` */
    TERM_NEG,        /* of the value before it */
    TERM_ADD,        /* of the two values before it, as the rest */
    TERM_SUB,
    TERM_MUL,
    TERM_DIV
};

struct script_term {
    enum term_kind kind;
    int64_t value;
};

/* A field of a record that takes an extent once the named dims are known. */
struct script_patch {
    uint32_t offset; /* in the record */
    uint32_t line, column;
    struct script_extent extent;
};

struct script_step {
    enum { STEP_OP = 1, STEP_OUTPUT } kind;
    uint32_t line, column;
    uint32_t value;   /* OUTPUT: index of the value; OP: of the first value defined */
    const char *name; /* OUTPUT: NULL, or its name where that is not the value's */
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
    struct script_term *terms;
    const char **dims; /* names */
    uint32_t n_inputs, n_values, n_steps, n_operands, n_patches, n_terms, n_dims;
    uint32_t inputs_capacity, values_capacity, steps_capacity, operands_capacity, patches_capacity,
        terms_capacity, dims_capacity;
    uint32_t n_results;
    uint64_t n_elements; /* of constants in the text */
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
    char sign;     /* SIGN: one of = , : [ ] ? ( ) + - * / */
    bool quoted;   /* NAME: it stood in quotes */
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

/* The names left of a '='. */
struct result_names {
    struct token name[FRIT_OP_MAX_OUT];
    uint32_t count;
};

#endif
