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
    struct lowering l = {.program = program,
                         .schedule = program->schedules[candidate],
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
