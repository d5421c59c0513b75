/* SPDX-License-Identifier: Apache-2.0 */
/* Finding product loops.  Such a loop carries sums in lanes, and gives each the product of two
 * elements that it loads: one for all lanes, and one for each lane, which is the same for all sums.
 * It stores nothing, and its loads' offsets grow by as much in each round, so that what else it
 * computes need not be.
 *
 * The steps of its body follow the one that does it whole: for launches that watch every access,
 * and offsets that leave their type. */
#include "emit/tile/product.h"

#include "base/array.h"

#include "emit/tile/make.h"
#include "emit/tile/places.h"
#include "emit/tile/steps.h"

enum { PANEL_BYTES = 32768, LEAST_DEPTH = 8, MOST_DEPTH = 128 };

/* What a loop adds to its sums: down[i] * across to that of phi i. */
struct product_loop {
    uint32_t loop, rows;
    bool fused;
    uint32_t across, down[TILE_ROWS];
};

/* How a value grows: by times * *by for each that the counter does. */
struct growth {
    int64_t times;
    uint32_t by; /* in scratch; KIR_NONE: 1 */
};

static const struct kir_inst *inst_of(const struct make *m, uint32_t at)
{
    return &m->phase->inst[at];
}

static bool is_inside(const struct make *m, const struct product_loop *p, uint32_t value)
{
    return m->live.loop[value] == p->loop && inst_of(m, value)->op != KIR_phi;
}

/* ---- growth ---- */

/* The same in all rounds, and made before the loop. */
static bool is_fixed(const struct make *m, const struct product_loop *p, uint32_t value)
{
    return value < p->loop || m->values[value].made;
}

static int64_t const_of(const struct kir_inst *inst)
{
    return inst->type == KIR_I64 ? (int64_t)inst->imm : (int32_t)inst->imm;
}

static bool add_growth(struct growth *a, const struct growth *b, int64_t sign)
{
    if (b->times == 0)
        return true;
    if (a->times != 0 && a->by != b->by)
        return false;
    a->times = (int64_t)((uint64_t)a->times + (uint64_t)sign * (uint64_t)b->times);
    a->by = b->by;
    return true;
}

/* By what is the same in all rounds. */
static bool multiply_growth(const struct make *m, struct growth *a, uint32_t factor)
{
    if (a->times == 0)
        return true;
    if (inst_of(m, factor)->op == KIR_const) {
        a->times = (int64_t)((uint64_t)a->times * (uint64_t)const_of(inst_of(m, factor)));
        return true;
    }
    if (a->by != KIR_NONE || m->values[factor].form != FORM_ONE)
        return false;
    a->by = m->values[factor].one;
    return true;
}

/* False: not known. */
static bool growth_of(const struct make *m, const struct product_loop *p, uint32_t value,
                      struct growth *out)
{
    const struct kir_inst *inst = inst_of(m, value);
    struct growth b;

    *out = (struct growth){value == p->loop, KIR_NONE};
    if (value == p->loop || is_fixed(m, p, value))
        return true;
    if ((inst->op != KIR_add && inst->op != KIR_sub && inst->op != KIR_mul) ||
        !growth_of(m, p, inst->a[0], out) || !growth_of(m, p, inst->a[1], &b))
        return false;
    if (inst->op != KIR_mul)
        return add_growth(out, &b, inst->op == KIR_add ? 1 : -1);
    if (out->times != 0)
        return b.times == 0 && is_fixed(m, p, inst->a[1]) && multiply_growth(m, out, inst->a[1]);
    *out = b;
    return is_fixed(m, p, inst->a[0]) && multiply_growth(m, out, inst->a[0]);
}

/* ---- the loop ---- */

/* What is added to the phi: two factors. */
static bool find_factors(const struct make *m, struct product_loop *p, uint32_t phi, uint32_t sum,
                         uint32_t *factors)
{
    const struct kir_inst *inst = inst_of(m, sum);
    uint32_t product = KIR_NONE;

    if (!is_inside(m, p, sum))
        return false;
    p->fused = inst->op == KIR_fma;
    if (inst->op == KIR_add && inst->a[0] != inst->a[1])
        product = inst->a[0] == phi ? inst->a[1] : inst->a[1] == phi ? inst->a[0] : KIR_NONE;
    else if (inst->op == KIR_fma && inst->a[2] == phi)
        product = sum;
    if (product == KIR_NONE || !is_inside(m, p, product) ||
        (inst_of(m, product)->op != KIR_mul && product != sum))
        return false;
    factors[0] = inst_of(m, product)->a[0];
    factors[1] = inst_of(m, product)->a[1];
    return true;
}

static bool is_load(const struct make *m, const struct product_loop *p, uint32_t value)
{
    const struct kir_inst *inst = inst_of(m, value);

    return (inst->op == KIR_load || inst->op == KIR_load_if ||
            (inst->op == KIR_tload && m->phase->tiles[inst->imm].space == KIR_GROUP)) &&
           is_inside(m, p, value);
}

