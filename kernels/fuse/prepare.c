/* SPDX-License-Identifier: Apache-2.0 */
/* What a program answers to a signature: lowered once, then remembered by the exact bytes of the
 * question.  Lowering (prepared.c) runs outside the lock; of two threads with the same question one
 * answer is kept. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "fuse/program.h"

/* ---- the question ---- */

struct question {
    struct program *program;
    uint32_t candidate;
    frit_signature sig; /* in the order of the block */
    struct str key;
    struct arena arena;
};

static const frit_arg_sig *arg_at(const frit_signature *sig, uint32_t i)
{
    return (const frit_arg_sig *)(const void *)((const char *)sig->args +
                                                (size_t)i * sig->arg_stride);
}

/* A host may be older than what signatures say of bounds. */
static bool has_bounds(const frit_signature *sig)
{
    return sig->struct_size >= FRIT_END_OF(frit_signature, n_bounds) && sig->bound_classes;
}

/* Host and program must mean the same ops; types, ranks and dims are compared by block_extents. */
static frit_status check(const struct program *p, uint32_t candidate, const frit_signature *sig,
                         frit_err *err)
{
    if (candidate >= p->n_candidates || sig->n_in != p->n_in || sig->n_out != p->n_out ||
        sig->n_scalars != p->block.n_scalars ||
        (has_bounds(sig) && sig->n_bounds != p->block.n_bounds))
        return fail(err, FRIT_INVALID,
                    "%s: asked for candidate %u of %u with %u operands, %u outputs, %u scalars and "
                    "%u bounds instead of %u, %u, %u and %u",
                    p->name, candidate, p->n_candidates, sig->n_in, sig->n_out, sig->n_scalars,
                    has_bounds(sig) ? sig->n_bounds : p->block.n_bounds, p->n_in, p->n_out,
                    p->block.n_scalars, p->block.n_bounds);
    if (sig->flags & FRIT_MUST_UNDERSTAND)
        return fail(err, FRIT_UNSUPPORTED, "%s: unknown flags in a signature", p->name);
    return FRIT_OK;
}

static void add_to_key(struct str *key, const void *bytes, size_t n)
{
    str_add(key, bytes, n);
}

static void form_key(struct question *q)
{
    uint32_t n = q->sig.n_in + q->sig.n_out;

    add_to_key(&q->key, &q->candidate, sizeof(q->candidate));
    add_to_key(&q->key, &q->sig.index_width, sizeof(q->sig.index_width));
    add_to_key(&q->key, q->sig.scalar_classes, q->sig.n_scalars);
    if (q->sig.bound_classes)
        add_to_key(&q->key, q->sig.bound_classes, q->sig.n_bounds);
    for (uint32_t i = 0; i < n; i++) {
        const frit_arg_sig *arg = &q->sig.args[i];

        add_to_key(&q->key, arg, offsetof(frit_arg_sig, dims));
        add_to_key(&q->key, arg->dims, arg->rank * sizeof(*arg->dims));
        add_to_key(&q->key, arg->strides, arg->rank * sizeof(*arg->strides));
    }
}

static frit_status question_init(struct question *q, struct program *p, uint32_t candidate,
                                 const frit_signature *sig, frit_err *err)
{
    uint32_t n = p->block.n_inputs + p->block.n_outputs;
    frit_arg_sig *args;

    *q = (struct question){.program = p, .candidate = candidate};
    TRY(check(p, candidate, sig, err));
    args = arena_array(&q->arena, n, sizeof(*args));
    if (!args)
        return fail_memory(err, n * sizeof(*args));
    for (uint32_t i = 0; i < n; i++)
        args[i] = *arg_at(sig, p->places[i]);
    memcpy(&q->sig, sig,
           has_bounds(sig) ? sizeof(q->sig) : offsetof(frit_signature, bound_classes));
    q->sig.n_in = p->block.n_inputs;
    q->sig.n_out = p->block.n_outputs;
    q->sig.arg_stride = sizeof(*args);
    q->sig.args = args;
    form_key(q);
    return q->key.failed ? fail_memory(err, n * sizeof(*args)) : FRIT_OK;
}

static void question_fini(struct question *q)
{
    str_fini(&q->key);
    arena_fini(&q->arena);
}

/* ---- remembering ---- */

static struct prepared *recall(const struct question *q)
{
    struct program *p = q->program;
    struct prepared *known;

    pthread_mutex_lock(&p->lock);
    known = map_get(&p->prepared, q->key.text, q->key.length);
    pthread_mutex_unlock(&p->lock);
    return known;
}

