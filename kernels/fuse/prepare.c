/* SPDX-License-Identifier: Apache-2.0 */
/* Program slot `prepare`: a block is lowered once per signature and the result cached; the key is
 * the exact bytes of candidate and signature.  Lowering (prepared.c) runs outside the lock; if two
 * threads lower the same signature one result is discarded. */
#include "fuse/prepare.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "fuse/codes.h"
#include "fuse/prepared.h"
#include "fuse/program.h"
#include "fuse/variation.h"

/* To compile an instruction, by NVRTC 13; other compilers agree in what takes longer. */
enum { INST_NS = 300000 };

/* ---- the request ---- */

struct prepare_request {
    struct program *program;
    uint32_t candidate;
    frit_signature sig; /* arguments in the order of the block */
    struct str key;
    struct arena arena;
};

/* Hosts of older versions have no bounds in signatures. */
static bool has_bounds(const frit_signature *sig)
{
    return sig->struct_size >= FRIT_END_OF(frit_signature, n_bounds) && sig->bound_classes;
}

/* Checks the numbers of arguments; types, ranks and dims are checked by block_extents. */
static frit_status check(const struct program *p, uint32_t candidate, const frit_signature *sig,
                         frit_err *err)
{
    if (candidate >= p->n_candidates || sig->n_in != p->n_in || sig->n_out != p->n_out ||
        sig->n_scalars != p->block.n_scalars ||
        (has_bounds(sig) && sig->n_bounds != p->block.n_bounds))
        return fail(
            err, FRIT_INVALID,
            "%s: prepare for candidate %u of %u with %u operands, %u outputs, %u scalars and "
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

static void form_key(struct prepare_request *request)
{
    uint32_t n = request->sig.n_in + request->sig.n_out;

    add_to_key(&request->key, &request->candidate, sizeof(request->candidate));
    add_to_key(&request->key, &request->sig.index_width, sizeof(request->sig.index_width));
    add_to_key(&request->key, request->sig.scalar_classes, request->sig.n_scalars);
    if (request->sig.bound_classes)
        add_to_key(&request->key, request->sig.bound_classes, request->sig.n_bounds);
    for (uint32_t i = 0; i < n; i++) {
        const frit_arg_sig *arg = &request->sig.args[i];

        add_to_key(&request->key, arg, offsetof(frit_arg_sig, dims));
        add_to_key(&request->key, arg->dims, arg->rank * sizeof(*arg->dims));
        add_to_key(&request->key, arg->strides, arg->rank * sizeof(*arg->strides));
    }
}

static frit_status request_init(struct prepare_request *request, struct program *p,
                                uint32_t candidate, const frit_signature *sig, frit_err *err)
{
    uint32_t n = p->block.n_inputs + p->block.n_outputs;
    frit_arg_sig *args;

    *request = (struct prepare_request){.program = p, .candidate = candidate};
    TRY(check(p, candidate, sig, err));
    args = arena_array(&request->arena, n, sizeof(*args));
    if (!args)
        return fail_memory(err, n * sizeof(*args));
    for (uint32_t i = 0; i < n; i++)
        args[i] = *frit_arg_sig_at(sig, p->arg_numbers[i]);
    memcpy(&request->sig, sig,
           has_bounds(sig) ? sizeof(request->sig) : offsetof(frit_signature, bound_classes));
    request->sig.n_in = p->block.n_inputs;
    request->sig.n_out = p->block.n_outputs;
    request->sig.arg_stride = sizeof(*args);
    request->sig.args = args;
    form_key(request);
    return request->key.failed ? fail_memory(err, n * sizeof(*args)) : FRIT_OK;
}

static void request_fini(struct prepare_request *request)
{
    str_fini(&request->key);
    arena_fini(&request->arena);
}

/* ---- the cache ---- */

/* Returns the cached result and counts one more launch spec of it; NULL: there is none. */
static struct prepared *find_cached(const struct prepare_request *request)
{
    struct program *p = request->program;
    struct prepared *prepared;

    pthread_mutex_lock(&p->lock);
    prepared = map_get(&p->prepared, request->key.text, request->key.length);
    if (prepared)
        prepared->specs++;
    pthread_mutex_unlock(&p->lock);
    return prepared;
}

/* Requires the lock. */
static bool link_variant(struct program *p, struct prepared *created)
{
    struct program_variant *variant = map_get(&p->variants, created->digest, KIR_DIGEST);

    if (!variant) {
        variant = calloc(1, sizeof(*variant));
        if (!variant || !map_add(&p->variants, created->digest, KIR_DIGEST, variant)) {
            free(variant);
            return false;
        }
    }
    created->next = variant->first;
    if (created->next)
        created->next->link = &created->next;
    created->link = &variant->first;
    variant->first = created;
    return true;
}

/* Requires the lock. */
static void unlink_variant(struct program *p, struct prepared *created)
{
    *created->link = created->next;
    if (created->next)
        created->next->link = created->link;
    else if (!((struct program_variant *)map_get(&p->variants, created->digest, KIR_DIGEST))->first)
        free(map_remove(&p->variants, created->digest, KIR_DIGEST));
}

/* Requires the lock. */
static bool add(const struct prepare_request *request, struct prepared *created)
{
    struct program *p = request->program;

    created->key = arena_alloc(&created->arena, request->key.length);
    if (!created->key || !link_variant(p, created))
        return false;
    created->key_bytes = request->key.length;
    memcpy(created->key, request->key.text, request->key.length);
    if (map_add(&p->prepared, created->key, created->key_bytes, created))
        return true;
    unlink_variant(p, created);
    return false;
}

/* Adds a result to the cache, or returns the one that another thread has added.  Counts one more
 * launch spec of it. */
static frit_status add_to_cache(const struct prepare_request *request, struct prepared *created,
                                struct prepared **out, frit_err *err)
{
    struct program *p = request->program;
    struct prepared *prepared;
    bool added = false;

    pthread_mutex_lock(&p->lock);
    prepared = map_get(&p->prepared, request->key.text, request->key.length);
    if (!prepared)
        added = add(request, created);
    *out = prepared ? prepared : added ? created : NULL;
    if (*out)
        (*out)->specs++;
    pthread_mutex_unlock(&p->lock);
    if (!added)
        prepared_destroy(created);
    return *out ? FRIT_OK : fail_memory(err, request->key.length);
}

static bool has_product(const struct prepared *prepared)
{
    for (uint32_t i = 0; i < prepared->n_bodies; i++)
        if (prepared->bodies[i].product)
            return true;
    return false;
}

/* Counts one launch spec less.  The result that was released last keeps its code until the next
 * one is: a launch spec that is outdated because that code got better is often the only one, and is
 * released before the next one is made. */
static void release(struct program *p, struct prepared *prepared)
{
    struct prepared *before = NULL;
    bool last;

    pthread_mutex_lock(&p->lock);
    last = --prepared->specs == 0;
    if (last) {
        map_remove(&p->prepared, prepared->key, prepared->key_bytes);
        unlink_variant(p, prepared);
        before = has_product(prepared) ? prepared : p->released;
        p->released = has_product(prepared) ? p->released : prepared;
    }
    pthread_mutex_unlock(&p->lock);
    if (before)
        prepared_destroy(before);
}

void program_spec_release(void *self, const frit_launch_spec *spec)
{
    release(self, (struct prepared *)(uintptr_t)spec->driver[0]);
}

/* ---- the result ---- */

static bool is_compiled(const struct prepared *prepared)
{
    for (uint32_t i = 0; i < prepared->n_bodies; i++)
        if (prepared->bodies[i].code && !code_compiled(prepared->bodies[i].code))
            return false;
    return true;
}

static uint64_t estimate_compile(const struct prepared *prepared)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < prepared->n_bodies; i++)
        if (prepared->bodies[i].code && !code_compiled(prepared->bodies[i].code))
            n += code_insts(prepared->bodies[i].code);
    return n * INST_NS;
}

