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
    uint32_t most;        /* operands */
    void (*translate)(struct import_node *n, uint32_t arg);
    uint32_t arg;
};

/* The row of an operator in an opset; NULL: there is none.  *name_known: another opset has one. */
const struct onnx_row *rows_find(const char *domain, const char *name, int64_t opset,
                                 bool *name_known);
/* The opset nearest to this one in which a row has the operator, of which there is some. */
int64_t rows_nearest(const char *domain, const char *name, int64_t opset);
/* Reductions that are more than one op of the table, behind its numbers. */
enum {
    REDUCE_L1 = 1 << 16,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_SUM_SQUARE,
};

enum { WINDOW_HANN, WINDOW_HAMMING, WINDOW_BLACKMAN };

enum { OPTIMISER_ADAGRAD, OPTIMISER_ADAM, OPTIMISER_MOMENTUM };

/* Recurrent layers. */
enum { RNN_PLAIN, RNN_GRU, RNN_LSTM };

struct onnx_value;

/* The value as another type, packed ones too; the attribute `saturate` says what becomes of numbers
 * beyond the range of a float of 8 bits (rows_type.c). */
struct onnx_value *type_convert(struct import_node *n, struct onnx_value *x, uint32_t dtype);

#define ONNX_ROW(domain, name, since, until, most, function, number) \
    void onnx_row_##function(struct import_node *n, uint32_t arg);
#include "onnx/rows.def"

#endif
