/* SPDX-License-Identifier: Apache-2.0 */
#include "host/graph/decomposed.h"

#include <stdlib.h>

#include "graph/decompose/decompose.h"
#include "graph/scalar.h"
#include "graph/verify.h"
#include "unit.h"

struct array decomposed_run(struct call *call, const struct array *inputs)
{
    struct graph graph = {0};
    struct array result;

    assert_int_equal(call->status, FRIT_OK);
    if (decompose(&call->call, &graph, &call->err))
        fail_msg("%s", call->err.text);
    assert_int_equal(graph_verify(&graph, &call->err), FRIT_OK);
    assert_int_equal(graph.n_outputs, 1);
    assert_true(op_type_equal(&graph.values[graph.outputs[0]].type, &call->out[0]));
    result = eval_graph(&graph, inputs);
    graph_fini(&graph);
    return result;
}

struct array decomposed(const char *op, const char *operands, const void *attrs,
                        const struct array *inputs)
{
    struct call call;

    call_check(&call, op, operands, attrs);
    if (call.status)
        fail_msg("%s", call.text);
    return decomposed_run(&call, inputs);
}

struct array of_floats(uint32_t dtype, int64_t n, const double *values)
{
    struct array array = {.type = {dtype, 1, {n}}, .cells = calloc((size_t)n, sizeof(union cell))};

    for (int64_t i = 0; i < n; i++)
        array.cells[i].f = scalar_round(values[i], dtype);
    return array;
}

static uint32_t seed = 7;

int64_t draw(int64_t low, int64_t high)
{
    seed = seed * 1664525u + 1013904223u;
    return low + (int64_t)(seed >> 8) % (high - low + 1);
}

/* Numbers that all types hold and sums of which are exact. */
struct array draw_array(const char *type, int64_t low, int64_t high)
{
    struct array array = {.type = type_of(type)};
    int64_t n = op_elements(&array.type);

    array.cells = calloc((size_t)n + 1, sizeof(union cell));
    for (int64_t i = 0; i < n; i++) {
        if (eval_is_float(array.type.dtype))
            array.cells[i].f = (double)draw(low, high);
        else
            array.cells[i].i = draw(low, high);
    }
    return array;
}

void expect_cells(const struct array *got, const union cell *expected)
{
    int64_t n = op_elements(&got->type);

    for (int64_t i = 0; i < n; i++)
        assert_int_equal(got->cells[i].i, expected[i].i);
}
