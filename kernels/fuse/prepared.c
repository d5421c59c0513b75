/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers a block and a signature to the kernels of a launch.
 *
 * Most schedules make one kernel over one space.  A schedule of components lowers each component by
 * itself; components with equal modules are spaces of one kernel. */
#include "fuse/prepared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frit/op_table.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/fail.h"
#include "fuse/codes.h"
#include "fuse/program.h"
#include "ir/digest.h"
#include "ir/verify.h"
#include "kernels.h"
#include "lower/block/components.h"

/* Sizes of a kernel's name: for op names, and with a number appended. */
enum { NAME_CAPACITY = 64, NAME_BYTES = NAME_CAPACITY + 12 };

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

/* State while a block is lowered; `arena` has temporary arrays. */
struct lowering {
    const struct program *program;
    const struct schedule *schedule;
    const frit_signature *sig;
    int64_t *extents;
    struct arena arena;
    struct prepared *out;
    uint32_t bodies_capacity;
    struct component *components;
    struct prepared_space *spaces;
    uint32_t n_spaces;
    uint8_t (*digests)[KIR_DIGEST]; /* per body */
    uint32_t digests_capacity;
};

/* ---- modules ---- */

/* Checks invariants of the module that a schedule built. */
static frit_status check_module(const struct sched *s, const char *name, frit_err *err)
{
    const struct kir_module *m = s->module;
    uint32_t n = s->block->n_inputs + s->block->n_outputs + (s->numbers->workspace_bytes != 0);
    bool valid = !s->shared || (m->n_phases == 1 && !s->numbers->workspace_bytes);

    if (m->failed)
        return fail_memory(err, sizeof(*m));
    if (m->n_args != n || m->n_params != s->numbers->n_words || !m->n_phases ||
        m->n_phases > SCHED_PHASES || !valid)
        return fail(err, FRIT_INTERNAL,
                    "%s: a module with %u arguments, %u parameters and %u phases for %u arguments "
                    "and %u words",
                    name, m->n_args, m->n_params, m->n_phases, n, s->numbers->n_words);
    if (s->target->bindings && n > s->target->bindings)
        return fail(err, FRIT_UNSUPPORTED, "%s: %u arguments, the device takes %u", name, n,
                    s->target->bindings);
    return FRIT_OK;
}

/* Names the kernel for profiles: "map.add+mul+neg", or "map.add+mul+12" with 12 more ops. */
static void name_kernel(const char *schedule, const struct block *block, char name[NAME_BYTES])
{
    int n = snprintf(name, NAME_CAPACITY, "%s", schedule);

    for (uint32_t i = 0; i < block->n_ops; i++) {
        const char *op = frit_op_info_at(block->ops[i].id)->name;
        char sign = i ? '+' : '.';

        if ((size_t)n + 1 + strlen(op) >= NAME_CAPACITY) {
            snprintf(name + n, NAME_BYTES - NAME_CAPACITY, "%c%u", sign, block->n_ops - i);
            return;
        }
        n += snprintf(name + n, NAME_CAPACITY - (size_t)n, "%c%s", sign, op);
    }
}

static frit_status find_extents(struct lowering *l, frit_err *err)
{
    const struct block *block = &l->program->block;

    l->extents = arena_array(&l->arena, (size_t)block->n_extents + 2, sizeof(*l->extents));
    if (!l->extents)
        return fail_memory(err, block->n_extents * sizeof(*l->extents));
    return block_extents(block, l->sig, l->extents, err);
}

/* Initialises and builds the module of `s`; on success the caller owns it. */
static frit_status build(const struct lowering *l, const struct schedule *schedule, struct sched *s,
                         frit_err *err)
{
    char name[NAME_BYTES];
    frit_status st;

    name_kernel(l->schedule->name, s->block, name);
    kir_init(s->module, name);
    s->module->spaces = s->shared;
    s->target = &l->program->device->target;
    s->extents = l->extents;
    st = schedule->build(s, err);
    if (!st)
        st = check_module(s, l->schedule->name, err);
    if (st)
        kir_fini(s->module);
    return st;
}

