/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/emit.h"

#include <string.h>

#include "base/fail.h"
#include "graph/attrs.h"
#include "graph/dtype.h"
#include "graph/scalar.h"
#include "onnx/fold.h"
#include "onnx/problem.h"
#include "onnx/simplify.h"

/* ---- operands of the node ---- */

bool e_has(const struct import_node *n, uint32_t index)
{
    return index < n->n_in && n->in[index];
}

val *e_in(struct import_node *n, uint32_t index)
{
    if (e_has(n, index))
        return n->failed ? NULL : n->in[index];
    problem_node(n, "operand %u is missing", index);
    return NULL;
}

static const char *operand_name(const struct import_node *n, uint32_t index)
{
    return index < n->proto->n_input ? n->proto->input[index] : "";
}

/* A known operand, or a problem. */
static val *known_in(struct import_node *n, uint32_t index)
{
    val *x = e_in(n, index);

    if (!x || (x->data && fold_reads(x->type.dtype)))
        return x;
    n->import->wants_values = true;
    problem_node(n,
                 "the values of operand %u ('%s') must be known before anything runs, but they "
                 "are computed, or are an input that is given no values",
                 index, operand_name(n, index));
    return NULL;
}

static int64_t whole_of(const val *x, int64_t index)
{
    struct fold_number number = fold_get(x->type.dtype, x->data, index);

    return e_is_float(x) ? fold_whole(number.real) : number.whole;
}

bool e_is_whole(struct import_node *n, const val *x)
{
    if (e_is_float(x))
        problem_node(n, "an operand that names places or dims is %s, whole numbers are wanted",
                     dtype_name(x->type.dtype));
    return !e_is_float(x);
}

bool e_ints(struct import_node *n, uint32_t index, struct ints *out)
{
    val *x = known_in(n, index);

    out->count = 0;
    if (!x || !e_is_whole(n, x))
        return false;
    if (x->type.rank > 1 || op_elements(&x->type) > 64) {
        problem_node(n, "operand %u ('%s') is no short list of numbers", index,
                     operand_name(n, index));
        return false;
    }
    out->count = (uint32_t)op_elements(&x->type);
    for (uint32_t i = 0; i < out->count; i++)
        out->at[i] = whole_of(x, i);
    return true;
}

bool e_ints_or_attr(struct import_node *n, uint32_t index, const char *attr, struct ints *out)
{
    return e_has(n, index) ? e_ints(n, index, out) : attr_ints(n, attr, out);
}

int64_t e_int(struct import_node *n, uint32_t index, int64_t otherwise)
{
    val *x = e_has(n, index) ? known_in(n, index) : NULL;

    return x && op_elements(&x->type) ? whole_of(x, 0) : otherwise;
}

double e_real(struct import_node *n, uint32_t index, double otherwise)
{
    val *x = e_has(n, index) ? known_in(n, index) : NULL;

    return x && op_elements(&x->type) ? fold_get(x->type.dtype, x->data, 0).real : otherwise;
}

val *e_scalar_in(struct import_node *n, uint32_t index, double otherwise)
{
    val *x = e_has(n, index) ? known_in(n, index) : NULL;

    if (x && op_elements(&x->type))
        return e_is_float(x) ? e_num(n, fold_get(x->type.dtype, x->data, 0).real)
                             : e_whole(n, whole_of(x, 0));
    return e_num(n, otherwise);
}

uint32_t e_axis(struct import_node *n, int64_t axis, uint32_t rank)
{
    if (axis >= -(int64_t)rank && axis < (int64_t)rank)
        return (uint32_t)(axis < 0 ? axis + rank : axis);
    problem_node(n, "axis %lld of a tensor with %u dims", (long long)axis, rank);
    return 0;
}

uint32_t e_out_count(const struct import_node *n)
{
    return n->n_out;
}

bool e_wants(const struct import_node *n, uint32_t index)
{
    return index < n->n_out && n->proto->output[index][0];
}

/* ---- values ---- */

frit_dims e_dims(const val *x)
{
    frit_dims dims = {.rank = x ? x->type.rank : 0};

    if (x)
        memcpy(dims.dim, x->type.dims, x->type.rank * sizeof(dims.dim[0]));
    return dims;
}

uint32_t e_rank(const val *x)
{
    return x ? x->type.rank : 0;
}

uint32_t e_dtype(const val *x)
{
    return x ? x->type.dtype : FRIT_F32;
}

int64_t e_elements(const val *x)
{
    return x ? op_elements(&x->type) : 0;
}

bool e_is_float(const val *x)
{
    return x && dtype_class(x->type.dtype) == FRIT_DTYPE_FLOAT;
}

bool e_is_signed(const val *x)
{
    return x && dtype_class(x->type.dtype) == FRIT_DTYPE_INT;
}

static val *new_value(struct import_node *n)
{
    return n->failed ? NULL : import_alloc(n->import, sizeof(val));
}

static val *number(struct import_node *n, frit_scalar scalar)
{
    val *x = new_value(n);

    if (x)
        *x = (val){.kind = VALUE_SCALAR, .scalar = scalar, .number = GRAPH_NO_VALUE};
    return x;
}

