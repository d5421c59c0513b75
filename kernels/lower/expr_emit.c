/* SPDX-License-Identifier: Apache-2.0 */
/* Emitting: nodes, and the offsets they load and store at.
 *
 * Everything that was emitted is remembered in slots: one per node, per offset, per dim, per
 * parameter.  Writes to slots are logged with what was there, so that a release takes back what is
 * behind a mark.  Equal offsets are one site.  In an offset a factor of 1 or -1 shows in the
 * module, any other is a parameter; the sum begins with the outer dims, so that what is uniform in
 * a group comes first. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "lower/emit.h"
#include "lower/rows.h"

/* A place that is computed: values or KIR_NONE, but for `done`. */
struct site {
    struct space_expr at;
    uint32_t value;
    uint32_t partial, done; /* sum of the terms whose bits are set in `done`, and of the constant */
    uint32_t c, k[SPACE_VARS]; /* parameters */
};

struct atom {
    uint32_t value;
    uint32_t site; /* of what is divided */
    struct sched_divisor by;
    uint32_t node, last; /* of one that is found: where, and the parameter that it is not above */
};

struct change {
    uint32_t *slot, was;
};

struct emit {
    struct site *sites;
    uint32_t *node_site, *store_site;
    uint32_t *value;                 /* per node */
    uint32_t (*end)[FRIT_OP_MAX_IN]; /* per node: parameters of a JOIN */
    uint32_t *scalar;                /* per scalar of the block */
    uint32_t dim[SPACE_DIMS];
    struct atom atom[SPACE_ATOMS];
    uint32_t mask;
    bool hoisting; /* nothing is loaded: masks are not known yet */
    uint32_t n_sites;
    uint32_t n_log, log_room;
    struct change *log;
};

/* ---- planning ---- */

static uint32_t add_site(struct emit *emit, const struct space_expr *at)
{
    uint32_t i = 0;

    while (i < emit->n_sites && !space_equal(&emit->sites[i].at, at))
        i++;
    if (i == emit->n_sites)
        emit->sites[emit->n_sites++] = (struct site){.at = *at};
    return i;
}

static struct emit *emit_create(struct expr *e)
{
    struct emit *emit = arena_alloc(&e->arena, sizeof(*emit));
    size_t n = (size_t)e->n_nodes + 1, n_stores = (size_t)e->n_stores + 1;

    if (!emit)
        return NULL;
    e->emit = emit;
    emit->sites = arena_array(&e->arena, n + n_stores + SPACE_ATOMS, sizeof(*emit->sites));
    emit->node_site = arena_array(&e->arena, n, sizeof(uint32_t));
    emit->store_site = arena_array(&e->arena, n_stores, sizeof(uint32_t));
    emit->value = arena_array(&e->arena, n, sizeof(uint32_t));
    emit->end = arena_array(&e->arena, n, sizeof(*emit->end));
    emit->scalar = arena_array(&e->arena, e->s->block->n_scalars + 1u, sizeof(uint32_t));
    return emit->sites && emit->node_site && emit->store_site && emit->value && emit->end &&
                   emit->scalar
               ? emit
               : NULL;
}

/* Whether a place needs more than 31 bits anywhere on the way. */
static bool is_far(const struct space *space, const struct space_expr *at)
{
    const int64_t far = INT32_MAX - (1 << 16);
    int64_t low, high;

    space_range(space, at, &low, &high);
    return low < -far || high > far;
}

void emit_plan(struct expr *e)
{
    struct emit *emit = emit_create(e);
    int64_t count = 1;

    if (!emit) {
        e->status = FRIT_NO_HOST_MEMORY;
        return;
    }
    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].kind == EXPR_LOAD || e->nodes[i].indexed)
            emit->node_site[i] = add_site(emit, &e->nodes[i].at);
    for (uint32_t i = 0; i < e->n_stores; i++)
        emit->store_site[i] = add_site(emit, &e->stores[i].at);
    for (uint32_t i = 0; i < e->space.n_atoms; i++)
        if (e->space.atom[i].by)
            emit->atom[i].site = add_site(emit, &e->space.atom[i].of);
        else
            emit->atom[i].node = e->space.atom[i].name;
    for (uint32_t i = 0; i < e->space.n_dims; i++)
        count *= e->space.extent[i];
    e->s->module->wide = e->s->sig->index_width > 32 || count > INT32_MAX - (1 << 16);
    for (uint32_t i = 0; i < emit->n_sites; i++)
        e->s->module->wide |= is_far(&e->space, &emit->sites[i].at);
    if (e->s->module->wide && !e->s->target->i64)
        e->status = FRIT_UNSUPPORTED;
}

