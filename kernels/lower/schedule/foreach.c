/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule for the same elementwise ops over many independent tensors: an optimiser's step.
 *
 * A block falls into components; each is lowered by the map schedule alone, over its own space.
 * Components whose modules are equal are spaces of one kernel, so that the code does not grow with
 * the number of tensors.  Which modules are equal follows from the numbers of a launch; here
 * components are of one kind where their ops are the same ones up to the numbers of values and
 * extents, and a block may have few kinds.  A kind is a hash of the ops of a component and of what
 * it stores: two kinds that are taken for one cost another kernel, not a wrong result.
 *
 * Components are sets of values that ops make, a forest whose roots have what is known of the
 * component.  An op changes the components that it touches, so that a push takes time in proportion
 * to its operands and to what those components store. */
#include "lower/sched.h"

#include <string.h>

#include "lower/expr/expr.h"
#include "lower/rows/cost.h"
#include "lower/rows/rows.h"

enum {
    MOST_KINDS = 8,   /* of components in a block: each is a kernel at least */
    MOST_OPEN = 16,   /* while ops are pushed, until components are whole */
    MOST_ARGS = 48,   /* operands and results of a component */
    MOST_STORES = 16, /* results of a component */
    QUALITY = 950
};

/* ---- what is known of components ---- */

/* Of a value; the component's fields are meant where it is the root of one. */
struct foreach_value {
    uint64_t hash;   /* of the ops that make it */
    uint32_t parent; /* 1 + the value above it in its component; 0: a root, or no op makes it */
    uint32_t next;   /* of the component's stored values: 1 + the next one */
    /* the component's */
    uint64_t ops;  /* sum of hashes */
    uint64_t kind; /* as it was counted */
    uint32_t cost; /* in instructions */
    uint32_t n_args;
    uint32_t stored; /* 1 + the first value that is stored */
    bool counted, fits;
};

struct kind {
    uint64_t hash;
    uint32_t n_components, cost;
};

struct foreach_state {
    uint32_t n_components, n_unfit;
    uint32_t n_kinds;
    struct kind kinds[MOST_OPEN];
    uint32_t cost; /* of one component of each kind */
};

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint32_t root_of(struct foreach_value *values, uint32_t value)
{
    uint32_t root = value;

    while (values[root].parent)
        root = values[root].parent - 1;
    while (values[value].parent) {
        uint32_t above = values[value].parent - 1;

        values[value].parent = root + 1;
        value = above;
    }
    values[root].parent = 0;
    return root;
}

/* ---- kinds ---- */

static bool same_extents(const struct block_value *a, const struct block_value *b)
{
    return a->rank == b->rank && memcmp(a->extent, b->extent, a->rank * sizeof(*a->extent)) == 0;
}

/* How the dims of an operand are those of the result: sizes do not matter. */
static uint64_t shape_of(const struct block_value *value, const struct block_value *result)
{
    return same_extents(value, result) ? 1 : 2 + value->rank * 16 + result->rank;
}

static uint64_t hash_op(const struct foreach_value *values, const struct block *block,
                        const struct block_op *op)
{
    const struct block_value *result = NULL;
    uint64_t hash = mix(op->id, op->n_in), size;
    const unsigned char *attrs = op->attrs;

    for (uint32_t i = 0; i < op->n_out; i++) {
        if (op->out[i] == BLOCK_NONE)
            continue;
        result = &block->values[op->out[i]];
        hash = mix(hash, i * 256 + result->dtype);
    }
    for (uint32_t i = 0; i < op->n_in; i++) {
        const struct block_input *in = &op->in[i];

        hash = mix(hash, in->kind * 256 + in->dtype);
        if (in->kind != FRIT_OPERAND_TENSOR)
            continue;
        hash = mix(hash, block->values[in->value].dtype);
        hash = mix(hash, result ? shape_of(&block->values[in->value], result) : 0);
        hash = mix(hash, values[in->value].hash);
    }
    memcpy(&size, attrs, sizeof(size));
    for (uint64_t i = 0; i < size; i++)
        hash = mix(hash, attrs[i]);
    return hash;
}