static frit_status fill_spec(const struct program *p, const struct prepared *prepared,
                             frit_launch_spec *out, frit_variant *variant)
{
    out->n_phases = prepared->n_phases;
    out->phases = prepared->phases;
    out->n_outputs = p->n_out;
    out->output_stride = sizeof(*prepared->outputs);
    out->outputs = prepared->outputs;
    out->n_derived = prepared->derived.bytes != 0;
    out->derived_stride = sizeof(prepared->derived);
    out->derived = &prepared->derived;
    out->workspace_bytes = prepared->workspace_bytes;
    out->driver[0] = (uint64_t)(uintptr_t)prepared;
    if (FRIT_HAS(out, frit_launch_spec, compile_ns))
        out->compile_ns = estimate_compile(prepared);
    variant->n_bytes = KIR_DIGEST;
    memcpy(variant->bytes, prepared->digest, KIR_DIGEST);
    return is_compiled(prepared) ? FRIT_OK : FRIT_PREPARE_NEEDS_COMPILE;
}

/* Takes the result from the cache, or lowers; counts one more launch spec of it. */
static frit_status take(struct program *p, uint32_t candidate, const frit_signature *sig,
                        struct prepared **out, frit_err *err)
{
    struct prepared *created;
    struct prepare_request request;
    frit_status st = request_init(&request, p, candidate, sig, err);

    *out = NULL;
    if (!st)
        *out = find_cached(&request);
    if (!st && !*out) {
        st = prepared_create(p, candidate, &request.sig, &created, err);
        if (!st)
            st = add_to_cache(&request, created, out, err);
    }
    request_fini(&request);
    return st;
}

/* Candidate whose schedule a variation changes. */
static uint32_t varied_candidate(const struct program *p, uint32_t candidate)
{
    uint32_t i = 0;

    while (p->schedules[i] != p->schedules[candidate] || p->variations[i])
        i++;
    return i;
}

/* FRIT_UNSUPPORTED if a variation runs the kernels of the schedule itself.  What the schedule
 * cannot run, a variation may. */
static frit_status check_varies(struct program *p, uint32_t candidate, const frit_signature *sig,
                                const struct prepared *prepared, frit_err *err)
{
    struct prepared *unvaried;
    frit_status st = take(p, varied_candidate(p, candidate), sig, &unvaried, err);
    bool equal;

    if (st)
        return st == FRIT_UNSUPPORTED ? FRIT_OK : st;
    equal = prepared_equals(prepared, unvaried);
    release(p, unvaried);
    return equal ? fail(err, FRIT_UNSUPPORTED, "%s: %s does not change the kernels of these sizes",
                        p->name, p->variations[candidate]->identity)
                 : FRIT_OK;
}

frit_status program_prepare(void *self, uint32_t candidate, const frit_signature *sig,
                            frit_launch_spec *out, frit_variant *variant, frit_err *err)
{
    struct program *p = self;
    struct prepared *prepared;
    frit_status st;

    TRY(take(p, candidate, sig, &prepared, err));
    st = p->variations[candidate] ? check_varies(p, candidate, sig, prepared, err) : FRIT_OK;
    if (st) {
        release(p, prepared);
        return st;
    }
    return fill_spec(p, prepared, out, variant);
}