void emit_fini(struct expr *e)
{
    if (e->emit)
        free(e->emit->log);
}

/* ---- slots ---- */

static void put(struct expr *e, uint32_t *slot, uint32_t value)
{
    struct emit *emit = e->emit;

    if (!array_grow(&emit->log, &emit->log_room, emit->n_log, 1, sizeof(*emit->log))) {
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
    struct emit *emit = e->emit;

    while (emit->n_log > mark) {
        emit->n_log--;
        *emit->log[emit->n_log].slot = emit->log[emit->n_log].was;
    }
}

void expr_set(struct expr *e, uint32_t dim, uint32_t value)
{
    put(e, &e->emit->dim[dim], value);
}

void expr_set_number(struct expr *e, uint32_t value)
{
    struct space_expr number = {0};
    int64_t stride = 1;

    for (uint32_t d = e->space.n_dims; d-- > 0;) {
        number.k[d] = stride;
        stride *= e->space.extent[d];
    }
    for (uint32_t i = 0; i < e->emit->n_sites; i++)
        if (space_equal(&e->emit->sites[i].at, &number))
            put(e, &e->emit->sites[i].value, value);
}

void expr_mask(struct expr *e, uint32_t mask)
{
    put(e, &e->emit->mask, mask);
}

void expr_bind(struct expr *e, uint32_t node, uint32_t value)
{
    put(e, &e->emit->value[node], value);
}

uint32_t expr_known(const struct expr *e, uint32_t node)
{
    return e->emit->value[node];
}

/* ---- parameters ---- */

static uint32_t emit2(struct expr *e, enum kir_op op, uint32_t a, uint32_t b)
{
    return kir_emit(e->s->module, op, a, b, KIR_NONE);
}

static enum kir_type node_type(const struct expr *e, uint32_t node)
{
    return kir_type_of(e->s->block->values[e->nodes[node].value].dtype);
}

static void phase_site(struct expr *e, struct site *site)
{
    site->value = site->partial = site->c = KIR_NONE;
    site->done = 0;
    if (site->at.c)
        site->c = sched_index(e->s, site->at.c);
    for (uint32_t v = 0; v < SPACE_VARS; v++) {
        int64_t k = site->at.k[v];

        site->k[v] = k < -1 || k > 1 ? sched_index(e->s, k) : KIR_NONE;
    }
}

static void phase_atom(struct expr *e, struct atom *atom, const struct space_atom *of)
{
    atom->value = KIR_NONE;
    if (of->by)
        atom->by = sched_divisor(e->s, of->by);
    else
        atom->last = sched_word(e->s, node_type(e, atom->node), (uint64_t)(of->of.c - 1));
}

/* The type that a scalar operand comes in. */
static uint32_t scalar_dtype(const struct expr *e, const struct block_op *op, uint32_t i)
{
    uint32_t dtype = op->in[i].dtype;
    bool wide = lower_row_of(op->id)->scalars == LOWER_WIDE && e->s->target->f64;

    return wide && lower_is_float(dtype) ? FRIT_F64 : dtype;
}

static uint32_t truth(struct expr *e, uint32_t word)
{
    return emit2(e, KIR_ne, word, kir_const_i(e->s->module, KIR_I32, 0));
}

static void phase_scalars(struct expr *e, const struct block_op *op)
{
    struct emit *emit = e->emit;

    for (uint32_t i = 0; i < op->n_in; i++) {
        const struct block_input *in = &op->in[i];
        bool is_bool = in->dtype == FRIT_BOOL;

        if (in->kind != FRIT_OPERAND_SCALAR || emit->scalar[in->scalar] != KIR_NONE)
            continue;
        emit->scalar[in->scalar] =
            sched_scalar(e->s, in->scalar, is_bool ? KIR_I32 : kir_type_of(scalar_dtype(e, op, i)));
        if (is_bool)
            emit->scalar[in->scalar] = truth(e, emit->scalar[in->scalar]);
    }
    for (uint32_t i = op->n_scalars - op->n_extra; i < op->n_scalars; i++)
        if (emit->scalar[op->first_scalar + i] == KIR_NONE)
            emit->scalar[op->first_scalar + i] = sched_scalar(e->s, op->first_scalar + i, KIR_I64);
}

void expr_phase(struct expr *e)
{
    const struct block *block = e->s->block;
    struct emit *emit = e->emit;

    emit->n_log = 0;
    emit->mask = KIR_NONE;
    memset(emit->dim, 0xff, sizeof(emit->dim));
    memset(emit->value, 0xff, e->n_nodes * sizeof(*emit->value));
    memset(emit->scalar, 0xff, block->n_scalars * sizeof(*emit->scalar));
    for (uint32_t i = 0; i < emit->n_sites; i++)
        phase_site(e, &emit->sites[i]);
    for (uint32_t i = 0; i < e->space.n_atoms; i++)
        phase_atom(e, &emit->atom[i], &e->space.atom[i]);
    for (uint32_t i = 0; i < e->n_nodes; i++)
        for (uint32_t k = 0; e->nodes[i].kind == EXPR_JOIN && k + 1 < e->nodes[i].n_in; k++)
            emit->end[i][k] = sched_index(e->s, e->nodes[i].end[k]);
    for (uint32_t i = 0; i < e->n_nodes; i++)
        if (e->nodes[i].kind == EXPR_OP)
            phase_scalars(e, &block->ops[block->values[e->nodes[i].value].maker]);
}

/* ---- places ---- */

/* The value of a variable; KIR_NONE while a dim it needs is not set. */
static uint32_t var_value(struct expr *e, uint32_t var);

/* sum + k * value, where the sum may be KIR_NONE for nothing. */
static uint32_t add_term(struct expr *e, uint32_t sum, int64_t k, uint32_t param, uint32_t value)
{
    if (k == -1)
        return sum == KIR_NONE ? emit2(e, KIR_neg, value, KIR_NONE) : emit2(e, KIR_sub, sum, value);
    if (k != 1)
        value = emit2(e, KIR_mul, value, param);
    return sum == KIR_NONE ? value : emit2(e, KIR_add, sum, value);
}

/* Adds to the partial sum all terms that are at hand. */
static void advance(struct expr *e, struct site *site)
{
    uint32_t sum = site->partial, done = site->done;
    bool all = true;

    if (site->value != KIR_NONE)
        return;
    if (sum == KIR_NONE)
        sum = site->c;
    for (uint32_t v = 0; v < SPACE_VARS; v++) {
        uint32_t value;

        if (!site->at.k[v] || done >> v & 1)
            continue;
        value = var_value(e, v);
        if (value == KIR_NONE) {
            all = false;
            continue;
        }
        sum = add_term(e, sum, site->at.k[v], site->k[v], value);
        done |= 1u << v;
    }
    if (done != site->done) {
        put(e, &site->partial, sum);
        put(e, &site->done, done);
    }
    if (all) {
        enum kir_type type = e->s->module->wide ? KIR_I64 : KIR_I32;

        put(e, &site->value, sum == KIR_NONE ? kir_const_i(e->s->module, type, 0) : sum);
    }
}

static uint32_t site_value(struct expr *e, uint32_t number)
{
    struct site *site = &e->emit->sites[number];

    advance(e, site);
    return site->value;
}

/* Whether all that a node is made of is at hand or can be emitted. */
static bool is_ready(struct expr *e, uint32_t node)
{
    const struct expr_node *n = &e->nodes[node];

    if (e->emit->value[node] != KIR_NONE)
        return true;
    if ((n->kind == EXPR_LOAD || n->indexed) && site_value(e, e->emit->node_site[node]) == KIR_NONE)
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != BLOCK_NONE && !is_ready(e, n->in[i]))
            return false;
    return n->kind != EXPR_BOUND;
}

