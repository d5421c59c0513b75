/* SPDX-License-Identifier: Apache-2.0 */
/* Emits nodes, and the offsets at which they load and store.
 *
 * Emitted values are cached in slots: one per node, index expression, dim and parameter.  A log of
 * overwritten slots lets expr_release restore the state at a mark.  Equal offsets share an index
 * expression.  Of its factors only 1 and -1 are constants in the module, any other is a parameter.
 * Sums begin with outer dims, so that terms uniform in a group come first. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "lower/expr/expr_emit.h"
#include "lower/rows/lower_cast.h"
#include "lower/rows/packed.h"
#include "lower/rows/rows.h"

enum { MAX_CONST_FACTOR = 4 }; /* such factors of a shifted dim make modules of their own */

/* ---- slots ---- */

static void set_slot(struct expr *e, uint32_t *slot, uint32_t value)
{
    struct expr_emitter *emit = e->emit;

    if (!array_grow(&emit->log, &emit->log_capacity, emit->n_log, 1, sizeof(*emit->log))) {
        e->s->module->failed = true;
        return;
    }
    emit->log[emit->n_log++] = (struct change){slot, *slot};
    *slot = value;
}

uint32_t expr_mark(const struct expr *e)
{
    return e->emit->n_log;
}

void expr_release(struct expr *e, uint32_t mark)
{
    struct expr_emitter *emit = e->emit;

    while (emit->n_log > mark) {
        emit->n_log--;
        *emit->log[emit->n_log].slot = emit->log[emit->n_log].was;
    }
}

void expr_set(struct expr *e, uint32_t dim, uint32_t value)
{
    set_slot(e, &e->emit->dim[dim], value);
}

bool expr_can_shift(const struct expr *e, uint32_t dim)
{
    for (uint32_t i = 0; i < e->space.n_leaves; i++)
        if (e->space.leaf[i].of.k[dim])
            return false;
    for (uint32_t i = 0; i < e->n_nodes; i++)
        for (uint32_t k = 0; k < e->nodes[i].n_within; k++)
            if (e->nodes[i].within[k].at.k[dim])
                return false;
    return true;
}

void expr_shift(struct expr *e, uint32_t dim, uint32_t by)
{
    assert(by < EXPR_MAX_SHIFT);
    set_slot(e, &e->emit->shift_dim, dim);
    set_slot(e, &e->emit->shift, by);
}

void expr_set_number(struct expr *e, uint32_t value)
{
    struct space_expr number = {0};
    int64_t stride = 1;

    for (uint32_t d = e->space.n_dims; d-- > 0;) {
        number.k[d] = stride;
        stride *= e->space.extent[d];
    }
    for (uint32_t i = 0; i < e->emit->n_indices; i++)
        if (space_equal(&e->emit->indices[i].at, &number))
            set_slot(e, &e->emit->indices[i].value, value);
}

void expr_mask(struct expr *e, uint32_t mask)
{
    set_slot(e, &e->emit->mask, mask);
}

void expr_bind(struct expr *e, uint32_t node, uint32_t value)
{
    set_slot(e, &e->emit->value[node], value);
}

uint32_t expr_emitted(const struct expr *e, uint32_t node)
{
    return e->emit->value[node];
}

/* ---- parameters ---- */

enum kir_type expr_type(const struct expr *e, uint32_t node)
{
    return kir_type_of(packed_stored(e->s->block->values[e->nodes[node].value].dtype));
}

/* A parameter for a number of elements.  Where possible it is multiplied by a constant power of 2,
 * so that the module shows the alignment of accesses. */
static uint32_t element_param(struct expr *e, int64_t number)
{
    enum kir_type type = kir_index_type(e->s->module);
    int64_t align_elems = e->emit->align_elems;

    while (number % align_elems)
        align_elems /= 2;
    if (align_elems == 1)
        return sched_add_index(e->s, number);
    return kir_binary(e->s->module, KIR_mul, sched_add_index(e->s, number / align_elems),
                      kir_const_i(e->s->module, type, align_elems));
}

