/* SPDX-License-Identifier: Apache-2.0 */
/* Op calls in few words: check("add", "f32[3, 4]; 0.5", NULL). */
#ifndef TESTS_HOST_GRAPH_CALLS_H
#define TESTS_HOST_GRAPH_CALLS_H

#include <stdio.h>

#include "graph/attrs.h"
#include "graph/op.h"

enum { CALL_MAX_IN = 8 };

/* A call with its own memory; not to be copied. */
struct call {
    struct op_call call;
    struct op_input in[CALL_MAX_IN];
    union attrs attrs;
    struct op_type out[FRIT_OP_MAX_OUT];
    frit_status status;
    frit_err err;
    char text[600]; /* "f32[3, 4]" of the results, or the error's text */
};

/* ATTRS(conv, .stride = {2, 2}) */
#define ATTRS(record, ...) \
    (&(frit_attrs_##record){.struct_size = sizeof(frit_attrs_##record), __VA_ARGS__})

/* Operands are types, numbers or none, separated by ';'.  A wrong notation ends the test. */
void call_fill(struct call *call, const char *op, const char *operands, const void *attrs);
/* call_fill and op_check, every XOUT output wanted; returns call->text. */
const char *call_check(struct call *call, const char *op, const char *operands, const void *attrs);
/* "f32[3, 4]" as a type. */
struct op_type type_of(const char *text);

#endif
