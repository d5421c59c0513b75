/* SPDX-License-Identifier: Apache-2.0 */
/* Places in scratch memory.  Constants and single elements never share a place.  Registers, which
 * hold an element per lane, are reused: two pools, one for each element size, keep those that are
 * free. */
#include "emit/tile/places.h"

#include "base/array.h"

#include "emit/tile/make.h"

#define MAX_SCRATCH ((uint64_t)1 << 30)

uint32_t make_space(struct make *m, uint64_t bytes, uint64_t align)
{
    uint64_t at = (m->end + align - 1) / align * align;

    if (bytes > MAX_SCRATCH || at + bytes > MAX_SCRATCH) {
        m->end = MAX_SCRATCH + 1; /* too large from here on */
        return 0;
    }
    m->end = at + bytes;
    return (uint32_t)at;
}

uint32_t make_uniform(struct make *m)
{
    return make_space(m, 8, 8);
}

/* The space for all constants was reserved before the first step. */
uint32_t make_const(struct make *m, uint64_t bits)
{
    struct tile_code *code = m->code;

    if (!array_grow(&code->const_bits, &code->consts_capacity, code->n_consts, 1,
                    sizeof(*code->const_bits))) {
        m->failed = true;
        return 0;
    }
    code->const_bits[code->n_consts] = bits;
    return code->consts + 8 * code->n_consts++;
}

uint32_t make_take_reg(struct make *m, uint32_t type)
{
    struct register_pool *pool = &m->pools[make_is_wide(type)];

    if (pool->n)
        return pool->regs[--pool->n];
    return make_space(m, TILE_HEAD + (uint64_t)m->code->lanes * (make_is_wide(type) ? 8 : 4),
                      TILE_ALIGN) +
           TILE_HEAD;
}

void make_put_reg(struct make *m, uint32_t type, uint32_t reg)
{
    struct register_pool *pool = &m->pools[make_is_wide(type)];

    if (!array_grow(&pool->regs, &pool->capacity, pool->n, 1, sizeof(*pool->regs)))
        m->failed = true;
    else
        pool->regs[pool->n++] = reg;
}

void make_release(struct make *m, uint32_t at)
{
    for (uint32_t v = m->dying[at]; v != KIR_NONE; v = m->values[v].dead) {
        const struct value *value = &m->values[v];
        bool owns = value->form == FORM_LANES || value->form == FORM_RANGE || value->lanes;

        if (value->needed && owns && !make_in_phi(m, v))
            make_put_reg(m, make_type(m, v), value->reg);
    }
    m->dying[at] = KIR_NONE;
}

void make_step(struct make *m, const struct tile_step *step)
{
    struct tile_code *code = m->code;

    if (!array_grow(&code->steps, &code->steps_capacity, code->n_steps, 1, sizeof(*code->steps)))
        m->failed = true;
    else
        code->steps[code->n_steps++] = *step;
}