static bool has_code(const struct program *p, const struct code *code)
{
    for (uint32_t i = 0; i < p->n_codes; i++) {
        if (p->codes[i] == code)
            return true;
    }
    return false;
}

/* Inside the lock.  Keeps the answer and its references; spare[i]: that of body `i` is one too
 * many.
 */
static bool add(const struct question *q, struct prepared *mine, bool *spare)
{
    struct program *p = q->program;

    if (!array_grow(&p->codes, &p->codes_room, p->n_codes, mine->n_bodies, sizeof(struct code *)) ||
        !array_grow(&p->answers, &p->answers_capacity, p->n_answers, 1, sizeof(*p->answers)) ||
        !map_add(&p->prepared, q->key.text, q->key.length, mine))
        return false;
    p->answers[p->n_answers++] = mine;
    for (uint32_t i = 0; i < mine->n_bodies; i++) {
        spare[i] = has_code(p, mine->bodies[i].code);
        if (!spare[i])
            p->codes[p->n_codes++] = mine->bodies[i].code;
    }
    return true;
}

/* The answer that counts: this one, or that of a thread that was faster. */
static frit_status remember(struct question *q, struct prepared *mine, struct prepared **out,
                            frit_err *err)
{
    struct program *p = q->program;
    bool *spare = arena_array(&q->arena, mine->n_bodies + 1u, sizeof(*spare));
    struct prepared *known;
    bool added = false;

    pthread_mutex_lock(&p->lock);
    known = map_get(&p->prepared, q->key.text, q->key.length);
    if (!known && spare)
        added = add(q, mine, spare);
    pthread_mutex_unlock(&p->lock);
    *out = known ? known : added ? mine : NULL;
    for (uint32_t i = 0; i < mine->n_bodies; i++)
        if (!added || spare[i])
            code_unref(mine->bodies[i].code);
    if (!added)
        prepared_destroy(mine);
    return *out ? FRIT_OK : fail_memory(err, q->key.length);
}

/* ---- answering ---- */

/* For people: the phases of all kernels, as many as there is room for. */
static void describe_phases(const struct prepared *known, frit_launch_spec *out)
{
    out->n_phases = 0;
    for (uint32_t b = 0; b < known->n_bodies; b++) {
        const struct body *body = &known->bodies[b];

        for (uint32_t i = 0; i < body->n_phases && out->n_phases < FRIT_MAX_PHASES; i++) {
            frit_phase *phase = &out->phases[out->n_phases++];

            memcpy(phase->grid, body->grid[i], sizeof(phase->grid));
            phase->group[0] = body->lanes[i];
            phase->group[1] = phase->group[2] = 1;
        }
    }
}

static bool is_compiled(const struct prepared *known)
{
    for (uint32_t i = 0; i < known->n_bodies; i++)
        if (!code_compiled(known->bodies[i].code))
            return false;
    return true;
}

static frit_status answer(const struct program *p, const struct prepared *known,
                          frit_launch_spec *out, frit_variant *variant)
{
    out->workspace_bytes = known->workspace_bytes;
    out->predicted_bytes = known->bytes;
    out->predicted_flops = known->flops;
    out->driver[0] = (uint64_t)(uintptr_t)known;
    describe_phases(known, out);
    for (uint32_t i = 0; i < p->n_out && i < FRIT_MAX_OUTPUTS; i++)
        for (uint32_t k = 0; k < known->alias[i].n_inputs; k++)
            if (known->alias[i].inputs[k] < 64)
                out->outputs[i].alias |= 1ull << known->alias[i].inputs[k];
    if (FRIT_HAS(out, frit_launch_spec, aliases)) {
        out->n_aliases = p->n_out;
        out->aliases = known->alias;
    }
    variant->n_bytes = KIR_DIGEST;
    memcpy(variant->bytes, known->digest, KIR_DIGEST);
    return is_compiled(known) ? FRIT_OK : FRIT_PREPARE_NEEDS_COMPILE;
}

frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                            frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    struct program *p = self;
    struct prepared *known = NULL, *mine;
    struct question q;
    frit_status st = question_init(&q, p, candidate, sig, err);

    if (!st)
        known = recall(&q);
    if (!st && !known) {
        st = prepared_create(p, candidate, &q.sig, &mine, err);
        if (!st)
            st = remember(&q, mine, &known, err);
    }
    question_fini(&q);
    return st ? st : answer(p, known, out, variant);
}
