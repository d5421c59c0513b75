/* SPDX-License-Identifier: Apache-2.0 */
#include "lower/walk.h"

void walk_init(struct walk *walk, const struct expr *e, uint32_t tag)
{
    *walk = (struct walk){.count = 1};
    for (uint32_t d = 0; d < e->space.n_dims; d++) {
        if (e->space.tag[d] != tag)
            continue;
        walk->dim[walk->n++] = d;
        walk->count *= e->space.extent[d];
    }
}

void walk_phase(struct walk *walk, struct expr *e)
{
    for (uint32_t i = 1; i < walk->n; i++) {
        walk->extent[i] = sched_index(e->s, e->space.extent[walk->dim[i]]);
        walk->divisor[i] = sched_divisor(e->s, e->space.extent[walk->dim[i]]);
    }
}

void walk_set(const struct walk *walk, struct expr *e, uint32_t number)
{
    struct kir_module *m = e->s->module;

    for (uint32_t i = walk->n; i-- > 1;) {
        uint32_t outer = sched_divide(e->s, &walk->divisor[i], number);
        uint32_t rest = kir_binary(m, KIR_mul, outer, walk->extent[i]);

        expr_set(e, walk->dim[i], kir_binary(m, KIR_sub, number, rest));
        number = outer;
    }
    if (walk->n)
        expr_set(e, walk->dim[0], number);
}
