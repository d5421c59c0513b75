/* SPDX-License-Identifier: Apache-2.0 */
/* The list of decompositions and what surrounds each: inputs, wide arithmetic, empty results. */
#include "graph/decompose.h"

#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/build.h"
#include "graph/scalar.h"
#include "graph/shape.h"

enum { AS_IS, WIDE };

static const struct {
    term (*fn)(struct build *b);
    int mode;
} rows[FRIT_OP_LIMIT] = {
#define DECOMPOSE(row, mode) [FRIT_OP_##row] = {decompose_##row, mode},
#include "graph/decompose.def"
};

bool decompose_has(uint32_t op)
{
    return op < FRIT_OP_LIMIT && rows[op].fn;
}

/* The type of the only result: a checked call passes again, but writes, so a copy is checked. */
static frit_status infer(struct build *b)
{
    struct op_call call = *b->call;
    struct op_type out[FRIT_OP_MAX_OUT];
    union attrs attrs;

    call.in = arena_array(&b->graph->arena, call.n_in + 1, sizeof(*call.in));
    if (!call.in)
        return fail_memory(b->err, call.n_in * sizeof(*call.in));
    if (call.n_in)
        memcpy(call.in, b->call->in, call.n_in * sizeof(*call.in));
    if (call.attrs) {
        TRY(attrs_copy(op_row(call.op), call.attrs, &attrs, b->err));
        call.attrs = &attrs;
    }
    TRY(op_check(&call, out, b->err));
    b->out = out[0];
    return FRIT_OK;
}

static bool is_narrow(uint32_t dtype)
{
    return dtype == FRIT_F16 || dtype == FRIT_BF16;
}

/* The narrow operands as f32, the result in f32 too. */
static void widen(struct build *b)
{
    b->dtype = FRIT_F32;
    for (uint32_t i = 0; i < b->call->n_in; i++) {
        if (b->in[i].kind == FRIT_OPERAND_TENSOR && is_narrow(b->call->in[i].type.dtype))
            b->in[i] = b_cast(b, b->in[i], FRIT_F32);
    }
}

/* One input of the graph per tensor operand; the others as they are. */
static frit_status take_inputs(struct build *b)
{
    b->in = arena_array(&b->graph->arena, b->call->n_in + 1, sizeof(*b->in));
    if (!b->in)
        return fail_memory(b->err, b->call->n_in * sizeof(*b->in));
    for (uint32_t i = 0; i < b->call->n_in; i++) {
        const struct op_input *given = &b->call->in[i];

        b->in[i] = (term){.kind = given->kind, .scalar = given->scalar};
        if (given->kind == FRIT_OPERAND_TENSOR)
            TRY(graph_input(b->graph, GRAPH_INPUT, NULL, &given->type, &b->in[i].value, b->err));
    }
    return FRIT_OK;
}

frit_status decompose(const struct op_call *call, struct graph *graph, frit_err *err)
{
    struct build b = {.graph = graph, .call = call, .err = err};
    term result;

    if (!decompose_has(call->op))
        return fail(err, FRIT_UNSUPPORTED, "%s: there is no form of this op in core ops",
                    op_row(call->op)->name);
    TRY(infer(&b));
    TRY(take_inputs(&b));
    b.dtype = call->n_in ? call->in[0].type.dtype : b.out.dtype;
    if (shape_empty(&b.out)) {
        result = b_full(&b, b.out.dtype, scalar_i(0), b.out.rank, b.out.dims);
    } else if (rows[call->op].mode == WIDE && is_narrow(b.dtype)) {
        widen(&b);
        result = rows[call->op].fn(&b);
        result = b_cast(&b, result, b.out.dtype);
    } else {
        result = rows[call->op].fn(&b);
    }
    if (b.status)
        return b.status;
    assert(op_type_equal(&graph->values[result.value].type, &b.out));
    return graph_output(graph, result.value, err);
}
