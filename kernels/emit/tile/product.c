/* SPDX-License-Identifier: Apache-2.0 */
/* Finding product loops.  Such a loop carries sums in lanes, a matrix of them, and gives each the
 * product of two elements that it loads: that of its row and that of its column.  Rows have an
 * element for all lanes, and there is one column; or, in dots, all have one for each lane.  The
 * loop stores nothing, and its loads' offsets grow by as much in each round, so that what else it
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

/* What a loop adds to its sums: down[i] * across[j] to that of phi i * columns + j. */
struct product_loop {
    uint32_t loop, rows, columns;
    uint32_t op; /* KIR_fma, KIR_dot2, KIR_add: of a mul */
    bool dots;
    uint32_t down[TILE_SUMS], across[TILE_SUMS];
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
    p->op = inst->op;
    if (inst->op == KIR_add && inst->a[0] != inst->a[1])
        product = inst->a[0] == phi ? inst->a[1] : inst->a[1] == phi ? inst->a[0] : KIR_NONE;
    else if ((inst->op == KIR_fma || inst->op == KIR_dot2) && inst->a[2] == phi)
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

    return (inst->op == KIR_load || inst->op == KIR_load_if || inst->op == KIR_tload) &&
           is_inside(m, p, value);
}

/* The factors of all sums, which have one type. */
static bool find_all_factors(const struct make *m, struct product_loop *p, uint32_t n,
                             uint32_t (*factors)[2])
{
    const uint32_t *links = m->module->links + inst_of(m, inst_of(m, p->loop)->pair)->a[0];
    uint32_t op = KIR_add;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t phi = p->loop + 1 + i;

        if (m->values[phi].form != FORM_LANES ||
            inst_of(m, phi)->type != inst_of(m, p->loop + 1)->type ||
            !find_factors(m, p, phi, links[i], factors[i]) || (i && p->op != op))
            return false;
        op = p->op;
    }
    return true;
}

static uint32_t other_factor(const uint32_t *factors, uint32_t one)
{
    return factors[0] == one ? factors[1] : factors[1] == one ? factors[0] : KIR_NONE;
}

/* The matrix of sums whose first row begins with `down`: as many columns as have that factor. */
static bool find_matrix(struct product_loop *p, uint32_t n, uint32_t (*factors)[2], uint32_t down)
{
    p->columns = 0;
    while (p->columns < n && other_factor(factors[p->columns], down) != KIR_NONE) {
        p->across[p->columns] = other_factor(factors[p->columns], down);
        p->columns++;
    }
    p->rows = n / p->columns;
    for (uint32_t i = 0; i < p->rows; i++)
        p->down[i] = other_factor(factors[i * p->columns], p->across[0]);
    for (uint32_t i = 0; i < n; i++)
        if (p->down[i / p->columns] == KIR_NONE ||
            other_factor(factors[i], p->down[i / p->columns]) != p->across[i % p->columns])
            return false;
    return p->rows * p->columns == n;
}

/* One element for all lanes. */
static bool is_one(const struct make *m, const struct product_loop *p, uint32_t value)
{
    return m->values[value].form == FORM_ONE && is_load(m, p, value) &&
           inst_of(m, value)->op != KIR_load_if;
}

static bool in_lane_tile(const struct make *m, uint32_t value)
{
    const struct kir_inst *inst = inst_of(m, value);

    return inst->op == KIR_tload && m->phase->tiles[inst->imm].space == KIR_LANE;
}

/* One element per lane, in a line, where the mask is, which does not change. */
static bool is_line(const struct make *m, const struct product_loop *p, uint32_t value)
{
    const struct kir_inst *inst = inst_of(m, value);

    return m->values[value].form == FORM_LANES && is_load(m, p, value) &&
           (m->values[inst->a[0]].form == FORM_LINE ||
            (m->values[inst->a[0]].form == FORM_ONE && in_lane_tile(m, value))) &&
           !m->values[inst->a[0]].lanes &&
           (inst->op != KIR_load_if || (inst->a[1] < p->loop && is_fixed(m, p, inst->a[2])));
}