/* Adds a body for a new module, which it takes, also on failure. */
static frit_status add_body(struct lowering *l, const struct sched *s, struct body **out,
                            frit_err *err)
{
    struct prepared *p = l->out;
    struct body *body;
    frit_status st = kir_verify(s->module, NULL, err);

    if (!st && (!array_grow(&p->bodies, &l->bodies_capacity, p->n_bodies, 1, sizeof(*body)) ||
                !array_grow(&l->digests, &l->digests_capacity, p->n_bodies, 1, KIR_DIGEST)))
        st = fail_memory(err, sizeof(*body));
    if (st) {
        kir_fini(s->module);
        return st;
    }
    body = &p->bodies[p->n_bodies];
    *body = (struct body){.n_phases = s->module->n_phases,
                          .n_args = s->module->n_args,
                          .n_words = s->module->n_params};
    for (uint32_t i = 0; i < body->n_phases; i++)
        body->lanes[i] = s->module->phases[i].lanes;
    kir_digest(s->module, l->digests[p->n_bodies]);
    TRY(codes_take(l->program->device->codes, s->module, &body->code, err));
    p->n_bodies++;
    *out = body;
    return FRIT_OK;
}

/* ---- one space ---- */

/* Lists the inputs of a bit mask as arguments of the launch; args[i] is the block's argument that
 * bit i stands for. */
static frit_status add_alias(struct lowering *l, uint64_t inputs, const uint32_t *args,
                             frit_output_spec *out, frit_err *err)
{
    uint32_t *list =
        arena_array(&l->out->arena, (size_t)__builtin_popcountll(inputs) + 1, sizeof(*list));

    if (!list)
        return fail_memory(err, sizeof(*list));
    out->alias = list;
    for (; inputs; inputs &= inputs - 1)
        list[out->n_alias++] = l->program->arg_numbers[args[__builtin_ctzll(inputs)]];
    return FRIT_OK;
}

static frit_output_spec *alias_of(const struct lowering *l, uint32_t output)
{
    const struct program *p = l->program;

    return &l->out->outputs[p->arg_numbers[p->block.n_inputs + output] - p->n_in];
}

static frit_status copy_words(struct lowering *l, const struct sched_numbers *n, frit_err *err)
{
    struct prepared *p = l->out;

    p->n_words = n->n_words;
    p->n_late = n->n_late;
    p->words = arena_array(&p->arena, n->n_words + 1u, sizeof(*p->words));
    p->late = arena_array(&p->arena, n->n_late + 1u, sizeof(*p->late));
    if (!p->words || !p->late)
        return fail_memory(err, n->n_words * sizeof(*p->words));
    if (n->n_words)
        memcpy(p->words, n->words, n->n_words * sizeof(*p->words));
    if (n->n_late)
        memcpy(p->late, n->late, n->n_late * sizeof(*p->late));
    return FRIT_OK;
}

static frit_status finish_whole(struct lowering *l, const struct sched *s, frit_err *err)
{
    const struct sched_numbers *n = s->numbers;
    struct prepared *p = l->out;
    uint32_t *numbers = arena_array(&l->arena, s->block->n_inputs + 1u, sizeof(*numbers));
    struct body *body;

    if (!numbers) {
        kir_fini(s->module);
        return fail_memory(err, s->block->n_inputs * sizeof(*numbers));
    }
    TRY(add_body(l, s, &body, err));
    body->args = l->program->arg_numbers;
    body->n_spaces = 1;
    memcpy(body->grid, n->grid, sizeof(body->grid));
    p->workspace_bytes = n->workspace_bytes;
    p->bytes = n->bytes;
    p->flops = n->flops;
    for (uint32_t i = 0; i < s->block->n_inputs; i++)
        numbers[i] = i;
    for (uint32_t i = 0; i < s->block->n_outputs; i++)
        TRY(add_alias(l, n->alias[i], numbers, alias_of(l, i), err));
    return copy_words(l, n, err);
}

