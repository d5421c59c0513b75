/* SPDX-License-Identifier: Apache-2.0 */
/* The foreach schedule: equal elementwise ops over many independent tensors, as in an optimiser's
 * step.
 *
 * The block is split into connected components, and the map schedule lowers each over its own
 * space.  Components with equal modules are spaces of one kernel, so that the code does not grow
 * with the number of tensors.  Which modules are equal depends on the sizes of a launch.  The
 * matcher approximates it: components are of one kind if their ops are equal apart from the numbers
 * of values and extents, and a block may have only a few kinds.  A kind is identified by a hash of
 * the component's ops and stored values; a collision costs another kernel, not a wrong result.
 *
 * Components are sets in a union-find forest over the values that ops compute; the root has the
 * component's data.  An op changes only the components of its operands and dead values, so that a
 * push takes time proportional to the op's operands and to the stored values of those components.
 */
#include "lower/sched.h"

#include <string.h>

#include "lower/expr/expr.h"
#include "lower/rows/cost.h"
#include "lower/rows/rows.h"

enum {
    MAX_KINDS = 8,       /* kinds of components in a block: each is at least one kernel */
    MAX_OPEN_KINDS = 16, /* the limit while ops are pushed and components are still incomplete */
    MAX_ARGS = 48,       /* arguments and stored values of a component */
    MAX_STORES = 16,     /* stored values of a component */
    QUALITY = 950
};

/* ---- components ---- */

/* A value; the component's fields are valid if it is a root. */
struct foreach_value {
    uint64_t hash;   /* of the ops that compute it */
    uint32_t parent; /* 1 + parent in its component; 0: it is a root, or an argument */
    uint32_t next;   /* list of the component's stored values: 1 + the next one */
    /* fields of the component: */
    uint64_t ops;  /* component: sum of the hashes of its ops */
    uint64_t kind; /* hash of the kind under which it is counted */
    uint32_t cost; /* in instructions */
    uint32_t n_args;
    uint32_t stored; /* 1 + the first stored value */
    bool counted, fits;
};

struct kind {
    uint64_t hash;
    uint32_t n_components, cost;
};

struct foreach_state {
    uint32_t n_components, n_unfit;
    uint32_t n_kinds;
    struct kind kinds[MAX_OPEN_KINDS];
    uint32_t cost; /* sum over kinds of the cost of one component */
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

/* A hash of how an operand broadcasts to the result, without sizes. */
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

/* Sorts the extents that are not 1; returns how many there are. */
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

/* Whether all stored values have the same number of elements and none is a view, which the host
 * makes without a copy. */
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
    return n > 0 && n <= MAX_STORES && n + component->n_args <= MAX_ARGS;
}

/* ---- counting ---- */

static struct kind *find_kind(struct foreach_state *state, uint64_t hash)
{
    for (uint32_t i = 0; i < state->n_kinds; i++)
        if (state->kinds[i].hash == hash)
            return &state->kinds[i];
    return NULL;
}

/* Removes the component from its kind; to be called before the component changes. */
static void uncount_component(struct foreach_state *state, struct foreach_value *component)
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

/* Adds the component to its kind after a change; false: too many kinds. */
static bool count_component(struct foreach_state *state, struct foreach_value *values,
                            uint32_t root, const struct block *block)
{
    struct foreach_value *component = &values[root];
    struct kind *kind;

    if (component->counted)
        return true;
    component->kind = kind_of(values, component);
    kind = find_kind(state, component->kind);
    if (!kind && state->n_kinds == MAX_OPEN_KINDS)
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

/* Merges two components under the older root. */
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

static void remove_stored(struct foreach_value *values, uint32_t value)
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

/* Uncounts the components that the op changes: those of its operands and of values that die with
 * it. */
static void uncount_components(struct matcher *m, const struct block *block,
                               const struct block_op *op)
{
    struct foreach_value *values = m->values;

    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind == FRIT_OPERAND_TENSOR && is_made(block, op->in[i].value))
            uncount_component(m->state, &values[root_of(values, op->in[i].value)]);
    for (uint32_t i = 0; i < op->n_dead; i++)
        if (is_made(block, op->dead[i]) && block->values[op->dead[i]].maker < m->n_ops)
            uncount_component(m->state, &values[root_of(values, op->dead[i])]);
}

/* Makes a component of the op's results and merges those of its operands into it; returns its root.
 */
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

/* Joins are left to the map schedule, since each element costs all of their pieces. */
static bool is_taken(const struct block *block, uint32_t op)
{
    uint32_t id = block->ops[op].id;

    return (lower_row_of(id) || view_row_of(id)) && expr_supports(block, op);
}

static bool foreach_match(struct matcher *m, const struct block *block)
{
    const struct block_op *op = &block->ops[m->n_ops];
    struct foreach_value *values = m->values;
    const struct foreach_state *state = m->state;
    uint32_t root;

    if (!is_taken(block, m->n_ops))
        return false;
    uncount_components(m, block, op);
    root = add_results(values, block, op);
    if (root == BLOCK_NONE)
        return false;
    for (uint32_t i = 0; i < op->n_dead; i++)
        if (is_made(block, op->dead[i]))
            remove_stored(values, op->dead[i]);
    return count_components(m, block, op, root) && state->cost <= LOWER_MAX_COST;
}

static bool foreach_fits(const struct matcher *m, const struct block *block)
{
    const struct foreach_state *state = m->state;

    (void)block;
    return state->n_components > 1 && !state->n_unfit && state->n_kinds <= MAX_KINDS;
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