/* The lanes' part of an offset that is added to that of the round: the operand's number. */
static uint32_t spread_of(const struct make *m, const struct product_loop *p, uint32_t value)
{
    const struct kir_inst *inst = inst_of(m, value);

    for (uint32_t i = 0; inst->op == KIR_add && i < 2; i++)
        if (inst->a[i] < p->loop && m->values[inst->a[i]].form == FORM_LANES &&
            m->values[inst->a[1 - i]].form == FORM_ONE)
            return i;
    return KIR_NONE;
}

/* One element per lane, at any places, which move all together. */
static bool is_spread(const struct make *m, const struct product_loop *p, uint32_t value)
{
    const struct kir_inst *inst = inst_of(m, value);

    return m->values[value].form == FORM_LANES && is_load(m, p, value) && !in_lane_tile(m, value) &&
           spread_of(m, p, inst->a[0]) != KIR_NONE &&
           (inst->op != KIR_load_if || (inst->a[1] < p->loop && is_fixed(m, p, inst->a[2])));
}

static bool find_forms(const struct make *m, struct product_loop *p)
{
    p->dots = m->values[p->down[0]].form != FORM_ONE;
    for (uint32_t i = 0; i < p->rows; i++)
        if (!(p->dots ? is_line : is_one)(m, p, p->down[i]))
            return false;
    for (uint32_t i = 0; i < p->columns; i++)
        if (!is_line(m, p, p->across[i]) && (p->dots || !is_spread(m, p, p->across[i])))
            return false;
    return p->dots || p->columns == 1;
}

/* Nothing in the body has an effect, or a loop or branch of its own. */
static bool is_pure(const struct make *m, const struct product_loop *p, uint32_t n)
{
    for (uint32_t at = p->loop + 1 + n; at < inst_of(m, p->loop)->pair; at++)
        if (inst_of(m, at)->type == KIR_VOID || kir_opens(inst_of(m, at)->op))
            return false;
    return true;
}

static tile_multiply *find_loop(const struct make *m, struct product_loop *p)
{
    uint32_t n = inst_of(m, inst_of(m, p->loop)->pair)->a[1], factors[TILE_SUMS][2];
    uint32_t form;

    if (n == 0 || n > TILE_SUMS || m->code->lanes < TILE_LEAST_LANES || !is_pure(m, p, n) ||
        !find_all_factors(m, p, n, factors))
        return NULL;
    if (!(find_matrix(p, n, factors, factors[0][0]) && find_forms(m, p)) &&
        !(find_matrix(p, n, factors, factors[0][1]) && find_forms(m, p)))
        return NULL;
    if (p->op == KIR_dot2 && !tile_has_dot2())
        return NULL;
    form = (p->op == KIR_fma    ? TILE_FUSED
            : p->op == KIR_dot2 ? TILE_PAIRS
                                : 0u) +
           (p->dots ? TILE_DOTS : 0u);
    return m->loops->products[form][inst_of(m, p->loop + 1)->type];
}

/* ---- the step ---- */

/* Elements that are in memory as in a register. */
static bool is_plain(const struct tile_product_load *load, size_t bytes)
{
    const struct tile_step *step = &load->step;

    return step->bytes == bytes && step->mask == MASK_NONE &&
           (step->n == 1 || load->run >= TILE_LEAST_LANES);
}

/* False: how its offset grows is not known. */
static bool add_load(struct make *m, const struct product_loop *p, uint32_t load,
                     struct tile_product_load *out)
{
    uint32_t offset = inst_of(m, load)->a[0];
    uint32_t spread = is_spread(m, p, load) ? spread_of(m, p, offset) : KIR_NONE;
    struct growth growth;

    if (spread != KIR_NONE)
        offset = inst_of(m, offset)->a[1 - spread];
    if (!growth_of(m, p, offset, &growth))
        return false;
    *out = (struct tile_product_load){.times = growth.times, .by = growth.by};
    return true;
}

static bool grow_alike(const struct tile_product_load *loads, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (loads[i].times != loads[0].times || loads[i].by != loads[0].by ||
            loads[i].step.wide != loads[0].step.wide || loads[i].step.scale != loads[0].step.scale)
            return false;
    return true;
}