/* An index that was found, brought between 0 and the last one, as wide as offsets are. */
static uint32_t found_value(struct expr *e, const struct atom *atom)
{
    enum kir_type type = node_type(e, atom->node), wanted = e->s->module->wide ? KIR_I64 : KIR_I32;
    uint32_t value = expr_value(e, atom->node);

    value = emit2(e, KIR_smax, value, kir_const_i(e->s->module, type, 0));
    value = emit2(e, KIR_smin, value, atom->last);
    if (type == wanted)
        return value;
    return emit2(e, wanted == KIR_I64 ? KIR_i64 : KIR_i32, value, KIR_NONE);
}

static uint32_t var_value(struct expr *e, uint32_t var)
{
    struct atom *atom;
    uint32_t of;

    if (var < SPACE_DIMS)
        return e->emit->dim[var];
    atom = &e->emit->atom[var - SPACE_DIMS];
    if (atom->value != KIR_NONE)
        return atom->value;
    if (e->space.atom[var - SPACE_DIMS].by == 0) {
        if (!e->emit->hoisting && is_ready(e, atom->node))
            put(e, &atom->value, found_value(e, atom));
        return atom->value;
    }
    of = site_value(e, atom->site);
    if (of != KIR_NONE)
        put(e, &atom->value, sched_divide(e->s, &atom->by, of));
    return atom->value;
}