static frit_status lower_whole(struct lowering *l, frit_err *err)
{
    struct kir_module module;
    struct sched_numbers numbers = {.arena = l->arena};
    struct sched s = {
        .block = &l->program->block, .sig = l->sig, .module = &module, .numbers = &numbers};
    frit_status st = build(l, l->schedule, &s, err);

    l->arena = numbers.arena;
    return st ? st : finish_whole(l, &s, err);
}

/* ---- components ---- */

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
    uint32_t max = l->program->device->target.launch_words;

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
    TRY(add_body(l, s, &body, err));
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
    st = build(l, l->schedule->of_components, &s, err);
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
            TRY(add_alias(l, space->alias[k] & ~shared, c->args,
                          alias_of(l, c->args[c->block.n_inputs + k] - l->program->block.n_inputs),
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

static frit_status lower_components(struct lowering *l, frit_err *err)
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

/* ---- life ---- */

void prepared_destroy(void *prepared)
{
    struct prepared *p = prepared;

    if (!p)
        return;
    for (uint32_t i = 0; i < p->n_bodies; i++)
        code_unref(p->bodies[i].code);
    free(p->bodies);
    arena_fini(&p->arena);
    free(p);
}

/* Lists the phases of all kernels, which the host checks and shows. */
static frit_status list_phases(struct prepared *p, frit_err *err)
{
    frit_phase *phase;

    for (uint32_t b = 0; b < p->n_bodies; b++)
        p->n_phases += p->bodies[b].n_phases;
    phase = p->phases = arena_array(&p->arena, p->n_phases + 1u, sizeof(*p->phases));
    if (!phase)
        return fail_memory(err, p->n_phases * sizeof(*phase));
    for (uint32_t b = 0; b < p->n_bodies; b++) {
        const struct body *body = &p->bodies[b];

        for (uint32_t i = 0; i < body->n_phases; i++, phase++) {
            memcpy(phase->grid, body->grid[i], sizeof(phase->grid));
            phase->group[0] = body->lanes[i];
            phase->group[1] = phase->group[2] = 1;
        }
    }
    return FRIT_OK;
}

static void compute_digest(struct lowering *l)
{
    XXH128_canonical_t digest;

    if (l->out->n_bodies == 1) {
        memcpy(l->out->digest, l->digests[0], KIR_DIGEST);
        return;
    }
    XXH128_canonicalFromHash(
        &digest, XXH3_128bits(l->digests, (size_t)l->out->n_bodies * sizeof(*l->digests)));
    memcpy(l->out->digest, digest.digest, KIR_DIGEST);
}

frit_status prepared_create(const struct program *program, uint32_t candidate,
                            const frit_signature *sig, struct prepared **out, frit_err *err)
{
    struct lowering l = {.program = program, .schedule = program->schedules[candidate], .sig = sig};
    frit_status st;

    *out = NULL;
    l.out = calloc(1, sizeof(*l.out));
    if (!l.out)
        return fail_memory(err, sizeof(*l.out));
    l.out->outputs = arena_array(&l.out->arena, program->n_out + 1u, sizeof(*l.out->outputs));
    st = l.out->outputs ? find_extents(&l, err) : fail_memory(err, sizeof(*l.out->outputs));
    if (!st)
        st = l.schedule->of_components ? lower_components(&l, err) : lower_whole(&l, err);
    if (!st)
        st = list_phases(l.out, err);
    if (!st) {
        compute_digest(&l);
        *out = l.out;
    } else {
        prepared_destroy(l.out);
    }
    free(l.digests);
    arena_fini(&l.arena);
    return st;
}