static void phase_index(struct expr *e, struct index *index)
{
    index->value = index->partial = index->c = KIR_NONE;
    index->done = 0;
    if (index->at.c)
        index->c = element_param(e, index->at.c);
    for (uint32_t v = 0; v < SPACE_VARS; v++) {
        int64_t k = index->at.k[v];

        if (k > 1 && k <= e->const_factor)
            index->k[v] = kir_const_i(e->s->module, kir_index_type(e->s->module), k);
        else
            index->k[v] = k < -1 || k > 1 ? element_param(e, k) : KIR_NONE;
    }
}

static void phase_leaf(struct expr *e, struct leaf *leaf, const struct space_leaf *of)
{
    int64_t last = of->by - 1, low, high;

    leaf->value = KIR_NONE;
    switch ((enum space_kind)of->kind) {
    case SPACE_QUOTIENT:
        leaf->by = sched_add_divisor(e->s, of->by);
        break;
    case SPACE_LOADED:
        leaf->last = sched_add_param(e->s, expr_type(e, leaf->node), (uint64_t)last);
        break;
    case SPACE_BOUND:
        leaf->value = sched_add_bound(e->s, of->source, of->of.c, of->of.c + last, -of->of.c);
        break;
    case SPACE_STEPS:
        leaf->first = sched_add_bound(e->s, of->source, 0, last, 0);
        leaf->second = sched_add_bound(e->s, of->step, -last, last, 0);
        break;
    case SPACE_RATIO:
    case SPACE_REST: /* a divisor beyond the dividend's range always gives quotient 0 */
        space_range(&e->space, &of->of, &low, &high);
        high = (high > -low ? high : -low) + 1;
        leaf->first = sched_add_bound(e->s, of->source, -high, high, of->by);
        break;
    }
}

/* The dtype in which a scalar operand is passed. */
static uint32_t scalar_dtype(const struct expr *e, const struct block_op *op, uint32_t i)
{
    uint32_t dtype = op->in[i].dtype;
    bool wide = lower_row_of(op->id)->scalars == LOWER_WIDE && e->s->target->f64;

    return wide && lower_is_float(dtype) ? FRIT_F64 : dtype;
}

static uint32_t to_bool(struct expr *e, uint32_t word)
{
    return kir_binary(e->s->module, KIR_ne, word, kir_const_i(e->s->module, KIR_I32, 0));
}

static void phase_scalars(struct expr *e, const struct block_op *op)
{
    struct expr_emitter *emit = e->emit;

    for (uint32_t i = 0; i < op->n_in; i++) {
        const struct block_input *in = &op->in[i];
        bool is_bool = in->dtype == FRIT_BOOL;

        if (in->kind != FRIT_OPERAND_SCALAR || emit->scalar[in->scalar] != KIR_NONE)
            continue;
        emit->scalar[in->scalar] = sched_add_scalar(
            e->s, in->scalar, is_bool ? KIR_I32 : kir_type_of(scalar_dtype(e, op, i)));
        if (is_bool)
            emit->scalar[in->scalar] = to_bool(e, emit->scalar[in->scalar]);
    }
    for (uint32_t i = op->n_scalars - op->n_extra; i < op->n_scalars; i++)
        if (emit->scalar[op->first_scalar + i] == KIR_NONE)
            emit->scalar[op->first_scalar + i] =
                sched_add_scalar(e->s, op->first_scalar + i, KIR_I64);
}

/* The fill value of a GUARD, emitted once per phase. */
static uint32_t phase_fill(struct expr *e, const struct expr_node *node)
{
    uint32_t dtype = e->s->block->values[node->value].dtype, from = dtype, word;
    struct kir_module *m = e->s->module;

    if (node->fill.scalar == BLOCK_NONE)
        return lower_const(m, dtype, node->fill.number);
    if (dtype == FRIT_BOOL)
        return to_bool(e, sched_add_scalar(e->s, node->fill.scalar, KIR_I32));
    if (lower_is_float(dtype))
        from = e->s->target->f64 ? FRIT_F64 : FRIT_F32;
    word = sched_add_scalar(e->s, node->fill.scalar, kir_type_of(from));
    return from == dtype ? lower_fit(m, dtype, word) : lower_convert(m, from, dtype, word);
}

