/* SPDX-License-Identifier: Apache-2.0 */
/* The translation of a model: values, scopes and nodes.
 *
 * Nodes are translated in the model's order, each by its row (rows.def), which reads operands and
 * attributes of a struct import_node and emits ops (emit.h).  A value of which the elements are
 * known becomes part of the graph when an op first uses it, so that what is computed from constants
 * alone leaves no trace.  A node that cannot be translated is a problem; the nodes that depend on
 * it are passed over in silence, so that all are found at once. */
#ifndef ONNX_IMPORT_H
#define ONNX_IMPORT_H

#include <onnx.pb-c.h>

#include "base/map.h"
#include "base/str.h"
#include "graph/graph.h"

enum { NODE_MAX_OUT = 64 };

/* What a name stands for. */
typedef struct onnx_value {
    enum { VALUE_TENSOR = 1, VALUE_SCALAR, VALUE_ABSENT, VALUE_FAILED } kind;
    struct op_type type;
    uint32_t number;  /* TENSOR: in the graph; GRAPH_NO_VALUE: known and not yet used by an op */
    const void *data; /* TENSOR: its elements; NULL: not known before the graph runs */
    struct onnx_value *reshaped; /* TENSOR: the value of which it is a reshape, or NULL */
    bool is_strided;             /* TENSOR: a view that may not be dense */
    const char *name;            /* NULL: none of its own */
    frit_scalar scalar;          /* SCALAR: a number that an op takes in a tensor's place */
    int32_t narrow; /* ONNX's element type where Frit's is wider, as for int4; else 0 */
} val;

/* Names of one graph, and of the graphs around it. */
struct import_scope {
    struct map values;
    const struct import_scope *outer;
    const struct import_node *node; /* whose graph or function it is; NULL: the model's */
    const Onnx__NodeProto *call; /* of a function: the node whose attributes its nodes refer to */
    const struct import_scope *caller; /* of a function: that node's scope */
    int64_t opset;
    uint32_t depth;
};

struct onnx_model;

struct onnx_import {
    struct onnx_model *model;
    struct graph *graph;
    struct arena arena; /* what lives as long as the import */
    struct str *problems;
    uint32_t n_problems;
    bool wants_values; /* a problem is that elements are not known */
    uint64_t budget;   /* ops that may still be appended */
    uint64_t n_steps;  /* nodes translated, and graphs entered */
    uint64_t room;     /* bytes of elements that may still be computed */
    val absent;
    frit_err *err;
    frit_status status; /* a failure that ends it, such as of memory */
};

/* A node that is being translated. */
struct import_node {
    struct onnx_import *import;
    struct import_scope *scope;
    const Onnx__NodeProto *proto;
    const struct onnx_row *row;
    size_t index; /* in its graph */
    int64_t opset;
    uint32_t n_in, n_out;
    val **in; /* NULL: absent */
    val *out[NODE_MAX_OUT];
    bool failed; /* nothing is emitted any more */
};

/* The graphs of a model (import_graph.c): `inputs` are bound to the graph's inputs, `outputs` gets
 * their values, VALUE_FAILED ones too.  False: a fatal failure, which is in import->status. */
bool import_subgraph(struct import_node *node, const Onnx__GraphProto *graph, val *const *inputs,
                     uint32_t n_inputs, val **outputs, uint32_t n_outputs);
bool import_function(struct import_node *node, const Onnx__FunctionProto *function);
void import_nodes(struct onnx_import *import, struct import_scope *scope,
                  Onnx__NodeProto *const *nodes, size_t n_nodes);
/* The main graph, whose inputs are in the result already. */
void import_main(struct onnx_import *import, val *const *inputs);

/* Counts a node or a graph that is entered; false, and the end of the import: too many, as of loops
 * in loops. */
bool import_step(struct onnx_import *import);
/* NULL: not defined. */
val *import_find(const struct import_scope *scope, const char *name);
void import_define(struct onnx_import *import, struct import_scope *scope, const char *name,
                   val *value);
/* A value of this type whose elements are known; NULL after a failure. */
val *import_constant(struct onnx_import *import, const struct op_type *type, const void *data,
                     const char *name);
/* Puts a known value into the graph, for the first op that uses it. */
frit_status import_place(struct onnx_import *import, val *value);
/* Counts bytes of elements that are computed while the model is translated; false, and the end of
 * the import: too many. */
bool import_spend(struct onnx_import *import, uint64_t bytes);
/* Memory of the import, or of the graph for elements; NULL ends the import. */
void *import_alloc(struct onnx_import *import, size_t bytes);
void *import_elements(struct onnx_import *import, size_t bytes);
frit_status import_fail_memory(struct onnx_import *import, size_t bytes);

#endif
