/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts the ops by component, then copies each component, in time proportional to the block's size.
 * An argument of the block may be used by several components; `own` has the number of each value in
 * the component that is being copied. */
#include "lower/block/components.h"

#include <string.h>

#include "base/fail.h"

struct component_split {
    const struct block *block;
    struct arena *arena;
    uint32_t *component; /* per op: its component */
    uint32_t *first_op;  /* per component: its first op in `ops`; one more for the end */
    uint32_t *ops;       /* sorted by component */
    uint32_t *own;       /* per value: its number in the component, or BLOCK_NONE */
    uint32_t n_components;
};

/* ---- finding components ---- */

static uint32_t root_of(uint32_t *parent, uint32_t op)
{
    while (parent[op] != op) {
        parent[op] = parent[parent[op]];
        op = parent[op];
    }
    return op;
}

static void connect_ops(const struct block *block, uint32_t *parent)
{
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct block_op *op = &block->ops[i];

        parent[i] = i;
        for (uint32_t k = 0; k < op->n_in; k++) {
            uint32_t maker = op->in[k].kind == FRIT_OPERAND_TENSOR
                                 ? block->values[op->in[k].value].maker
                                 : BLOCK_NONE;
            uint32_t a, b;

            if (maker == BLOCK_NONE)
                continue;
            a = root_of(parent, maker);
            b = root_of(parent, i);
            parent[a > b ? a : b] = a > b ? b : a;
        }
    }
}

/* Counting sort. */
static bool sort_ops(struct component_split *s, uint32_t *parent)
{
    uint32_t n = s->block->n_ops;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t root = root_of(parent, i);

        s->component[i] = root == i ? s->n_components++ : s->component[root];
    }
    s->first_op = arena_array(s->arena, (size_t)s->n_components + 2, sizeof(*s->first_op));
    if (!s->first_op)
        return false;
    for (uint32_t i = 0; i < n; i++)
        s->first_op[s->component[i] + 2]++;
    for (uint32_t c = 2; c <= s->n_components + 1; c++)
        s->first_op[c] += s->first_op[c - 1];
    for (uint32_t i = 0; i < n; i++)
        s->ops[s->first_op[s->component[i] + 1]++] = i;
    return true;
}

static bool find_components(struct component_split *s)
{
    const struct block *block = s->block;
    size_t n = (size_t)block->n_ops + 1;
    uint32_t *parent = arena_array(s->arena, n, sizeof(*parent));

    s->component = arena_array(s->arena, n, sizeof(*s->component));
    s->ops = arena_array(s->arena, n, sizeof(*s->ops));
    s->own = arena_array(s->arena, (size_t)block->n_values + 1, sizeof(*s->own));
    if (!parent || !s->component || !s->ops || !s->own)
        return false;
    memset(s->own, 0xff, block->n_values * sizeof(*s->own));
    connect_ops(block, parent);
    return sort_ops(s, parent);
}

/* ---- one component ---- */

/* Upper bounds of what a component contains. */
struct sizes {
    size_t ops, values, operands, scalars, bounds;
};

static uint32_t end_of_bounds(const struct block *block, uint32_t op)
{
    return op + 1 < block->n_ops ? block->ops[op + 1].first_bound : block->n_bounds;
}

static struct sizes sizes_of(const struct component_split *s, uint32_t number)
{
    struct sizes sizes = {0};

    for (uint32_t i = s->first_op[number]; i < s->first_op[number + 1]; i++) {
        const struct block_op *op = &s->block->ops[s->ops[i]];

        sizes.ops++;
        sizes.operands += op->n_in + op->n_out;
        sizes.scalars += op->n_scalars;
        sizes.bounds += end_of_bounds(s->block, s->ops[i]) - op->first_bound;
    }
    sizes.values = sizes.operands;
    return sizes;
}

static uint32_t add_value(struct component_split *s, struct component *c, uint32_t value,
                          uint32_t maker)
{
    struct block *to = &c->block;
    struct block_value *copy;

    if (s->own[value] != BLOCK_NONE)
        return s->own[value];
    copy = &to->values[to->n_values];
    *copy = s->block->values[value];
    copy->maker = maker;
    copy->dies = BLOCK_NONE;
    copy->input = copy->output = BLOCK_NONE;
    copy->n_uses = 0;
    copy->number = value; /* of the whole block */
    s->own[value] = to->n_values;
    return to->n_values++;
}