val *e_num(struct import_node *n, double value)
{
    return number(n, scalar_f(value));
}

val *e_whole(struct import_node *n, int64_t value)
{
    return number(n, scalar_i(value));
}

val *e_none(struct import_node *n)
{
    return n->failed ? NULL : &n->import->absent;
}

val *e_known(struct import_node *n, uint32_t dtype, double value)
{
    const struct op_type type = {.dtype = dtype};
    void *data = n->failed ? NULL : import_elements(n->import, sizeof(double));

    if (!data)
        return NULL;
    fold_put(dtype, data, 0, (struct fold_number){fold_whole(value), value});
    return import_constant(n->import, &type, data, NULL);
}

val *e_known_ints(struct import_node *n, uint32_t dtype, const int64_t *values, int64_t count)
{
    const struct op_type type = {.dtype = dtype, .rank = 1, .dims = {count}};
    void *data = n->failed ? NULL : import_elements(n->import, (size_t)count * sizeof(int64_t) + 1);

    if (!data)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        fold_put(dtype, data, i, (struct fold_number){values[i], (double)values[i]});
    return import_constant(n->import, &type, data, NULL);
}

/* ---- emitting ---- */

/* An op that is being emitted. */
struct emission {
    uint32_t op;
    const frit_op_info *row;
    const void *attrs;
    uint32_t n_in;
    uint32_t wanted; /* as in struct graph_call */
    val *const *in;
    struct graph_operand *operands;
};

/* Whether a known tensor may be a number in this slot: it has one element, and a tensor of the same
 * letter whose rank is no lower stands beside it. */
static bool may_be_scalar(const struct emission *e, uint32_t index)
{
    const frit_slot_info *slot = op_slot(e->row, e->n_in, index);
    const val *x = e->in[index];

    if (!(e->row->traits & FRIT_OP_SCALARS) || !x->data || op_elements(&x->type) != 1 ||
        !fold_reads(x->type.dtype) || x->type.dtype == FRIT_BOOL)
        return false;
    for (uint32_t k = 0; k < e->n_in; k++) {
        const val *y = e->in[k];

        if (k != index && e->operands[k].kind == FRIT_OPERAND_TENSOR && y->kind == VALUE_TENSOR &&
            y->type.dtype == x->type.dtype && y->type.rank >= x->type.rank &&
            op_slot(e->row, e->n_in, k)->letter == slot->letter)
            return true;
    }
    return false;
}

static frit_scalar scalar_of(const val *x)
{
    struct fold_number number = fold_get(x->type.dtype, x->data, 0);

    if (e_is_float(x))
        return scalar_f(number.real);
    return e_is_signed(x) ? scalar_i(number.whole) : scalar_u((uint64_t)number.whole);
}

static void set_operands(struct emission *e)
{
    for (uint32_t i = 0; i < e->n_in; i++) {
        e->operands[i] = (struct graph_operand){.kind = FRIT_OPERAND_TENSOR};
        if (e->in[i]->kind == VALUE_SCALAR)
            e->operands[i] =
                (struct graph_operand){.kind = FRIT_OPERAND_SCALAR, .scalar = e->in[i]->scalar};
        else if (e->in[i]->kind == VALUE_ABSENT)
            e->operands[i].kind = FRIT_OPERAND_ABSENT;
    }
    for (uint32_t i = 0; i < e->n_in; i++) {
        if (e->operands[i].kind == FRIT_OPERAND_TENSOR && may_be_scalar(e, i))
            e->operands[i] =
                (struct graph_operand){.kind = FRIT_OPERAND_SCALAR, .scalar = scalar_of(e->in[i])};
    }
}

static val *result(struct import_node *n, const struct op_type *type, uint32_t value)
{
    val *x = new_value(n);

    if (x)
        *x = (val){.kind = VALUE_TENSOR, .type = *type, .number = value};
    return x;
}

/* The op's own check failed: its words are the problem. */
static bool refuse(struct import_node *n, frit_status st, const frit_err *err)
{
    if (st == FRIT_NO_HOST_MEMORY)
        import_fail_memory(n->import, 0);
    problem_node(n, "%s", err->text);
    return false;
}