static void phase_guards(struct expr *e)
{
    struct expr_emitter *emit = e->emit;

    for (uint32_t i = 0; i < emit->n_checks; i++) {
        emit->checks[i].value = KIR_NONE;
        emit->checks[i].param = sched_add_index(e->s, emit->checks[i].end);
    }
    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].kind == EXPR_GUARD && e->nodes[i].in[1] == BLOCK_NONE)
            emit->fill[i] = phase_fill(e, &e->nodes[i]);
}

void expr_phase(struct expr *e)
{
    const struct block *block = e->s->block;
    struct expr_emitter *emit = e->emit;

    emit->n_log = 0;
    emit->mask = KIR_NONE;
    emit->shift = 0;
    memset(emit->dim, 0xff, sizeof(emit->dim));
    memset(emit->value, 0xff, e->n_nodes * sizeof(*emit->value));
    memset(emit->scalar, 0xff, block->n_scalars * sizeof(*emit->scalar));
    for (uint32_t i = 0; i < emit->n_indices; i++)
        phase_index(e, &emit->indices[i]);
    for (uint32_t i = 0; i < e->space.n_leaves; i++)
        phase_leaf(e, &emit->leaf[i], &e->space.leaf[i]);
    for (uint32_t i = 0; i < e->n_nodes; i++)
        for (uint32_t k = 0; e->nodes[i].kind == EXPR_JOIN && k + 1 < e->nodes[i].n_in; k++)
            emit->end[i][k] = sched_add_index(e->s, e->nodes[i].end[k]);
    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].kind == EXPR_OP)
            phase_scalars(e, &block->ops[block->values[e->nodes[i].value].maker]);
    phase_guards(e);
}

/* ---- index expressions ---- */

/* The value of a variable; KIR_NONE while it depends on a dim that is not set. */
static uint32_t var_value(struct expr *e, uint32_t var);

/* sum + k * value; a sum of KIR_NONE is 0. */
static uint32_t add_term(struct expr *e, uint32_t sum, int64_t k, uint32_t param, uint32_t value)
{
    if (k == -1)
        return sum == KIR_NONE ? kir_binary(e->s->module, KIR_neg, value, KIR_NONE)
                               : kir_binary(e->s->module, KIR_sub, sum, value);
    if (k != 1)
        value = kir_binary(e->s->module, KIR_mul, value, param);
    return sum == KIR_NONE ? value : kir_binary(e->s->module, KIR_add, sum, value);
}

/* Adds all terms whose variables have values to the partial sum. */
static void add_ready_terms(struct expr *e, struct index *index)
{
    uint32_t sum = index->partial, done = index->done;
    bool all = true;

    if (index->value != KIR_NONE)
        return;
    if (sum == KIR_NONE)
        sum = index->c;
    for (uint32_t v = 0; v < SPACE_VARS; v++) {
        uint32_t value;

        if (!index->at.k[v] || done >> v & 1)
            continue;
        value = var_value(e, v);
        if (value == KIR_NONE) {
            all = false;
            continue;
        }
        sum = add_term(e, sum, index->at.k[v], index->k[v], value);
        done |= 1u << v;
    }
    if (done != index->done) {
        set_slot(e, &index->partial, sum);
        set_slot(e, &index->done, done);
    }
    if (all) {
        enum kir_type type = kir_index_type(e->s->module);

        set_slot(e, &index->value, sum == KIR_NONE ? kir_const_i(e->s->module, type, 0) : sum);
    }
}

/* What the shift adds to an index: a constant of the module where the factor is small. */
static uint32_t shifted(struct expr *e, const struct index *index)
{
    const struct expr_emitter *emit = e->emit;
    enum kir_type type = kir_index_type(e->s->module);
    int64_t k = index->at.k[emit->shift_dim];
    uint32_t by;

    if (k >= -MAX_CONST_FACTOR && k <= MAX_CONST_FACTOR)
        by = kir_const_i(e->s->module, type, k * emit->shift);
    else
        by = kir_binary(e->s->module, KIR_mul, index->k[emit->shift_dim],
                        kir_const_i(e->s->module, type, emit->shift));
    return kir_binary(e->s->module, KIR_add, index->value, by);
}

