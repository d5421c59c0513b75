/* SPDX-License-Identifier: Apache-2.0 */
/* The list of decompositions and what surrounds each: inputs, wide arithmetic, empty results. */
#include "graph/decompose/decompose.h"

#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/custom.h"
#include "graph/decompose/build.h"
#include "graph/scalar.h"
#include "graph/shape/shape.h"

enum { AS_IS, WIDE };

static const struct {
    term (*fn)(struct build *b);
    int mode;
} rows[FRIT_OP_LIMIT] = {
#define DECOMPOSE(row, mode) [FRIT_OP_##row] = {decompose_##row, mode},
#include "graph/decompose/decompose.def"
};

static bool is_narrow(uint32_t dtype)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    return info.cls == FRIT_DTYPE_FLOAT && info.compute != dtype;
}

static term (*const other_forms[FRIT_OP_LIMIT])(struct build *b) = {
#define DECOMPOSE(row, mode)
#define DECOMPOSE_OTHER(row, form) [FRIT_OP_##row] = decompose_##row##_##form,
#include "graph/decompose/decompose.def"
};

bool decompose_has_other(uint32_t op)
{
    return op < FRIT_OP_LIMIT && other_forms[op];
}

/* In f16 and bf16 adding the bias would round a second time. */
bool decompose_fits_other(const struct op_call *call)
{
    const frit_attrs_conv *conv = call->attrs;

    return call->op == FRIT_OP_conv && conv && conv->groups == 1 && call->in[0].type.rank == 4 &&
           (!is_narrow(call->in[0].type.dtype) || call->n_in < 3 ||
            call->in[2].kind != FRIT_OPERAND_TENSOR);
}

bool decompose_has(uint32_t op, uint32_t n_in)
{
    if (op < FRIT_OP_LIMIT)
        return rows[op].fn && (op != FRIT_OP_cat || n_in > FRIT_OP_MAX_IN);
    return custom_at(op) && custom_at(op)->decompose;
}

/* The types of the results: a checked call passes again, but writes, so a copy is checked. */
static frit_status infer(struct build *b, struct op_type out[FRIT_OP_MAX_OUT])
{
    struct op_call call = *b->call;
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

static bool all_empty(const struct op_type out[FRIT_OP_MAX_OUT])
{
    bool some = false;

    for (int k = 0; k < FRIT_OP_MAX_OUT; k++) {
        if (out[k].dtype != FRIT_NO_DTYPE && !shape_empty(&out[k]))
            return false;
        some = some || out[k].dtype != FRIT_NO_DTYPE;
    }
    return some;
}

static term fill(struct build *b, const struct op_type *type)
{
    return b_full(b, type->dtype, scalar_i(0), type->rank, type->dims);
}

/* Results without elements, the first of them returned. */
static term fill_all(struct build *b, const struct op_type out[FRIT_OP_MAX_OUT])
{
    for (int k = 1; k < FRIT_OP_MAX_OUT; k++) {
        if (out[k].dtype != FRIT_NO_DTYPE)
            b->results[k] = fill(b, &out[k]);
    }
    return fill(b, &out[0]);
}

static void narrow_others(struct build *b, const struct op_type out[FRIT_OP_MAX_OUT])
{
    for (int k = 1; k < FRIT_OP_MAX_OUT; k++) {
        if (out[k].dtype != FRIT_NO_DTYPE)
            b->results[k] = b_cast(b, b->results[k], out[k].dtype);
    }
}

/* The results that are wanted become the graph's, in their order. */
static frit_status give_results(struct build *b, const struct op_type out[FRIT_OP_MAX_OUT],
                                term first)
{
    b->results[0] = first;
    for (int k = 0; k < FRIT_OP_MAX_OUT; k++) {
        if (out[k].dtype == FRIT_NO_DTYPE)
            continue;
        assert(op_type_equal(&b->graph->values[b->results[k].value].type, &out[k]));
        TRY(graph_output(b->graph, b->results[k].value, b->err));
    }
    return FRIT_OK;
}

frit_status decompose(const struct op_call *call, struct graph *graph, frit_err *err)
{
    struct build b = {.graph = graph, .call = call, .err = err};
    struct op_type out[FRIT_OP_MAX_OUT];
    term result;

    const bool is_other = decompose_fits_other(call);

    if (!decompose_has(call->op, call->n_in) && !is_other)
        return fail(err, FRIT_UNSUPPORTED, "%s: there is no form of this op in core ops",
                    op_row(call->op)->name);
    TRY(infer(&b, out));
    TRY(take_inputs(&b));
    b.dtype = call->n_in ? call->in[0].type.dtype : b.out.dtype;
    if (all_empty(out)) {
        result = fill_all(&b, out);
    } else if (is_other) {
        result = other_forms[call->op](&b);
    } else if (call->op >= FRIT_OP_CUSTOM) {
        return decompose_custom(call, out, graph, err);
    } else if (rows[call->op].mode == WIDE && is_narrow(b.dtype)) {
        widen(&b);
        result = rows[call->op].fn(&b);
        result = b_cast(&b, result, b.out.dtype);
        narrow_others(&b, out);
    } else {
        result = rows[call->op].fn(&b);
    }
    if (b.status)
        return b.status;
    return give_results(&b, out, result);
}

frit_status decompose_op(const struct graph *from, const struct graph_op *op, struct graph *graph,
                         frit_err *err)
{
    struct op_call call = {.op = op->op, .n_in = op->n_in};
    const frit_op_info *row = op_row(op->op);
    struct arena arena = {0};
    union attrs attrs;
    frit_status st;

    call.in = arena_array(&arena, op->n_in + 1, sizeof(*call.in));
    if (!call.in)
        return fail_memory(err, op->n_in * sizeof(*call.in));
    graph_operands(from, op->in, op->n_in, call.in);
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind == FRIT_OPERAND_SCALAR)
            call.in[i].type = (struct op_type){.dtype = op->in[i].dtype};
    }
    for (uint32_t k = 0; k < op->n_out; k++)
        call.wanted |= (uint32_t)(op->out[k] != GRAPH_NO_VALUE) << k;
    if (op->attrs) {
        memcpy(&attrs, op->attrs, op_record(row)->size);
        call.attrs = &attrs;
    }
    st = decompose(&call, graph, err);
    arena_fini(&arena);
    return st;
}

frit_status decompose_fits(const struct graph *part, const struct graph *whole,
                           const struct graph_op *op, frit_err *err)
{
    uint32_t next = 0;
    char now[128], then[128];

    for (uint32_t k = 0; k < op->n_out; k++) {
        const struct op_type *made, *wanted;

        if (op->out[k] == GRAPH_NO_VALUE)
            continue;
        made = &part->values[part->outputs[next++]].type;
        wanted = &whole->values[op->out[k]].type;
        if (!op_type_equal(made, wanted))
            return fail(err, FRIT_INTERNAL, "%s: result %s is %s now, it was %s when recorded",
                        op_row(op->op)->name, op_row(op->op)->out[k].name,
                        op_type_text(made, now, sizeof(now)),
                        op_type_text(wanted, then, sizeof(then)));
    }
    return FRIT_OK;
}