static bool add_loads(struct make *m, const struct product_loop *p, struct tile_product *product)
{
    for (uint32_t i = 0; i < p->rows; i++)
        if (!add_load(m, p, p->down[i], &product->down[i]))
            return false;
    for (uint32_t i = 0; i < p->columns; i++)
        if (!add_load(m, p, p->across[i], &product->across[i]))
            return false;
    return true;
}

static void place_load(struct make *m, const struct product_loop *p, uint32_t load,
                       struct tile_product_load *out)
{
    const struct kir_inst *offset = inst_of(m, inst_of(m, load)->a[0]);
    uint32_t spread = is_spread(m, p, load) ? spread_of(m, p, inst_of(m, load)->a[0]) : KIR_NONE;
    const struct fact *fact;

    out->step = make_load_step(m, load);
    out->run = out->step.imm == 1 ? out->step.n : 1;
    if (spread == KIR_NONE)
        return;
    fact = &m->facts.of[offset->a[spread]];
    out->run = fact->run_stride == 1 ? fact->run : 1;
    out->spread = m->values[offset->a[spread]].reg;
    out->step.a = m->values[offset->a[1 - spread]].one;
}

static void place_panel(struct make *m, const struct tile_product *product, size_t bytes,
                        struct tile_product_load *load)
{
    if (!is_plain(load, bytes))
        load->panel = make_space(m, product->depth * load->step.n * bytes, TILE_ALIGN);
}

static void place_panels(struct make *m, struct tile_product *product, size_t bytes)
{
    uint64_t depth = PANEL_BYTES / (m->code->lanes * bytes);

    product->depth = depth < LEAST_DEPTH  ? LEAST_DEPTH
                     : depth > MOST_DEPTH ? MOST_DEPTH
                                          : (uint32_t)depth;
    for (uint32_t i = 0; i < product->rows; i++)
        place_panel(m, product, bytes, &product->down[i]);
    for (uint32_t i = 0; i < product->columns; i++)
        place_panel(m, product, bytes, &product->across[i]);
}

static void place(struct make *m, const struct product_loop *p, struct tile_product *product)
{
    const struct kir_inst *inst = inst_of(m, p->loop);

    make_early(m, p->loop + 1 + p->rows * p->columns, inst->pair, p->loop + 1);
    product->counter = m->values[p->loop].one;
    product->end = m->values[m->module->links[inst->a[0] + 1]].one;
    for (uint32_t i = 0; i < p->rows; i++)
        place_load(m, p, p->down[i], &product->down[i]);
    for (uint32_t i = 0; i < p->columns; i++)
        place_load(m, p, p->across[i], &product->across[i]);
    product->even_down = grow_alike(product->down, p->rows);
    product->even_across = grow_alike(product->across, p->columns);
    for (uint32_t i = 0; i < p->rows * p->columns; i++)
        product->sums[i] = m->values[p->loop + 1 + i].reg;
    place_panels(m, product, make_is_wide(product->type) ? 8 : 4);
}

uint32_t make_product(struct make *m, uint32_t loop)
{
    struct product_loop p = {.loop = loop};
    tile_multiply *multiply = find_loop(m, &p);
    struct tile_code *code = m->code;
    struct tile_product product;

    if (!multiply)
        return KIR_NONE;
    product = (struct tile_product){.multiply = multiply,
                                    .type = inst_of(m, loop + 1)->type,
                                    .dots = p.dots,
                                    .rows = p.rows,
                                    .columns = p.columns,
                                    .wide = inst_of(m, loop)->type == KIR_I64,
                                    .step = (int64_t)inst_of(m, loop)->imm};
    if (!add_loads(m, &p, &product))
        return KIR_NONE;
    if (!array_grow(&code->products, &code->products_capacity, code->n_products, 1,
                    sizeof(*code->products))) {
        m->failed = true;
        return KIR_NONE;
    }
    place(m, &p, &product);
    code->products[code->n_products] = product;
    make_step(m, &(struct tile_step){.kind = STEP_PRODUCT, .imm = code->n_products++});
    return code->n_steps - 1;
}