static uint32_t index_value(struct expr *e, uint32_t number)
{
    struct index *index = &e->emit->indices[number];

    add_ready_terms(e, index);
    if (!e->emit->shift || index->value == KIR_NONE || !index->at.k[e->emit->shift_dim])
        return index->value;
    return shifted(e, index);
}

/* KIR_B: check number `number` holds; KIR_NONE while it depends on a dim that is not set. */
static uint32_t check_value(struct expr *e, uint32_t number)
{
    struct check *check = &e->emit->checks[number];
    uint32_t at = check->value == KIR_NONE ? index_value(e, check->index) : KIR_NONE;

    if (at != KIR_NONE)
        set_slot(e, &check->value, kir_binary(e->s->module, KIR_ult, at, check->param));
    return check->value;
}

/* Whether the node is emitted or can be with the dims that are set. */
static bool is_ready(struct expr *e, uint32_t node)
{
    const struct expr_node *n = &e->nodes[node];

    if (e->emit->value[node] != KIR_NONE)
        return true;
    if ((n->kind == EXPR_LOAD || n->indexed) &&
        index_value(e, e->emit->node_index[node]) == KIR_NONE)
        return false;
    for (uint32_t i = 0; i < n->n_within; i++)
        if (check_value(e, e->emit->node_check[e->emit->first_check[node] + i]) == KIR_NONE)
            return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != BLOCK_NONE && !is_ready(e, n->in[i]))
            return false;
    return n->kind != EXPR_EXTERNAL;
}

/* The loaded index, clamped to 0 .. extent - 1, in the index type. */
static uint32_t loaded_value(struct expr *e, const struct leaf *leaf)
{
    enum kir_type type = expr_type(e, leaf->node), wanted = kir_index_type(e->s->module);
    uint32_t value = expr_value(e, leaf->node);

    value = kir_binary(e->s->module, KIR_smax, value, kir_const_i(e->s->module, type, 0));
    value = kir_binary(e->s->module, KIR_smin, value, leaf->last);
    if (type == wanted)
        return value;
    return kir_binary(e->s->module, wanted == KIR_I64 ? KIR_i64 : KIR_i32, value, KIR_NONE);
}

static uint32_t emit_leaf(struct expr *e, const struct leaf *leaf, uint32_t kind, uint32_t of)
{
    switch ((enum space_kind)kind) {
    case SPACE_STEPS:
        return kir_binary(e->s->module, KIR_add, leaf->first,
                          kir_binary(e->s->module, KIR_mul, of, leaf->second));
    case SPACE_RATIO:
        return kir_binary(e->s->module, KIR_sdiv, of, leaf->first);
    case SPACE_REST:
        return kir_binary(e->s->module, KIR_srem, of, leaf->first);
    default:
        return sched_divide(e->s, &leaf->by, of);
    }
}

static uint32_t var_value(struct expr *e, uint32_t var)
{
    struct leaf *leaf;
    uint32_t kind, of;

    if (var < SPACE_DIMS)
        return e->emit->dim[var];
    leaf = &e->emit->leaf[var - SPACE_DIMS];
    kind = e->space.leaf[var - SPACE_DIMS].kind;
    if (leaf->value != KIR_NONE)
        return leaf->value;
    if (kind == SPACE_LOADED) {
        if (!e->emit->hoisting && is_ready(e, leaf->node))
            set_slot(e, &leaf->value, loaded_value(e, leaf));
        return leaf->value;
    }
    of = index_value(e, leaf->index);
    if (of != KIR_NONE)
        set_slot(e, &leaf->value, emit_leaf(e, leaf, kind, of));
    return leaf->value;
}

void expr_hoist(struct expr *e)
{
    e->emit->hoisting = true;
    for (uint32_t i = 0; i < e->emit->n_indices; i++)
        add_ready_terms(e, &e->emit->indices[i]);
    for (uint32_t i = 0; i < e->emit->n_checks; i++)
        check_value(e, i);
    e->emit->hoisting = false;
}

/* ---- nodes ---- */

static uint32_t zero_of(struct kir_module *m, enum kir_type type)
{
    if (type == KIR_B)
        return kir_const_b(m, false);
    return type == KIR_F32 || type == KIR_F64 ? kir_const_f(m, type, 0) : kir_const_i(m, type, 0);
}