void expr_hoist(struct expr *e)
{
    e->emit->hoisting = true;
    for (uint32_t i = 0; i < e->emit->n_sites; i++)
        advance(e, &e->emit->sites[i]);
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
    enum kir_type type = kir_type_of(value->dtype);
    uint32_t at = site_value(e, e->emit->node_site[node]), mask = e->emit->mask;

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
                      .n = op->n_in,
                      .at = KIR_NONE};
    uint32_t result;

    for (uint32_t i = 0; i < op->n_in; i++) {
        l.in_dtype[i] = op->in[i].kind == FRIT_OPERAND_TENSOR
                            ? e->s->block->values[op->in[i].value].dtype
                            : scalar_dtype(e, op, i);
        l.in[i] = node->in[i] != BLOCK_NONE ? expr_value(e, node->in[i])
                                            : e->emit->scalar[op->in[i].scalar];
    }
    if (op->n_extra == 2) {
        l.seed = e->emit->scalar[op->first_scalar + op->n_scalars - 2];
        l.counter = e->emit->scalar[op->first_scalar + op->n_scalars - 1];
    }
    if (node->indexed)
        l.at = site_value(e, e->emit->node_site[number]);
    result = row->fn(&l);
    if (row->result == LOWER_EXACT || (row->result == LOWER_WRAPS && lower_is_float(l.dtype)))
        return result;
    return lower_fit(l.m, l.dtype, result);
}

/* a and b, where KIR_NONE is true. */
static uint32_t both(struct expr *e, uint32_t a, uint32_t b)
{
    return a == KIR_NONE ? b : b == KIR_NONE ? a : emit2(e, KIR_and, a, b);
}

/* Each operand is computed with loads in its own part alone; then the part that has the element is
 * chosen, from the last one on. */
static uint32_t emit_join(struct expr *e, uint32_t number)
{
    const struct expr_node *node = &e->nodes[number];
    uint32_t at = site_value(e, e->emit->node_site[number]), rest = e->emit->mask,
             result = KIR_NONE;
    uint32_t values[FRIT_OP_MAX_IN], below[FRIT_OP_MAX_IN];

    for (uint32_t i = 0; i < node->n_in; i++) {
        uint32_t mark = expr_mark(e);

        below[i] = i + 1 < node->n_in ? emit2(e, KIR_lt, at, e->emit->end[number][i]) : KIR_NONE;
        expr_mask(e, both(e, rest, below[i]));
        values[i] = node->in[i] == BLOCK_NONE ? KIR_NONE : expr_value(e, node->in[i]);
        expr_release(e, mark);
        if (below[i] != KIR_NONE)
            rest = both(e, rest, emit2(e, KIR_not, below[i], KIR_NONE));
    }
    for (uint32_t i = node->n_in; i-- > 0;)
        if (values[i] != KIR_NONE)
            result = result == KIR_NONE
                         ? values[i]
                         : kir_emit(e->s->module, KIR_select, values[i], result, below[i]);
    return result;
}

uint32_t expr_value(struct expr *e, uint32_t node)
{
    uint32_t *slot = &e->emit->value[node];

    assert(*slot != KIR_NONE || e->nodes[node].kind != EXPR_BOUND || e->s->module->failed);
    if (*slot == KIR_NONE && !e->s->module->failed)
        put(e, slot,
            e->nodes[node].kind == EXPR_LOAD   ? emit_load(e, node)
            : e->nodes[node].kind == EXPR_JOIN ? emit_join(e, node)
                                               : emit_op(e, node));
    return *slot;
}

void expr_emit_store(struct expr *e, uint32_t number)
{
    const struct expr_store *store = &e->stores[number];
    uint32_t value = expr_value(e, store->node), mask = e->emit->mask;
    uint32_t at = site_value(e, e->emit->store_site[number]);
    uint32_t arg = e->s->block->n_inputs + store->output;

    kir_emit_imm(e->s->module, mask == KIR_NONE ? KIR_store : KIR_store_if, arg, at, value, mask);
}