/* Row i's sum. */
static bool find_row(const struct make *m, struct product_loop *p, uint32_t i)
{
    const struct kir_inst *next = inst_of(m, inst_of(m, p->loop)->pair);
    uint32_t phi = p->loop + 1 + i, factors[2], down;

    if (m->values[phi].form != FORM_LANES ||
        inst_of(m, phi)->type != inst_of(m, p->loop + 1)->type ||
        !find_factors(m, p, phi, m->module->links[next->a[0] + i], factors))
        return false;
    down = m->values[factors[0]].form == FORM_ONE ? 0 : 1;
    p->down[i] = factors[down];
    if (m->values[p->down[i]].form != FORM_ONE || (i && p->across != factors[1 - down]))
        return false;
    p->across = factors[1 - down];
    return is_load(m, p, p->down[i]) && inst_of(m, p->down[i])->op != KIR_load_if;
}

/* One element per lane, in a line, where the mask is, which does not change. */
static bool is_line(const struct make *m, const struct product_loop *p)
{
    const struct kir_inst *inst = inst_of(m, p->across);

    return m->values[p->across].form == FORM_LANES && is_load(m, p, p->across) &&
           m->values[inst->a[0]].form == FORM_LINE &&
           (inst->op != KIR_load_if || (inst->a[1] < p->loop && is_fixed(m, p, inst->a[2])));
}

/* Nothing in the body has an effect, or a loop or branch of its own. */
static bool is_pure(const struct make *m, const struct product_loop *p)
{
    for (uint32_t at = p->loop + 1 + p->rows; at < inst_of(m, p->loop)->pair; at++)
        if (inst_of(m, at)->type == KIR_VOID || kir_opens(inst_of(m, at)->op))
            return false;
    return true;
}

static tile_multiply *find_loop(const struct make *m, struct product_loop *p)
{
    uint32_t type;
    bool fused = false;

    p->rows = inst_of(m, inst_of(m, p->loop)->pair)->a[1];
    if (p->rows == 0 || p->rows > TILE_ROWS || m->code->lanes < TILE_LEAST_LANES || !is_pure(m, p))
        return NULL;
    for (uint32_t i = 0; i < p->rows; i++) {
        if (!find_row(m, p, i) || (i && p->fused != fused))
            return NULL;
        fused = p->fused;
    }
    type = inst_of(m, p->loop + 1)->type;
    return is_line(m, p) ? (fused ? m->loops->fused : m->loops->products)[type] : NULL;
}

/* ---- the step ---- */

static bool grows_evenly(const struct make *m, const struct product_loop *p, uint32_t load,
                         struct growth *out)
{
    return growth_of(m, p, inst_of(m, load)->a[0], out);
}

static struct tile_product_load load_of(struct make *m, uint32_t load, const struct growth *growth)
{
    return (struct tile_product_load){make_load_step(m, load), growth->times, growth->by};
}

/* Elements that are in memory as in a register. */
static bool is_plain(const struct tile_product_load *load, size_t bytes)
{
    return load->step.in_tile || load->step.bytes == bytes;
}

static void place_panels(struct make *m, struct tile_product *product, size_t bytes)
{
    const struct tile_product_load *across = &product->across;
    bool plain = true;

    product->depth = MOST_DEPTH;
    if (!is_plain(across, bytes) || across->step.mask != MASK_NONE || across->step.imm != 1) {
        uint64_t depth = PANEL_BYTES / (m->code->lanes * bytes);

        product->depth = depth < LEAST_DEPTH  ? LEAST_DEPTH
                         : depth > MOST_DEPTH ? MOST_DEPTH
                                              : (uint32_t)depth;
        product->across_panel = make_space(m, product->depth * m->code->lanes * bytes, TILE_ALIGN);
    }
    for (uint32_t i = 0; i < product->rows; i++)
        plain = plain && is_plain(&product->down[i], bytes);
    if (!plain)
        product->down_panel = make_space(m, product->depth * product->rows * bytes, TILE_ALIGN);
}

uint32_t make_product(struct make *m, uint32_t loop)
{
    struct product_loop p = {.loop = loop};
    struct growth across, down[TILE_ROWS];
    tile_multiply *multiply = find_loop(m, &p);
    const struct kir_inst *inst = inst_of(m, loop);
    struct tile_code *code = m->code;
    struct tile_product *product;
    bool even = multiply && grows_evenly(m, &p, p.across, &across);

    for (uint32_t i = 0; even && i < p.rows; i++)
        even = grows_evenly(m, &p, p.down[i], &down[i]);
    if (!even)
        return KIR_NONE;
    if (!array_grow(&code->products, &code->products_capacity, code->n_products, 1,
                    sizeof(*code->products))) {
        m->failed = true;
        return KIR_NONE;
    }
    make_early(m, loop + 1 + p.rows, inst->pair, loop + 1);
    product = &code->products[code->n_products];
    *product = (struct tile_product){.multiply = multiply,
                                     .type = inst_of(m, loop + 1)->type,
                                     .rows = p.rows,
                                     .counter = m->values[loop].one,
                                     .end = m->values[m->module->links[inst->a[0] + 1]].one,
                                     .wide = inst->type == KIR_I64,
                                     .step = (int64_t)inst->imm,
                                     .across = load_of(m, p.across, &across)};
    for (uint32_t i = 0; i < p.rows; i++) {
        product->sums[i] = m->values[loop + 1 + i].reg;
        product->down[i] = load_of(m, p.down[i], &down[i]);
    }
    place_panels(m, product, make_is_wide(product->type) ? 8 : 4);
    make_step(m, &(struct tile_step){.kind = STEP_PRODUCT, .imm = code->n_products++});
    return code->n_steps - 1;
}
