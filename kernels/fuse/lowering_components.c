/* SPDX-License-Identifier: Apache-2.0 */
/* Each component lowered by itself; components with equal modules are spaces of one kernel. */
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "fuse/lowering.h"
#include "ir/digest.h"
#include "kernels.h"

/* A lowered component. */
struct prepared_space {
    const struct component *component;
    uint32_t body; /* number of its kernel; BLOCK_NONE: it has no elements */
    uint32_t groups;
    uint32_t n_late;
    const uint64_t *words;
    const struct sched_late *late;
    uint64_t alias[SCHED_OUTPUTS];
};

/* The part of the signature that concerns a component. */
static frit_status component_sig(struct lowering *l, const struct component *c, frit_signature *out,
                                 frit_err *err)
{
    uint32_t n = c->block.n_inputs + c->block.n_outputs;
    frit_arg_sig *args = arena_array(&l->arena, n, sizeof(*args));
    uint8_t *classes = arena_array(&l->arena, c->block.n_scalars + c->block.n_bounds + 1u, 1);

    if (!args || !classes)
        return fail_memory(err, n * sizeof(*args));
    *out = *l->sig;
    out->n_in = c->block.n_inputs;
    out->n_out = c->block.n_outputs;
    out->n_scalars = c->block.n_scalars;
    out->n_bounds = c->block.n_bounds;
    out->arg_stride = sizeof(*args);
    out->args = args;
    out->scalar_classes = classes;
    for (uint32_t i = 0; i < n; i++)
        args[i] = *frit_arg_sig_at(l->sig, c->args[i]);
    for (uint32_t i = 0; i < c->block.n_scalars; i++)
        *classes++ = l->sig->scalar_classes[c->scalars[i]];
    if (!l->sig->bound_classes)
        return FRIT_OK;
    out->bound_classes = classes;
    for (uint32_t i = 0; i < c->block.n_bounds; i++)
        *classes++ = l->sig->bound_classes[c->bounds[i]];
    return FRIT_OK;
}

/* Whether the device allows another space of this body. */
static bool has_capacity(const struct lowering *l, const struct body *body)
{
    uint32_t max = l->target->launch_words;

    return !max || (uint64_t)(body->n_spaces + 1) * (body->n_args + body->n_words) <= max;
}

/* Finds or adds the body of a module, which it takes, and counts one more space of it. */
static frit_status find_body(struct lowering *l, const struct sched *s, uint32_t *out,
                             frit_err *err)
{
    uint8_t digest[KIR_DIGEST];
    struct body *body;

    kir_digest(s->module, digest);
    for (*out = 0; *out < l->out->n_bodies; (*out)++) {
        body = &l->out->bodies[*out];
        if (memcmp(l->digests[*out], digest, KIR_DIGEST) == 0 && has_capacity(l, body)) {
            body->n_spaces++;
            kir_fini(s->module);
            return FRIT_OK;
        }
    }
    TRY(lowering_add_body(l, s, &body, err));
    body->n_spaces = 1;
    return FRIT_OK;
}

/* Lowers a component.  One without groups gets no body, except the last if the launch has no other
 * body. */
static frit_status lower_component(struct lowering *l, struct prepared_space *space, bool last,
                                   frit_err *err)
{
    frit_signature sig;
    struct kir_module module;
    struct sched_numbers numbers = {0};
    struct sched s = {.block = &space->component->block,
                      .sig = &sig,
                      .module = &module,
                      .numbers = &numbers,
                      .shared = true};
    frit_status st;

    TRY(component_sig(l, space->component, &sig, err));
    numbers.arena = l->arena;
    st = lowering_build(l, l->schedule->of_components, &s, err);
    l->arena = numbers.arena;
    if (st)
        return st;
    space->groups = numbers.grid[0][0];
    space->words = numbers.words;
    space->late = numbers.late;
    space->n_late = numbers.n_late;
    memcpy(space->alias, numbers.alias, sizeof(space->alias));
    l->out->bytes += numbers.bytes;
    l->out->flops += numbers.flops;
    space->body = BLOCK_NONE;
    if (space->groups || (last && !l->out->n_bodies))
        return find_body(l, &s, &space->body, err);
    kir_fini(&module);
    return FRIT_OK;
}

/* Per input of the block: the number of components that read it. */
static uint32_t *count_readers(struct lowering *l)
{
    uint32_t *readers = arena_array(&l->arena, l->program->block.n_inputs + 1u, sizeof(*readers));

    for (uint32_t i = 0; i < l->n_spaces && readers; i++) {
        const struct component *c = l->spaces[i].component;

        for (uint32_t k = 0; k < c->block.n_inputs; k++)
            readers[c->args[k]]++;
    }
    return readers;
}

