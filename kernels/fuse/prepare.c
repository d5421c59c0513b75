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

/* One more spec points at what is returned; NULL: the question is new. */
static struct prepared *recall(const struct question *q)
{
    struct program *p = q->program;
    struct prepared *known;

    pthread_mutex_lock(&p->lock);
    known = map_get(&p->prepared, q->key.text, q->key.length);
    if (known)
        known->specs++;
    pthread_mutex_unlock(&p->lock);
    return known;
}

/* Inside the lock. */
static bool list_variant(struct program *p, struct prepared *mine)
{
    struct program_variant *variant = map_get(&p->variants, mine->digest, KIR_DIGEST);

    if (!variant) {
        variant = calloc(1, sizeof(*variant));
        if (!variant || !map_add(&p->variants, mine->digest, KIR_DIGEST, variant)) {
            free(variant);
            return false;
        }
    }
    mine->next = variant->first;
    if (mine->next)
        mine->next->link = &mine->next;
    mine->link = &variant->first;
    variant->first = mine;
    return true;
}

/* Inside the lock. */
static void unlist_variant(struct program *p, struct prepared *mine)
{
    *mine->link = mine->next;
    if (mine->next)
        mine->next->link = mine->link;
    else if (!((struct program_variant *)map_get(&p->variants, mine->digest, KIR_DIGEST))->first)
        free(map_remove(&p->variants, mine->digest, KIR_DIGEST));
}

/* Inside the lock. */
static bool add(const struct question *q, struct prepared *mine)
{
    struct program *p = q->program;

    mine->key = arena_alloc(&mine->arena, q->key.length);
    if (!mine->key || !list_variant(p, mine))
        return false;
    mine->key_bytes = q->key.length;
    memcpy(mine->key, q->key.text, q->key.length);
    if (map_add(&p->prepared, mine->key, mine->key_bytes, mine))
        return true;
    unlist_variant(p, mine);
    return false;
}

/* The answer that counts: this one, or that of a thread that was faster; one more spec points at
 * it. */
static frit_status remember(const struct question *q, struct prepared *mine, struct prepared **out,
                            frit_err *err)
{
    struct program *p = q->program;
    struct prepared *known;
    bool added = false;

    pthread_mutex_lock(&p->lock);
    known = map_get(&p->prepared, q->key.text, q->key.length);
    if (!known)
        added = add(q, mine);
    *out = known ? known : added ? mine : NULL;
    if (*out)
        (*out)->specs++;
    pthread_mutex_unlock(&p->lock);
    if (!added)
        prepared_destroy(mine);
    return *out ? FRIT_OK : fail_memory(err, q->key.length);
}

void program_spec_release(void *self, const frit_launch_spec *spec)
{
    struct program *p = self;
    struct prepared *known = (struct prepared *)(uintptr_t)spec->driver[0];
    bool last;

    pthread_mutex_lock(&p->lock);
    last = --known->specs == 0;
    if (last) {
        map_remove(&p->prepared, known->key, known->key_bytes);
        unlist_variant(p, known);
    }
    pthread_mutex_unlock(&p->lock);
    if (last)
        prepared_destroy(known);
}

/* ---- answering ---- */

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
    out->n_phases = known->n_phases;
    out->phases = known->phases;
    out->n_outputs = p->n_out;
    out->output_stride = sizeof(*known->outputs);
    out->outputs = known->outputs;
    out->workspace_bytes = known->workspace_bytes;
    out->driver[0] = (uint64_t)(uintptr_t)known;
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