static uint64_t kind_of(const struct foreach_value *values, const struct foreach_value *component)
{
    uint64_t hash = component->ops;

    for (uint32_t v = component->stored; v; v = values[v - 1].next)
        hash += mix(values[v - 1].hash, 1);
    return hash;
}

/* ---- whether a component is a map ---- */

static bool is_view(uint32_t op)
{
    return frit_op_info_at(op)->cls == FRIT_CLASS_VIEW;
}

/* The extents that are not 1, in order.  Their number. */
static uint32_t sorted_extents(const struct block_value *value, uint32_t *sorted)
{
    uint32_t n = 0;

    for (uint32_t d = 0; d < value->rank; d++) {
        uint32_t at = n;

        if (value->extent[d] == 1)
            continue;
        for (; at > 0 && sorted[at - 1] > value->extent[d]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = value->extent[d];
        n++;
    }
    return n;
}

static bool same_count(const struct block_value *a, const struct block_value *b)
{
    uint32_t x[FRIT_MAX_RANK], y[FRIT_MAX_RANK], n;

    if (same_extents(a, b))
        return true;
    n = sorted_extents(a, x);
    return n == sorted_extents(b, y) && memcmp(x, y, n * sizeof(*x)) == 0;
}

/* Whether what a component stores is one space, of results that are no views: those the host makes
 * without a copy. */
static bool component_fits(const struct foreach_value *values,
                           const struct foreach_value *component, const struct block *block)
{
    uint32_t first = component->stored, n = 0;

    for (uint32_t v = first; v; v = values[v - 1].next) {
        const struct block_value *value = &block->values[v - 1];

        if (is_view(block->ops[value->maker].id) || !same_count(value, &block->values[first - 1]))
            return false;
        n++;
    }
    return n > 0 && n <= MOST_STORES && n + component->n_args <= MOST_ARGS;
}

/* ---- counting ---- */

static struct kind *find_kind(struct foreach_state *state, uint64_t hash)
{
    for (uint32_t i = 0; i < state->n_kinds; i++)
        if (state->kinds[i].hash == hash)
            return &state->kinds[i];
    return NULL;
}

/* Before the component is changed. */
static void forget_component(struct foreach_state *state, struct foreach_value *component)
{
    struct kind *kind = component->counted ? find_kind(state, component->kind) : NULL;

    if (!kind)
        return;
    component->counted = false;
    state->n_components--;
    state->n_unfit -= !component->fits;
    if (--kind->n_components)
        return;
    state->cost -= kind->cost;
    *kind = state->kinds[--state->n_kinds];
}

/* After that; false: too many kinds. */
static bool count_component(struct foreach_state *state, struct foreach_value *values,
                            uint32_t root, const struct block *block)
{
    struct foreach_value *component = &values[root];
    struct kind *kind;

    if (component->counted)
        return true;
    component->kind = kind_of(values, component);
    kind = find_kind(state, component->kind);
    if (!kind && state->n_kinds == MOST_OPEN)
        return false;
    if (!kind) {
        kind = &state->kinds[state->n_kinds++];
        *kind = (struct kind){.hash = component->kind, .cost = component->cost};
        state->cost += component->cost;
    }
    kind->n_components++;
    component->counted = true;
    component->fits = component_fits(values, component, block);
    state->n_components++;
    state->n_unfit += !component->fits;
    return true;
}

/* ---- matching ---- */

/* The older root stays. */
static uint32_t join_components(struct foreach_value *values, uint32_t a, uint32_t b)
{
    struct foreach_value *to, *from;
    uint32_t *tail;

    a = root_of(values, a);
    b = root_of(values, b);
    if (a == b)
        return a;
    to = &values[a < b ? a : b];
    from = &values[a < b ? b : a];
    to->ops += from->ops;
    to->cost += from->cost;
    to->n_args += from->n_args;
    for (tail = &to->stored; *tail;)
        tail = &values[*tail - 1].next;
    *tail = from->stored;
    from->stored = 0;
    from->parent = 1 + (a < b ? a : b);
    return a < b ? a : b;
}

static void bury(struct foreach_value *values, uint32_t value)
{
    uint32_t *at = &values[root_of(values, value)].stored;

    while (*at && *at != value + 1)
        at = &values[*at - 1].next;
    if (*at)
        *at = values[value].next;
}

static bool is_made(const struct block *block, uint32_t value)
{
    return block->values[value].maker != BLOCK_NONE;
}

/* Components that the op changes are those of its operands and of values that die with it. */
static void forget_components(struct matcher *m, const struct block *block,
                              const struct block_op *op)
{
    struct foreach_value *values = m->values;

    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind == FRIT_OPERAND_TENSOR && is_made(block, op->in[i].value))
            forget_component(m->state, &values[root_of(values, op->in[i].value)]);
    for (uint32_t i = 0; i < op->n_dead; i++)
        if (is_made(block, op->dead[i]) && block->values[op->dead[i]].maker < m->n_ops)
            forget_component(m->state, &values[root_of(values, op->dead[i])]);
}

