/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices. */
#include <string.h>

#include "onnx/emit.h"
#include "onnx/problem.h"
#include "onnx/rows.h"

void onnx_row_matmul(struct import_node *n, uint32_t arg)
{
    (void)arg;
    e_out(n, 0, e_matmul_any(n, e_in(n, 0), e_in(n, 1)));
}

void onnx_row_gemm(struct import_node *n, uint32_t arg)
{
    val *a = e_in(n, 0), *b = e_in(n, 1), *y;
    double alpha = attr_float(n, "alpha", 1), beta = attr_float(n, "beta", 1);

    (void)arg;
    if (attr_int(n, "transA", 0))
        a = e_swap_last(n, a);
    if (attr_int(n, "transB", 0))
        b = e_swap_last(n, b);
    y = e_matmul(n, a, b);
    if (alpha != 1)
        y = e_mul(n, y, e_num(n, alpha));
    if (e_has(n, 2))
        y = e_add(n, y, beta == 1 ? e_in(n, 2) : e_mul(n, e_in(n, 2), e_num(n, beta)));
    e_out(n, 0, y);
}