static uint32_t emit_load(struct expr *e, uint32_t node)
{
    const struct block_value *value = &e->s->block->values[e->nodes[node].value];
    enum kir_type type = expr_type(e, node);
    uint32_t at = index_value(e, e->emit->node_index[node]), mask = e->emit->mask;

    if (mask == KIR_NONE)
        return kir_emit_as(e->s->module, KIR_load, type, value->input, at, KIR_NONE, KIR_NONE);
    return kir_emit_as(e->s->module, KIR_load_if, type, value->input, at, mask,
                       zero_of(e->s->module, type));
}

static uint32_t emit_op(struct expr *e, uint32_t number)
{
    const struct expr_node *node = &e->nodes[number];
    const struct block_value *value = &e->s->block->values[node->value];
    const struct block_op *op = &e->s->block->ops[value->maker];
    const struct lower_row *row = lower_row_of(op->id);
    struct lower l = {.m = e->s->module,
                      .target = e->s->target,
                      .dtype = value->dtype,
                      .n = node->n_in,
                      .at = KIR_NONE,
                      .attrs = op->attrs};
    uint32_t result;

    for (uint32_t i = 0; i < node->n_in; i++) {
        const struct block_input *in = &op->in[i % op->n_in];

        l.in_dtype[i] = in->kind == FRIT_OPERAND_TENSOR ? e->s->block->values[in->value].dtype
                                                        : scalar_dtype(e, op, i);
        l.in[i] =
            node->in[i] != BLOCK_NONE ? expr_value(e, node->in[i]) : e->emit->scalar[in->scalar];
    }
    if (op->n_extra == 2) {
        l.seed = e->emit->scalar[op->first_scalar + op->n_scalars - 2];
        l.counter = e->emit->scalar[op->first_scalar + op->n_scalars - 1];
    }
    if (node->indexed)
        l.at = index_value(e, e->emit->node_index[number]);
    result = row->fn(&l);
    if (row->result == LOWER_EXACT || (row->result == LOWER_WRAPS && lower_is_float(l.dtype)))
        return result;
    return lower_fit(l.m, l.dtype, result);
}

/* a and b; KIR_NONE is true. */
static uint32_t both(struct expr *e, uint32_t a, uint32_t b)
{
    return a == KIR_NONE ? b : b == KIR_NONE ? a : kir_binary(e->s->module, KIR_and, a, b);
}

/* An operand whose loads are masked with `mask` too.  It is not cached, since other uses have other
 * masks. */
static uint32_t masked_value(struct expr *e, uint32_t node, uint32_t mask)
{
    uint32_t mark = expr_mark(e), value;

    expr_mask(e, both(e, e->emit->mask, mask));
    value = expr_value(e, node);
    expr_release(e, mark);
    return value;
}

/* Computes all operands, each with loads in its own piece only, and selects the one that contains
 * the element. */
static uint32_t emit_join(struct expr *e, uint32_t number)
{
    const struct expr_node *node = &e->nodes[number];
    uint32_t at = index_value(e, e->emit->node_index[number]), rest = KIR_NONE, result = KIR_NONE;
    uint32_t values[FRIT_OP_MAX_IN], below[FRIT_OP_MAX_IN];

    for (uint32_t i = 0; i < node->n_in; i++) {
        below[i] = i + 1 < node->n_in
                       ? kir_binary(e->s->module, KIR_lt, at, e->emit->end[number][i])
                       : KIR_NONE;
        values[i] = node->in[i] == BLOCK_NONE
                        ? KIR_NONE
                        : masked_value(e, node->in[i], both(e, rest, below[i]));
        if (below[i] != KIR_NONE)
            rest = both(e, rest, kir_binary(e->s->module, KIR_not, below[i], KIR_NONE));
    }
    for (uint32_t i = node->n_in; i-- > 0;)
        if (values[i] != KIR_NONE)
            result = result == KIR_NONE ? values[i]
                                        : kir_select(e->s->module, below[i], values[i], result);
    return result;
}

uint32_t expr_inside(struct expr *e, uint32_t node)
{
    const uint32_t *checks = e->emit->node_check + e->emit->first_check[node];
    uint32_t inside = KIR_NONE;

    for (uint32_t i = 0; i < e->nodes[node].n_within; i++)
        inside = both(e, inside, check_value(e, checks[i]));
    return inside;
}