static bool append(struct import_node *n, struct emission *e, val **out)
{
    struct onnx_import *import = n->import;
    const struct graph_call call = {
        .op = e->op, .n_in = e->n_in, .wanted = e->wanted, .in = e->operands, .attrs = e->attrs};
    uint32_t values[FRIT_OP_MAX_OUT];
    frit_err err = ERR_INIT;
    frit_status st = FRIT_OK;

    if (!import->budget)
        return problem_node(n, "the model unrolls to more ops than a program may have"), false;
    import->budget--;
    for (uint32_t i = 0; i < e->n_in && !st; i++) {
        if (e->operands[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        st = import_place(import, e->in[i]);
        e->operands[i].value = e->in[i]->number;
    }
    if (st) {
        import->status = st;
        n->failed = true;
        return false;
    }
    st = graph_append(import->graph, &call, values, &err);
    if (st)
        return refuse(n, st, &err);
    for (uint32_t i = 0; i < op_n_out(e->row); i++) {
        if (values[i] != GRAPH_NO_VALUE)
            out[i] = result(n, &import->graph->values[values[i]].type, values[i]);
    }
    if (out[0] && op_is_view(e->op)) {
        out[0]->is_strided = e->op != FRIT_OP_reshape || e->in[0]->is_strided;
        if (e->op == FRIT_OP_reshape)
            out[0]->reshaped = e->in[0]->reshaped ? e->in[0]->reshaped : e->in[0];
    }
    return !n->failed;
}

/* Whether all operands are known and the op is one of fold.h's. */
static bool is_known(const struct emission *e)
{
    if (!fold_knows(e->op))
        return false;
    for (uint32_t i = 0; i < e->n_in; i++) {
        const val *x = e->in[i];

        if (x->kind == VALUE_ABSENT)
            return false;
        if (x->kind == VALUE_TENSOR &&
            (!x->data || op_elements(&x->type) > FOLD_MAX_ELEMENTS || !fold_reads(x->type.dtype)))
            return false;
    }
    return true;
}

/* Computes the op; true with *out NULL: the result is too large for that. */
static bool compute(struct import_node *n, const struct emission *e, val **out)
{
    struct fold fold = {.op = e->op, .n_in = e->n_in};
    struct fold_input *in = import_alloc(n->import, (e->n_in + 1) * sizeof(*in));
    struct op_input *inputs = import_alloc(n->import, (e->n_in + 1) * sizeof(*inputs));
    struct op_type types[FRIT_OP_MAX_OUT];
    union attrs attrs;
    struct op_call call = {.op = e->op, .n_in = e->n_in, .in = inputs, .attrs = &attrs};
    frit_err err = ERR_INIT;
    frit_status st;
    void *data;

    *out = NULL;
    if (!in || !inputs)
        return false;
    for (uint32_t i = 0; i < e->n_in; i++) {
        inputs[i].kind = e->operands[i].kind;
        inputs[i].type = e->in[i]->type;
        inputs[i].scalar = e->operands[i].scalar;
    }
    st = attrs_copy(e->row, e->attrs, &attrs, &err);
    if (!st)
        st = op_check(&call, types, &err);
    if (st)
        return refuse(n, st, &err);
    if (op_elements(&types[0]) > FOLD_MAX_ELEMENTS || !fold_reads(types[0].dtype))
        return true;
    for (uint32_t i = 0; i < e->n_in; i++)
        import_spend(n->import, (uint64_t)op_elements(&inputs[i].type));
    for (uint32_t i = 0; i < e->n_in; i++)
        in[i] = (struct fold_input){inputs[i].type, NULL, inputs[i].scalar};
    for (uint32_t i = 0; i < e->n_in; i++)
        in[i].data = e->operands[i].kind == FRIT_OPERAND_TENSOR ? e->in[i]->data : NULL;
    data =
        import_elements(n->import, frit_storage_bytes(types[0].dtype, op_elements(&types[0])) + 1);
    if (!data)
        return false;
    fold.in = in;
    fold.attrs = &attrs;
    fold.out = types[0];
    fold.result = data;
    fold_run(&fold);
    *out = import_constant(n->import, &types[0], data, NULL);
    return *out != NULL;
}

static bool emit(struct import_node *n, struct emission *e, val **out)
{
    bool is_whole = true;

    memset(out, 0, op_n_out(e->row) * sizeof(val *));
    for (uint32_t i = 0; i < e->n_in; i++) {
        is_whole = is_whole && e->in[i];
        if (!e->in[i])
            problem_node(n, "operand %u cannot be computed", i);
    }
    if (!is_whole || n->failed || n->import->status)
        return false;
    e->operands = import_alloc(n->import, (e->n_in + 1) * sizeof(*e->operands));
    if (!e->operands)
        return false;
    set_operands(e);
    if (is_known(e)) {
        if (!compute(n, e, out))
            return false;
        if (*out)
            return true;
    }
    *out = simplify(n, e->op, e->attrs, e->n_in, e->in, e->operands);
    return *out || append(n, e, out);
}

bool e_ops(struct import_node *n, uint32_t op, const void *attrs, uint32_t n_in, val *const *in,
           val **out)
{
    struct emission e = {
        .op = op, .row = op_row(op), .attrs = attrs, .n_in = n_in, .wanted = UINT32_MAX, .in = in};

    return emit(n, &e, out);
}

val *e_op(struct import_node *n, uint32_t op, const void *attrs, uint32_t n_in, val *const *in)
{
    struct emission e = {.op = op, .row = op_row(op), .attrs = attrs, .n_in = n_in, .in = in};
    val *out[FRIT_OP_MAX_OUT];

    return emit(n, &e, out) ? out[0] : NULL;
}

void e_out(struct import_node *n, uint32_t index, val *x)
{
    if (index < n->n_out && !n->failed)
        n->out[index] = x;
}
