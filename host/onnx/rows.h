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
/* Reductions that are more than one op of the table, behind its numbers. */
enum {
    REDUCE_L1 = 1 << 16,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_SUM_SQUARE,
};

enum { WINDOW_HANN, WINDOW_HAMMING, WINDOW_BLACKMAN };

/* Recurrent layers. */
enum { RNN_PLAIN, RNN_GRU, RNN_LSTM };

#define ONNX_ROW(domain, name, since, until, function, number) \
    void onnx_row_##function(struct import_node *n, uint32_t arg);
#include "onnx/rows.def"

#endif