/* Whether a masked load yields the fill value of a GUARD around it. */
static bool fills_by_mask(const struct expr *e, const struct expr_node *guard)
{
    return guard->in[1] == BLOCK_NONE && e->nodes[guard->in[0]].kind == EXPR_LOAD &&
           guard->fill.scalar == BLOCK_NONE && guard->fill.number == 0 &&
           !signbit(guard->fill.number);
}

/* in[0] where all checks hold, else in[1] or the fill value. */
static uint32_t emit_guard(struct expr *e, uint32_t number)
{
    const struct expr_node *node = &e->nodes[number];
    uint32_t inside, rest = e->emit->fill[number], value;
    bool is_loaded;

    if (node->in[0] == BLOCK_NONE)
        return rest;
    inside = expr_inside(e, number);
    is_loaded = e->emit->value[node->in[0]] != KIR_NONE; /* perhaps without this mask */
    value = masked_value(e, node->in[0], inside);
    if (inside != KIR_NONE && !is_loaded && fills_by_mask(e, node))
        return value;
    if (node->in[1] != BLOCK_NONE)
        rest = masked_value(e, node->in[1], kir_binary(e->s->module, KIR_not, inside, KIR_NONE));
    return kir_select(e->s->module, inside, value, rest);
}

uint32_t expr_value(struct expr *e, uint32_t node)
{
    uint32_t *slot = &e->emit->value[node];

    assert(*slot != KIR_NONE || e->nodes[node].kind != EXPR_EXTERNAL || e->s->module->failed);
    if (*slot == KIR_NONE && !e->s->module->failed)
        set_slot(e, slot,
                 e->nodes[node].kind == EXPR_LOAD    ? emit_load(e, node)
                 : e->nodes[node].kind == EXPR_JOIN  ? emit_join(e, node)
                 : e->nodes[node].kind == EXPR_GUARD ? emit_guard(e, node)
                                                     : emit_op(e, node));
    return *slot;
}

uint32_t expr_load_at(struct expr *e, uint32_t node)
{
    return index_value(e, e->emit->node_index[node]);
}

uint32_t expr_coord_value(struct expr *e, uint32_t coord)
{
    return index_value(e, e->emit->coord_index[coord]);
}

static void store_value(struct expr *e, uint32_t number, uint32_t value)
{
    uint32_t at = index_value(e, e->emit->store_index[number]), mask = e->emit->mask;
    uint32_t arg = e->s->block->n_inputs + e->stores[number].output;

    kir_emit_imm(e->s->module, mask == KIR_NONE ? KIR_store : KIR_store_if, arg, at, value, mask);
}

void expr_emit_store(struct expr *e, uint32_t number)
{
    store_value(e, number, expr_value(e, e->stores[number].node));
}

/* ---- stored joins ---- */

const struct space_expr *expr_join_coord(const struct expr *e, uint32_t store, uint32_t *n_pieces)
{
    const struct expr_node *node = &e->nodes[e->stores[store].node];

    *n_pieces = node->n_in;
    return node->kind == EXPR_JOIN ? &node->at : NULL;
}

uint32_t expr_join_value(struct expr *e, uint32_t store)
{
    return index_value(e, e->emit->node_index[e->stores[store].node]);
}

uint32_t expr_piece_contains(struct expr *e, uint32_t store, uint32_t piece, uint32_t first,
                             uint32_t last)
{
    uint32_t number = e->stores[store].node, has = KIR_NONE;
    const struct expr_node *node = &e->nodes[number];

    if (node->in[piece] == BLOCK_NONE)
        return KIR_NONE;
    if (piece > 0)
        has = kir_binary(e->s->module, KIR_le, e->emit->end[number][piece - 1], first);
    if (piece + 1 < node->n_in)
        has = both(e, has, kir_binary(e->s->module, KIR_lt, last, e->emit->end[number][piece]));
    return has;
}

void expr_emit_piece(struct expr *e, uint32_t store, uint32_t piece)
{
    store_value(e, store, expr_value(e, e->nodes[e->stores[store].node].in[piece]));
}