static void add_inputs(struct component_split *s, struct component *c, const struct block_op *from,
                       struct block_op *to, struct block_input *in)
{
    to->in = in;
    for (uint32_t k = 0; k < from->n_in; k++) {
        in[k] = from->in[k];
        if (in[k].kind == FRIT_OPERAND_SCALAR)
            in[k].scalar += to->first_scalar - from->first_scalar;
        if (in[k].kind != FRIT_OPERAND_TENSOR)
            continue;
        in[k].value = add_value(s, c, in[k].value, BLOCK_NONE);
        c->block.values[in[k].value].n_uses++;
    }
}

static void add_outputs(struct component_split *s, struct component *c, const struct block_op *from,
                        struct block_op *to, uint32_t *out)
{
    to->out = out;
    for (uint32_t k = 0; k < from->n_out; k++)
        out[k] =
            from->out[k] == BLOCK_NONE ? BLOCK_NONE : add_value(s, c, from->out[k], c->block.n_ops);
}

/* Appends the whole block's numbers of the op's scalars and bounds. */
static void add_scalars(const struct component_split *s, struct component *c, uint32_t number)
{
    const struct block_op *from = &s->block->ops[number];

    for (uint32_t i = 0; i < from->n_scalars; i++)
        c->scalars[c->block.n_scalars++] = from->first_scalar + i;
    for (uint32_t i = from->first_bound; i < end_of_bounds(s->block, number); i++)
        c->bounds[c->block.n_bounds++] = i;
}

/* Lists inputs and outputs, and the arguments of the whole block that they are. */
static void list_args(struct component_split *s, struct component *c)
{
    struct block *to = &c->block;
    uint32_t n = 0;

    for (uint32_t v = 0; v < to->n_values; v++) {
        struct block_value *value = &to->values[v];

        s->own[value->number] = BLOCK_NONE;
        if (value->maker != BLOCK_NONE)
            continue;
        value->input = to->n_inputs;
        to->inputs[to->n_inputs++] = v;
        c->args[n++] = s->block->values[value->number].input;
    }
    to->outputs = to->inputs + to->n_inputs;
    for (uint32_t v = 0; v < to->n_values; v++) {
        struct block_value *value = &to->values[v];
        uint32_t output = s->block->values[value->number].output;

        if (value->maker == BLOCK_NONE || output == BLOCK_NONE)
            continue;
        value->output = to->n_outputs;
        to->outputs[to->n_outputs++] = v;
        c->args[n++] = s->block->n_inputs + output;
    }
}

static bool allocate(struct component_split *s, struct component *c, const struct sizes *sizes)
{
    c->block.ops = arena_array(s->arena, sizes->ops, sizeof(*c->block.ops));
    c->block.values = arena_array(s->arena, sizes->values, sizeof(*c->block.values));
    c->block.inputs = arena_array(s->arena, sizes->values, sizeof(*c->block.inputs));
    c->args = arena_array(s->arena, sizes->values, sizeof(*c->args));
    c->scalars = arena_array(s->arena, sizes->scalars + 1, sizeof(*c->scalars));
    c->bounds = arena_array(s->arena, sizes->bounds + 1, sizeof(*c->bounds));
    return c->block.ops && c->block.values && c->block.inputs && c->args && c->scalars && c->bounds;
}

static bool copy_component(struct component_split *s, uint32_t number, struct component *c)
{
    struct sizes sizes = sizes_of(s, number);
    struct block_input *in = arena_array(s->arena, sizes.operands, sizeof(*in));
    uint32_t *out = arena_array(s->arena, sizes.operands, sizeof(*out));

    if (!in || !out || !allocate(s, c, &sizes))
        return false;
    c->block.n_extents = s->block->n_extents;
    for (uint32_t i = s->first_op[number]; i < s->first_op[number + 1]; i++) {
        const struct block_op *from = &s->block->ops[s->ops[i]];
        struct block_op *to = &c->block.ops[c->block.n_ops];

        *to = *from;
        to->first_scalar = c->block.n_scalars;
        to->first_bound = c->block.n_bounds;
        to->n_dead = 0;
        to->dead = NULL;
        add_inputs(s, c, from, to, in);
        add_outputs(s, c, from, to, out);
        add_scalars(s, c, s->ops[i]);
        in += from->n_in;
        out += from->n_out;
        c->block.n_ops++;
    }
    list_args(s, c);
    return true;
}

frit_status components_of(const struct block *block, struct arena *arena,
                          struct component **components, uint32_t *n_components, frit_err *err)
{
    struct component_split s = {.block = block, .arena = arena};
    bool done = find_components(&s);

    *n_components = s.n_components;
    *components = done ? arena_array(arena, s.n_components, sizeof(**components)) : NULL;
    done = *components != NULL;
    for (uint32_t i = 0; i < s.n_components && done; i++)
        done = copy_component(&s, i, &(*components)[i]);
    return done ? FRIT_OK : fail_memory(err, block->n_ops * sizeof(*block->ops));
}
