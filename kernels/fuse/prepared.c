/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers a block and a signature to the kernels of a launch. */
#include "fuse/prepared.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fail.h"
#include "fuse/codes.h"
#include "fuse/lowering.h"
#include "fuse/variation.h"
#include "kernels.h"

/* ---- life ---- */

void prepared_destroy(void *prepared)
{
    struct prepared *p = prepared;

    if (!p)
        return;
    for (uint32_t i = 0; i < p->n_bodies; i++) {
        if (p->bodies[i].code)
            code_unref(p->bodies[i].code);
        if (p->bodies[i].product)
            p->device->product_release(p->device->self, p->bodies[i].product->plan);
    }
    free(p->bodies);
    arena_fini(&p->arena);
    free(p);
}

static bool same_grids(const struct body *a, const struct body *b)
{
    return a->n_phases == b->n_phases && a->n_spaces == b->n_spaces &&
           memcmp(a->grid, b->grid, a->n_phases * sizeof(*a->grid)) == 0;
}

bool prepared_equals(const struct prepared *a, const struct prepared *b)
{
    bool equal = memcmp(a->digest, b->digest, KIR_DIGEST) == 0 && a->n_bodies == b->n_bodies &&
                 a->workspace_bytes == b->workspace_bytes &&
                 memcmp(&a->derived, &b->derived, sizeof(a->derived)) == 0 &&
                 a->n_words == b->n_words &&
                 (!a->n_words || memcmp(a->words, b->words, a->n_words * sizeof(*a->words)) == 0);

    for (uint32_t i = 0; i < a->n_bodies && equal; i++)
        equal = same_grids(&a->bodies[i], &b->bodies[i]);
    return equal;
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

/* A product that the library leaves to kernels is one of the first schedule: for the host this is
 * no candidate that failed. */
static frit_status lower(struct lowering *l, frit_err *err)
{
    frit_status st = l->schedule ? FRIT_UNSUPPORTED : lowering_product(l, err);

    if (st != FRIT_UNSUPPORTED)
        return st;
    if (!l->schedule)
        l->schedule = l->program->schedules[0];
    return l->schedule->of_components ? lowering_components(l, err) : lowering_whole(l, err);
}

frit_status prepared_create(const struct program *program, uint32_t candidate,
                            const frit_signature *sig, struct prepared **out, frit_err *err)
{
    const struct variation *variation = program->variations[candidate];
    const struct kir_target varied =
        variation ? variation_target(variation, &program->device->target) : (struct kir_target){0};
    struct lowering l = {.program = program,
                         .schedule = program->schedules[candidate],
                         .target = variation ? &varied : &program->device->target,
                         .is_reduced =
                             program->candidates[candidate].numeric_class == FRIT_NUMERIC_REDUCED,
                         .sig = sig};
    frit_status st;

    *out = NULL;
    l.out = calloc(1, sizeof(*l.out));
    if (!l.out)
        return fail_memory(err, sizeof(*l.out));
    l.out->device = program->device;
    l.out->outputs = arena_array(&l.out->arena, program->n_out + 1u, sizeof(*l.out->outputs));
    st = l.out->outputs ? lowering_extents(&l, err) : fail_memory(err, sizeof(*l.out->outputs));
    if (!st)
        st = lower(&l, err);
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
