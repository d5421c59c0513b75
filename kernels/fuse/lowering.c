/* SPDX-License-Identifier: Apache-2.0 */
/* What all ways have in common, and a block as one kernel over one space. */
#include "fuse/lowering.h"

#include <stdio.h>
#include <string.h>

#include <frit/op_table.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/fail.h"
#include "fuse/codes.h"
#include "ir/digest.h"
#include "ir/verify.h"
#include "kernels.h"

/* Sizes of a kernel's name: for op names, and with a number appended. */
enum { NAME_CAPACITY = 64, NAME_BYTES = NAME_CAPACITY + 12 };

/* ---- modules ---- */

/* Checks invariants of the module that a schedule built. */
static frit_status check_module(const struct sched *s, const char *name, frit_err *err)
{
    const struct kir_module *m = s->module;
    bool works = s->numbers->workspace_bytes != 0, derives = s->numbers->derived.bytes != 0;
    uint32_t n = s->block->n_inputs + s->block->n_outputs + derives + works;
    bool valid = !s->shared || (m->n_phases == 1 && !works && !derives);

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

frit_status lowering_extents(struct lowering *l, frit_err *err)
{
    const struct block *block = &l->program->block;

    l->extents = arena_array(&l->arena, (size_t)block->n_extents + 2, sizeof(*l->extents));
    if (!l->extents)
        return fail_memory(err, block->n_extents * sizeof(*l->extents));
    return block_extents(block, l->sig, l->extents, err);
}

frit_status lowering_build(const struct lowering *l, const struct schedule *schedule,
                           struct sched *s, frit_err *err)
{
    const char *by = l->schedule->name;
    char name[NAME_BYTES];
    frit_status st;

    name_kernel(by, s->block, name);
    kir_init(s->module, name);
    s->module->spaces = s->shared;
    s->target = l->target;
    s->extents = l->extents;
    st = schedule->build(s, err);
    if (!st)
        st = check_module(s, by, err);
    if (st)
        kir_fini(s->module);
    return st;
}

static frit_status grow_bodies(struct lowering *l, frit_err *err)
{
    struct prepared *p = l->out;

    return array_grow(&p->bodies, &l->bodies_capacity, p->n_bodies, 1, sizeof(*p->bodies)) &&
                   array_grow(&l->digests, &l->digests_capacity, p->n_bodies, 1, KIR_DIGEST)
               ? FRIT_OK
               : fail_memory(err, sizeof(*p->bodies));
}

frit_status lowering_add_body(struct lowering *l, const struct sched *s, struct body **out,
                              frit_err *err)
{
    struct prepared *p = l->out;
    struct body *body;
    frit_status st = kir_verify(s->module, NULL, err);

    if (!st)
        st = grow_bodies(l, err);
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

/* Identifies what the library computes, and how. */
static void product_digest(const struct kernels_product_launch *launch, uint8_t out[KIR_DIGEST])
{
    const struct kernels_product *p = &launch->product;
    const struct kernels_matrix *const matrices[] = {&p->a, &p->b, &p->c};
    int64_t numbers[9 + KERNELS_BATCHES + 3 * (2 + KERNELS_BATCHES)] = {
        p->dtype,      p->result, p->has_bias,
        p->is_reduced, p->align,  p->m,
        p->n,          p->k,      (int64_t)launch->algorithm};
    uint32_t n = 9;
    XXH128_canonical_t digest;

    for (uint32_t i = 0; i < KERNELS_BATCHES; i++)
        numbers[n++] = p->batch[i];
    for (uint32_t i = 0; i < 3; i++) {
        numbers[n++] = matrices[i]->row;
        numbers[n++] = matrices[i]->column;
        for (uint32_t k = 0; k < KERNELS_BATCHES; k++)
            numbers[n++] = matrices[i]->batch[k];
    }
    XXH128_canonicalFromHash(&digest, XXH3_128bits(numbers, sizeof(numbers)));
    memcpy(out, digest.digest, KIR_DIGEST);
}

frit_status lowering_add_product(struct lowering *l, struct kernels_product_launch *product,
                                 frit_err *err)
{
    struct prepared *p = l->out;

    TRY(grow_bodies(l, err));
    product_digest(product, l->digests[p->n_bodies]);
    p->bodies[p->n_bodies++] = (struct body){.product = product};
    return FRIT_OK;
}

/* ---- one space ---- */

frit_status lowering_add_alias(struct lowering *l, uint64_t inputs, const uint32_t *args,
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

frit_output_spec *lowering_output(const struct lowering *l, uint32_t output)
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

static frit_status add_args(struct lowering *l, const struct sched *s, struct body *body,
                            frit_err *err)
{
    uint32_t n = s->block->n_inputs + s->block->n_outputs;

    body->args = arena_array(&l->out->arena, n + 2u, sizeof(*body->args));
    if (!body->args)
        return fail_memory(err, n * sizeof(*body->args));
    memcpy(body->args, l->program->arg_numbers, n * sizeof(*body->args));
    if (s->numbers->derived.bytes)
        body->args[n++] = KERNELS_DERIVED;
    body->args[n] = KERNELS_WORKSPACE;
    return FRIT_OK;
}

static void add_derived(struct lowering *l, const struct sched_derived *derived, struct body *body)
{
    if (!derived->bytes)
        return;
    body->fill_phases = 1u << derived->phase;
    l->out->derived = (frit_derived_spec){
        .tag = derived->tag,
        .bytes = derived->bytes,
        .arg = l->program->arg_numbers[derived->input],
    };
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
    TRY(lowering_add_body(l, s, &body, err));
    TRY(add_args(l, s, body, err));
    add_derived(l, &n->derived, body);
    body->brief_phases = n->brief_phases;
    body->n_spaces = 1;
    memcpy(body->grid, n->grid, sizeof(body->grid));
    p->workspace_bytes = n->workspace_bytes;
    p->bytes = n->bytes;
    p->flops = n->flops;
    for (uint32_t i = 0; i < s->block->n_inputs; i++)
        numbers[i] = i;
    for (uint32_t i = 0; i < s->block->n_outputs; i++)
        TRY(lowering_add_alias(l, n->alias[i], numbers, lowering_output(l, i), err));
    return copy_words(l, n, err);
}

frit_status lowering_whole(struct lowering *l, frit_err *err)
{
    struct kir_module module;
    struct sched_numbers numbers = {.arena = l->arena};
    struct sched s = {
        .block = &l->program->block, .sig = l->sig, .module = &module, .numbers = &numbers};
    frit_status st = lowering_build(l, l->schedule, &s, err);

    l->arena = numbers.arena;
    return st ? st : finish_whole(l, &s, err);
}
