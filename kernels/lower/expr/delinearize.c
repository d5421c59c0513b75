/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/expr/delinearize.h"

void delinearize_init(struct delinearizer *points, const struct expr *e, uint32_t tag)
{
    *points = (struct delinearizer){.count = 1, .chunk = 1};
    for (uint32_t d = 0; d < e->space.n_dims; d++) {
        if (e->space.tag[d] != tag)
            continue;
        points->dim[points->n++] = d;
        points->count *= e->space.extent[d];
    }
}

void delinearize_chunk(struct delinearizer *points, const struct expr *e, uint32_t most)
{
    points->chunk = 1;
    while (points->n > 1 && points->chunk < most &&
           e->space.extent[points->dim[points->n - 1]] > 2 * (int64_t)points->chunk &&
           e->space.extent[points->dim[points->n - 1]] % (2 * (int64_t)points->chunk) == 0)
        points->chunk *= 2;
}

void delinearize_phase(struct delinearizer *points, struct expr *e)
{
    for (uint32_t i = 1; i < points->n; i++) {
        int64_t extent = e->space.extent[points->dim[i]];

        if (i == points->n - 1)
            extent /= points->chunk;
        points->extent[i] = sched_add_index(e->s, extent);
        points->divisor[i] = sched_add_divisor(e->s, extent);
    }
}

/* Sets dims from `last` down to 1, and leaves the number of the outermost one. */
static uint32_t set_inner(const struct delinearizer *points, struct expr *e, uint32_t last,
                          uint32_t number)
{
    struct kir_module *m = e->s->module;

    for (uint32_t i = last + 1; i-- > 1;) {
        uint32_t outer = sched_divide(e->s, &points->divisor[i], number);
        uint32_t rest = kir_binary(m, KIR_mul, outer, points->extent[i]);

        expr_set(e, points->dim[i], kir_binary(m, KIR_sub, number, rest));
        number = outer;
    }
    return number;
}

void delinearize_set_chunk(const struct delinearizer *points, struct expr *e, uint32_t chunk,
                           uint32_t low)
{
    struct kir_module *m = e->s->module;
    uint32_t last = points->n - 1;
    uint32_t outer = sched_divide(e->s, &points->divisor[last], chunk);
    uint32_t rest =
        kir_binary(m, KIR_sub, chunk, kir_binary(m, KIR_mul, outer, points->extent[last]));

    rest = kir_binary(m, KIR_mul, rest, kir_index(m, points->chunk));
    expr_set(e, points->dim[last], kir_binary(m, KIR_add, rest, low));
    expr_set(e, points->dim[0], set_inner(points, e, last - 1, outer));
}

void delinearize_set(const struct delinearizer *points, struct expr *e, uint32_t number)
{
    struct kir_module *m = e->s->module;

    if (points->chunk > 1) {
        uint32_t chunk = kir_binary(m, KIR_shr, number, kir_index(m, __builtin_ctz(points->chunk)));

        delinearize_set_chunk(points, e, chunk,
                              kir_binary(m, KIR_and, number, kir_index(m, points->chunk - 1)));
        return;
    }
    if (points->n)
        expr_set(e, points->dim[0], set_inner(points, e, points->n - 1, number));
}
