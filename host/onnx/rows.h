/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's operators, one row each: rows.def. */
#ifndef ONNX_ROWS_H
#define ONNX_ROWS_H

#include <stdbool.h>
#include <stdint.h>

struct import_node;

struct onnx_row {
    const char *domain; /* "": ONNX's own */
    const char *name;
    int64_t since, until; /* opsets */
    void (*translate)(struct import_node *n, uint32_t arg);
    uint32_t arg;
};

/* The row of an operator in an opset; NULL: there is none.  *name_known: another opset has one. */
const struct onnx_row *rows_find(const char *domain, const char *name, int64_t opset,
                                 bool *name_known);
/* The nearest name, for "did you mean"; NULL if none is near. */
const char *rows_nearest(const char *name);

#define ONNX_ROW(domain, name, since, until, function, number) \
    void row_##function(struct import_node *n, uint32_t arg);
#include "onnx/rows.def"

#endif
