/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/expr/delinearize.h"

void delinearize_init(struct delinearizer *points, const struct expr *e, uint32_t tag)
{
    *points = (struct delinearizer){.count = 1};
    for (uint32_t d = 0; d < e->space.n_dims; d++) {
        if (e->space.tag[d] != tag)
            continue;
        points->dim[points->n++] = d;
        points->count *= e->space.extent[d];
    }
}

void delinearize_phase(struct delinearizer *points, struct expr *e)
{
    for (uint32_t i = 1; i < points->n; i++) {
        points->extent[i] = sched_add_index(e->s, e->space.extent[points->dim[i]]);
        points->divisor[i] = sched_add_divisor(e->s, e->space.extent[points->dim[i]]);
    }
}

void delinearize_set(const struct delinearizer *points, struct expr *e, uint32_t number)
{
    struct kir_module *m = e->s->module;

    for (uint32_t i = points->n; i-- > 1;) {
        uint32_t outer = sched_divide(e->s, &points->divisor[i], number);
        uint32_t rest = kir_binary(m, KIR_mul, outer, points->extent[i]);

        expr_set(e, points->dim[i], kir_binary(m, KIR_sub, number, rest));
        number = outer;
    }
    if (points->n)
        expr_set(e, points->dim[0], number);
}
