/* SPDX-License-Identifier: Apache-2.0 */
/* Text programs: parsing, binding of named dims, printing.
 *
 * A script is the parsed text; its dims and attributes may be named.  Once every named dim has a
 * number it becomes a graph, and that is when ops and shapes are checked.  Messages begin with
 * file:line:column. */
#ifndef GRAPH_TEXT_H
#define GRAPH_TEXT_H

#include "base/str.h"
#include "graph/graph.h"

struct script;

/* `name` is used in messages and is what relative file names are relative to.  The text may hold
 * anything; it is not kept. */
frit_status script_parse(const char *name, const char *text, size_t length, struct script **out,
                         frit_err *err);
void script_destroy(struct script *script);

/* An input or constant as declared. */
struct script_input {
    const char *name;
    const char *file; /* NULL: none; relative to the program */
    const void *data; /* elements that the program itself gives, of `data_type`; NULL: none */
    struct op_type data_type;
    uint32_t dtype; /* a const without a type: FRIT_NO_DTYPE, any */
    bool is_const;
    bool has_dims; /* a const without dims takes its file's */
    uint32_t rank;
    uint32_t line, column; /* of the name */
    uint32_t dim_columns[FRIT_MAX_RANK];
    const char *dim_names[FRIT_MAX_RANK]; /* NULL: a number, or ? */
    int64_t dims[FRIT_MAX_RANK];          /* -1: ?; of a named dim: its number among them */
};

uint32_t script_n_inputs(const struct script *script);
const struct script_input *script_input_at(const struct script *script, uint32_t index);

/* Makes the graph.  `types` has one entry per input: the type of the value that will be given, or
 * all zero where none is known (named and ? dims are then 2).  Named dims must agree over the
 * inputs.  Graph inputs are in the script's order. */
frit_status script_bind(const struct script *script, const struct op_type *types, struct graph *out,
                        frit_err *err);

/* The text form of a graph; what it prints parses and binds to an equal graph. */
void graph_print(const struct graph *graph, struct str *out);
/* One op line without the line end, names as graph_print gives them. */
void graph_print_op(const struct graph *graph, const struct graph_op *op, struct str *out);

#endif