/* An output must not overwrite an input that another component reads. */
static frit_status add_aliases(struct lowering *l, frit_err *err)
{
    uint32_t *readers = count_readers(l);

    if (!readers)
        return fail_memory(err, sizeof(*readers));
    for (uint32_t i = 0; i < l->n_spaces; i++) {
        const struct prepared_space *space = &l->spaces[i];
        const struct component *c = space->component;
        uint64_t shared = 0;

        for (uint32_t k = 0; k < c->block.n_inputs && k < 64; k++)
            if (readers[c->args[k]] > 1)
                shared |= 1ull << k;
        for (uint32_t k = 0; k < c->block.n_outputs; k++)
            TRY(lowering_add_alias(
                l, space->alias[k] & ~shared, c->args,
                lowering_output(l, c->args[c->block.n_inputs + k] - l->program->block.n_inputs),
                err));
    }
    return FRIT_OK;
}

/* Computes the first word of each body and allocates its arrays. */
static frit_status allocate_bodies(struct lowering *l, frit_err *err)
{
    struct prepared *p = l->out;

    for (uint32_t i = 0; i < l->n_spaces; i++)
        p->n_late += l->spaces[i].n_late;
    for (uint32_t i = 0; i < p->n_bodies; i++) {
        struct body *body = &p->bodies[i];

        body->args =
            arena_array(&p->arena, (size_t)body->n_spaces * body->n_args + 1, sizeof(*body->args));
        body->first = arena_array(&p->arena, (size_t)body->n_spaces + 1, sizeof(*body->first));
        if (!body->args || !body->first)
            return fail_memory(err, (size_t)body->n_spaces * sizeof(*body->args));
        body->first_word = p->n_words;
        p->n_words += body->n_spaces * body->n_words;
        body->n_spaces = 0;
    }
    p->words = arena_array(&p->arena, p->n_words + 1u, sizeof(*p->words));
    p->late = arena_array(&p->arena, p->n_late + 1u, sizeof(*p->late));
    p->n_late = 0;
    return p->words && p->late ? FRIT_OK : fail_memory(err, p->n_words * sizeof(*p->words));
}

static void copy_late(struct prepared *p, const struct prepared_space *space, uint32_t first_word)
{
    const struct component *c = space->component;

    for (uint32_t i = 0; i < space->n_late; i++) {
        struct sched_late *late = &p->late[p->n_late++];

        *late = space->late[i];
        late->word += first_word;
        late->number =
            late->from == SCHED_BOUND ? c->bounds[late->number] : c->scalars[late->number];
    }
}

static frit_status add_space(struct lowering *l, const struct prepared_space *space, frit_err *err)
{
    struct body *body = &l->out->bodies[space->body];
    uint32_t number = body->n_spaces++, word = body->first_word + number * body->n_words;
    uint32_t *args = body->args + (size_t)number * body->n_args;
    uint32_t *first = body->first;

    for (uint32_t i = 0; i < body->n_args; i++)
        args[i] = l->program->arg_numbers[space->component->args[i]];
    if (body->n_words)
        memcpy(l->out->words + word, space->words, body->n_words * sizeof(*l->out->words));
    copy_late(l->out, space, word);
    if (space->groups > INT32_MAX - first[number])
        return fail(err, FRIT_UNSUPPORTED, "%s: too many groups", l->schedule->name);
    first[number + 1] = first[number] + space->groups;
    memcpy(body->grid[0], (const uint32_t[3]){first[number + 1], 1, 1}, sizeof(body->grid[0]));
    return FRIT_OK;
}

frit_status lowering_components(struct lowering *l, frit_err *err)
{
    TRY(components_of(&l->program->block, &l->arena, &l->components, &l->n_spaces, err));
    l->spaces = arena_array(&l->arena, l->n_spaces, sizeof(*l->spaces));
    if (!l->spaces)
        return fail_memory(err, l->n_spaces * sizeof(*l->spaces));
    for (uint32_t i = 0; i < l->n_spaces; i++) {
        l->spaces[i].component = &l->components[i];
        TRY(lower_component(l, &l->spaces[i], i + 1 == l->n_spaces, err));
    }
    TRY(allocate_bodies(l, err));
    for (uint32_t i = 0; i < l->n_spaces; i++)
        if (l->spaces[i].body != BLOCK_NONE)
            TRY(add_space(l, &l->spaces[i], err));
    return add_aliases(l, err);
}