/* The op's results as a component, which those of its operands become.  Its root. */
static uint32_t add_results(struct foreach_value *values, const struct block *block,
                            const struct block_op *op)
{
    uint64_t hash = hash_op(values, block, op);
    uint32_t root = BLOCK_NONE;

    for (uint32_t i = 0; i < op->n_out; i++) {
        uint32_t out = op->out[i];

        if (out == BLOCK_NONE)
            continue;
        values[out] = (struct foreach_value){.hash = mix(hash, i), .stored = out + 1};
        root = root == BLOCK_NONE ? out : join_components(values, root, out);
    }
    if (root == BLOCK_NONE)
        return root;
    values[root].ops = hash;
    values[root].cost = lower_cost(op->id);
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (op->in[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        if (is_made(block, op->in[i].value))
            root = join_components(values, op->in[i].value, root);
        else
            values[root].n_args++;
    }
    return root;
}

static bool count_components(struct matcher *m, const struct block *block,
                             const struct block_op *op, uint32_t root)
{
    struct foreach_value *values = m->values;
    bool counted = count_component(m->state, values, root, block);

    for (uint32_t i = 0; i < op->n_dead && counted; i++)
        if (is_made(block, op->dead[i]))
            counted = count_component(m->state, values, root_of(values, op->dead[i]), block);
    return counted;
}

/* Joins cost what all their pieces cost, and are left to the map schedule. */
static bool is_taken(const struct block *block, uint32_t op)
{
    uint32_t id = block->ops[op].id;

    return (lower_row_of(id) || view_row_of(id)) && expr_knows(block, op);
}

static bool foreach_match(struct matcher *m, const struct block *block)
{
    const struct block_op *op = &block->ops[m->n_ops];
    struct foreach_value *values = m->values;
    const struct foreach_state *state = m->state;
    uint32_t root;

    if (!is_taken(block, m->n_ops))
        return false;
    forget_components(m, block, op);
    root = add_results(values, block, op);
    if (root == BLOCK_NONE)
        return false;
    for (uint32_t i = 0; i < op->n_dead; i++)
        if (is_made(block, op->dead[i]))
            bury(values, op->dead[i]);
    return count_components(m, block, op, root) && state->cost <= LOWER_MOST_COST;
}

static bool foreach_fits(const struct matcher *m, const struct block *block)
{
    const struct foreach_state *state = m->state;

    (void)block;
    return state->n_components > 1 && !state->n_unfit && state->n_kinds <= MOST_KINDS;
}

const struct schedule sched_foreach = {
    .name = "foreach",
    .quality = QUALITY,
    .state_bytes = sizeof(struct foreach_state),
    .value_bytes = sizeof(struct foreach_value),
    .match = foreach_match,
    .fits = foreach_fits,
    .of_components = &sched_map,
};
