/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of each instruction, by table.  An elementwise step may write the register of an
 * operand that is not needed any more, and a carried value the register of its phi; everything else
 * writes registers that nothing of it reads. */
#include "emit/tile/steps.h"

#include "emit/tile/make.h"
#include "emit/tile/places.h"
#include "emit/tile/product.h"

#include <frit/types.h>

typedef void (*make_fn)(struct make *m, uint32_t at);

static const struct kir_inst *inst_of(const struct make *m, uint32_t at)
{
    return &m->phase->inst[at];
}

static struct value *value_of(struct make *m, uint32_t value)
{
    return &m->values[value];
}

static bool has_lanes(const struct value *value)
{
    return value->form == FORM_LANES || value->lanes;
}

/* Where lane 0 of a value is. */
static uint32_t place_of(const struct value *value)
{
    return value->form == FORM_LANES || value->form == FORM_RANGE ? value->reg : value->one;
}

static uint32_t lanes_of(const struct make *m, const struct value *value)
{
    return value->form == FORM_LANES ? m->code->lanes : 1;
}

/* Where the result of `at` goes. */
static uint32_t result(struct make *m, uint32_t at)
{
    struct value *value = value_of(m, at);

    if (value->form == FORM_LANES || value->form == FORM_RANGE) {
        value->reg = make_in_phi(m, at) ? value_of(m, m->live.place[at])->reg
                                        : make_take_reg(m, make_type(m, at));
        return value->reg;
    }
    return value->one = make_uniform(m);
}

/* ---- copies ---- */

/* From a place to another; `one`: from a single element to all lanes. */
static void copy(struct make *m, uint32_t type, uint32_t out, uint32_t from, bool one, uint32_t n)
{
    make_step(m, &(struct tile_step){
                     .kind = STEP_LOOP,
                     .n = n,
                     .out = out,
                     .a = from,
                     .b = from,
                     .c = from,
                     .loop = (one ? m->loops->spread : m->loops->copy)[make_is_wide(type)]});
}

/* The lanes of a LINE or RANGE whose other form was just made. */
static void fill(struct make *m, uint32_t at)
{
    struct value *value = value_of(m, at);

    if (value->form == FORM_RANGE)
        make_step(m, &(struct tile_step){
                         .kind = STEP_RANGE_FILL, .n = m->code->lanes, .out = value->reg});
    else
        make_step(m, &(struct tile_step){.kind = STEP_LOOP,
                                         .n = m->code->lanes,
                                         .out = value->reg,
                                         .a = value->one,
                                         .b = value->one,
                                         .c = value->one,
                                         .imm = (uint64_t)m->facts.of[at].stride,
                                         .loop = m->loops->line[make_is_wide(make_type(m, at))]});
}

/* Gives `phi` a value that is at `from`, a register if `lanes`. */
static void carry(struct make *m, uint32_t phi, uint32_t from, bool lanes)
{
    const struct value *value = value_of(m, phi);

    copy(m, make_type(m, phi), place_of(value), from, !lanes, lanes_of(m, value));
    if (value->lanes)
        fill(m, phi);
}

static void carry_value(struct make *m, uint32_t phi, uint32_t v)
{
    const struct value *value = value_of(m, v);
    bool lanes = value_of(m, phi)->form == FORM_LANES && has_lanes(value);

    if (lanes && value->reg == value_of(m, phi)->reg)
        return;
    carry(m, phi, lanes ? value->reg : value->one, lanes);
}

/* ---- leaves ---- */

static void make_leaf(struct make *m, uint32_t at)
{
    const struct kir_inst *inst = inst_of(m, at);
    struct value *value = value_of(m, at);

    if (inst->op == KIR_const)
        value->one = make_const(m, inst->imm);
    else if (inst->op == KIR_group)
        value->one = 4 * (uint32_t)inst->imm;
    else if (inst->op == KIR_lane)
        value->one = make_const(m, 0);
    else
        value->one = m->code->words + 8 * (uint32_t)inst->imm;
}

/* A word whose low bit is meant. */
static void make_param(struct make *m, uint32_t at)
{
    uint32_t word = m->code->words + 8 * (uint32_t)inst_of(m, at)->imm;

    if (make_type(m, at) != KIR_B) {
        make_leaf(m, at);
        return;
    }
    make_step(m, &(struct tile_step){.kind = STEP_LOOP,
                                     .n = 1,
                                     .out = result(m, at),
                                     .a = word,
                                     .b = make_const(m, 1),
                                     .c = word,
                                     .loop = m->loops->loop[KIR_and][KIR_B][0]});
}

/* ---- elementwise ---- */

static const uint8_t kinds[FRIT_DTYPE_LIMIT] = {
#define KIND_FLOAT(NAME)  TILE_##NAME
#define KIND_INT(NAME)    TILE_##NAME
#define KIND_UINT(NAME)   TILE_##NAME
#define KIND_BOOL(NAME)   TILE_##NAME
#define KIND_PACKED(NAME) 0 /* arguments are of U8 */
#define FRIT_DTYPE(id, NAME, name, bits, cls, exponent, fraction, specials, compute, npy, meaning) \
    [id] = KIND_##cls(NAME),
#include <frit/dtypes.def>
};

static tile_loop *loop_of(const struct make *m, uint32_t at, uint32_t ones)
{
    const struct kir_inst *inst = inst_of(m, at);

    return inst->op == KIR_round ? m->loops->round[kinds[inst->imm]]
                                 : m->loops->loop[inst->op][make_type(m, inst->a[0])][ones];
}

static void make_loop(struct make *m, uint32_t at)
{
    const struct kir_inst *inst = inst_of(m, at);
    const struct value *value = value_of(m, at);
    uint32_t places[3], ones = 0, n = kir_op_info(inst->op)->n;
    struct tile_step step;

    for (uint32_t k = 0; k < 3; k++) {
        const struct value *operand = value_of(m, inst->a[k < n ? k : 0]);
        bool lanes = value->form == FORM_LANES && has_lanes(operand);

        places[k] = lanes ? operand->reg : place_of(operand);
        ones |= (uint32_t)(k < n && value->form == FORM_LANES && !lanes) << k;
    }
    step = (struct tile_step){.kind = STEP_LOOP,
                              .n = lanes_of(m, value),
                              .a = places[0],
                              .b = places[1],
                              .c = places[2],
                              .imm = inst->imm,
                              .loop = loop_of(m, at, ones)};
    if (value->form == FORM_LANES)
        make_release(m, at);
    else if (inst->type == KIR_I32 && (inst->op == KIR_add || inst->op == KIR_mul))
        step.kind = inst->op == KIR_add ? STEP_ADD_I32 : STEP_MUL_I32;
    step.out = result(m, at);
    make_step(m, &step);
}

static uint8_t mask_of(const struct value *value)
{
    return value->form == FORM_ONE ? MASK_ONE : value->form == FORM_RANGE ? MASK_RANGE : MASK_LANES;
}

static void make_range(struct make *m, uint32_t at)
{
    const struct kir_inst *inst = inst_of(m, at);
    const struct value *a = value_of(m, inst->a[0]), *b = value_of(m, inst->a[1]);
    bool swapped = b->form == FORM_LINE;
    struct tile_step step = {.kind = inst->op == KIR_and ? STEP_RANGE_AND : STEP_RANGE,
                             .mask = mask_of(a),
                             .mask_b = mask_of(b),
                             .op = (uint8_t)inst->op,
                             .type = (uint8_t)make_type(m, inst->a[0]),
                             .swapped = swapped,
                             .n = m->code->lanes,
                             .a = place_of(a),
                             .b = place_of(b)};

    step.imm = (uint64_t)m->facts.of[inst->a[swapped]].stride;
    step.loop = m->loops->loop[inst->op][step.type][swapped ? TILE_ONE_A : TILE_ONE_B];
    step.out = result(m, at);
    make_step(m, &step);
}

/* Comparisons and `and`. */
static void make_maybe_range(struct make *m, uint32_t at)
{
    (value_of(m, at)->form == FORM_RANGE ? make_range : make_loop)(m, at);
}

/* ---- across lanes ---- */

static void make_across(struct make *m, uint32_t at)
{
    const struct kir_inst *inst = inst_of(m, at);
    const struct value *from = value_of(m, inst->a[0]), *value = value_of(m, at);
    bool wide = make_is_wide(inst->type);

    if (value->form == FORM_ONE) {
        copy(m, inst->type, result(m, at), place_of(from), false, 1);
        return;
    }
    make_step(m, &(struct tile_step){.kind = STEP_LOOP,
                                     .n = m->code->lanes,
                                     .out = result(m, at),
                                     .a = from->reg,
                                     .b = from->reg,
                                     .c = from->reg,
                                     .imm = inst->imm,
                                     .loop = (inst->op == KIR_exchange ? m->loops->exchange
                                                                       : m->loops->shift)[wide]});
}

static void make_nothing(struct make *m, uint32_t at)
{
    (void)m;
    (void)at;
}

/* ---- memory ---- */

/* Lane tiles: element `offset` of a lane is at offset * lanes + lane. */
static void place_in_lanes(struct make *m, struct tile_step *step, uint32_t type)
{
    uint32_t lanes = m->code->lanes, count, numbers, out;

    step->scale = lanes;
    step->imm = step->imm * lanes + 1;
    if (step->way == TILE_LINEAR)
        return;
    count = make_const(m, lanes);
    out = make_take_reg(m, type);
    make_step(m, &(struct tile_step){.kind = STEP_LOOP,
                                     .n = lanes,
                                     .out = out,
                                     .a = step->a,
                                     .b = count,
                                     .c = count,
                                     .loop = m->loops->loop[KIR_mul][type][TILE_ONE_B]});
    numbers = make_take_reg(m, type);
    make_step(m, &(struct tile_step){.kind = STEP_LOOP,
                                     .n = lanes,
                                     .out = numbers,
                                     .a = make_const(m, 0),
                                     .imm = 1,
                                     .loop = m->loops->line[make_is_wide(type)]});
    make_step(m, &(struct tile_step){.kind = STEP_LOOP,
                                     .n = lanes,
                                     .out = out,
                                     .a = out,
                                     .b = numbers,
                                     .c = out,
                                     .loop = m->loops->loop[KIR_add][type][0]});
    make_put_reg(m, type, numbers);
    step->a = out;
}

static uint32_t kind_of(const struct make *m, const struct kir_inst *inst)
{
    if (kir_op_info(inst->op)->imm == KIR_IMM_ARG)
        return kinds[m->module->args[inst->imm].dtype];
    return kinds[m->phase->tiles[inst->imm].dtype];
}

/* Where the lanes' elements are, as far as the instruction's offset says. */
static struct tile_step at_offset(struct make *m, uint32_t at)
{
    const struct kir_inst *inst = inst_of(m, at);
    const struct value *offset = value_of(m, inst->a[0]);
    uint32_t type = make_type(m, inst->a[0]);
    struct tile_step step = {.type = (uint8_t)type, .scale = 1, .a = place_of(offset)};

    step.wide = type == KIR_I64;
    step.way = offset->form != FORM_LANES ? TILE_LINEAR
               : step.wide                ? TILE_OFFSETS_64
                                          : TILE_OFFSETS_32;
    step.imm = offset->form == FORM_LINE ? (uint64_t)m->facts.of[inst->a[0]].stride : 0;
    if (kir_op_info(inst->op)->imm == KIR_IMM_ARG) {
        step.base = (uint32_t)inst->imm;
        step.bytes = (uint8_t)frit_storage_bytes(m->module->args[inst->imm].dtype, 1);
        return step;
    }
    step.in_tile = true;
    step.base = m->tiles[inst->imm];
    step.bytes = (uint8_t)kir_tile_bytes(&m->phase->tiles[inst->imm]);
    if (m->phase->tiles[inst->imm].space == KIR_LANE)
        place_in_lanes(m, &step, type);
    return step;
}

/* Gives back what place_in_lanes took. */
static void offset_done(struct make *m, uint32_t at, const struct tile_step *step)
{
    const struct value *offset = value_of(m, inst_of(m, at)->a[0]);

    if (step->way != TILE_LINEAR && step->a != offset->reg)
        make_put_reg(m, make_type(m, inst_of(m, at)->a[0]), step->a);
}

static void set_mask(struct make *m, struct tile_step *step, uint32_t mask)
{
    step->mask = mask_of(value_of(m, mask));
    step->c = place_of(value_of(m, mask));
}

struct tile_step make_load_step(struct make *m, uint32_t at)
{
    const struct kir_inst *inst = inst_of(m, at);
    const struct value *value = value_of(m, at), *rest;
    struct tile_step step = at_offset(m, at);
    bool lanes;

    step.kind = STEP_LOAD;
    step.n = lanes_of(m, value);
    step.move = m->loops->load[kind_of(m, inst)][step.way];
    step.type = inst->type;
    if (inst->op == KIR_load_if) {
        set_mask(m, &step, inst->a[1]);
        rest = value_of(m, inst->a[2]);
        lanes = value->form == FORM_LANES && has_lanes(rest);
        step.b = lanes ? rest->reg : place_of(rest);
        step.one_b = !lanes;
        step.loop = (lanes ? m->loops->copy : m->loops->spread)[make_is_wide(inst->type)];
    }
    return step;
}

static void make_load(struct make *m, uint32_t at)
{
    struct tile_step step = make_load_step(m, at);

    step.out = result(m, at);
    make_step(m, &step);
    offset_done(m, at, &step);
}

static bool in_lane_tile(const struct make *m, const struct kir_inst *inst)
{
    return kir_op_info(inst->op)->imm == KIR_IMM_TILE &&
           m->phase->tiles[inst->imm].space == KIR_LANE;
}

/* Stores of what is the same in all lanes to one element are done once. */
static void make_store(struct make *m, uint32_t at)
{
    const struct kir_inst *inst = inst_of(m, at);
    const struct value *from = value_of(m, inst->a[1]);
    uint32_t mask = kir_op_info(inst->op)->n > 2 ? inst->a[2] : KIR_NONE;
    uint32_t type = make_type(m, inst->a[1]);
    struct tile_step step = at_offset(m, at);
    bool once = inst->op != KIR_atomic_add && from->form == FORM_ONE &&
                value_of(m, inst->a[0])->form == FORM_ONE && !in_lane_tile(m, inst) &&
                (mask == KIR_NONE || value_of(m, mask)->form == FORM_ONE);
    bool spread = from->form == FORM_ONE && !once;

    step.kind = inst->op == KIR_atomic_add ? STEP_ATOMIC : STEP_STORE;
    step.n = once ? 1 : m->code->lanes;
    step.move = m->loops->store[kind_of(m, inst)][step.way];
    step.type = (uint8_t)type;
    step.b = has_lanes(from) ? from->reg : from->one;
    if (mask != KIR_NONE)
        set_mask(m, &step, mask);
    if (spread) {
        step.b = make_take_reg(m, type);
        copy(m, type, step.b, from->one, true, step.n);
    }
    make_step(m, &step);
    if (spread)
        make_put_reg(m, type, step.b);
    offset_done(m, at, &step);
}

/* ---- control ---- */

static void make_for(struct make *m, uint32_t at)
{
    const struct kir_inst *inst = inst_of(m, at);
    const uint32_t *links = m->module->links + inst->a[0];
    uint32_t n = inst_of(m, inst->pair)->a[1];

    make_early(m, at + 1, inst->pair, at);
    for (uint32_t phi = at + 1; phi <= at + n; phi++) {
        struct value *value = value_of(m, phi);

        result(m, phi);
        if (value->lanes)
            value->reg = make_take_reg(m, make_type(m, phi));
        carry_value(m, phi, inst_of(m, phi)->a[0]);
    }
    value_of(m, at)->reg = m->code->n_steps;
    make_step(m, &(struct tile_step){.kind = STEP_FOR,
                                     .type = inst->type,
                                     .out = result(m, at),
                                     .a = value_of(m, links[0])->one,
                                     .b = value_of(m, links[1])->one,
                                     .imm = inst->imm});
    value_of(m, at)->spare = make_product(m, at);
}

static bool is_phi_of(const struct make *m, uint32_t value, uint32_t loop)
{
    return inst_of(m, value)->op == KIR_phi && m->live.loop[value] == loop;
}

/* All phis get their values at once: those of the same loop wait in places of their own. */
static void make_next(struct make *m, uint32_t at)
{
    const struct kir_inst *inst = inst_of(m, at);
    const uint32_t *links = m->module->links + inst->a[0];
    uint32_t loop = inst->pair, first = loop + 1, step = value_of(m, loop)->reg;

    for (uint32_t i = 0; i < inst->a[1]; i++) {
        const struct value *from = value_of(m, links[i]);
        struct value *phi = value_of(m, first + i);
        bool lanes = phi->form == FORM_LANES && has_lanes(from);

        if (!is_phi_of(m, links[i], loop))
            continue;
        phi->spare = lanes ? make_take_reg(m, make_type(m, first + i)) : make_uniform(m);
        copy(m, make_type(m, first + i), phi->spare, lanes ? from->reg : from->one, false,
             lanes ? m->code->lanes : 1);
    }
    for (uint32_t i = 0; i < inst->a[1]; i++) {
        bool made_there = make_in_phi(m, links[i]) && m->live.place[links[i]] == first + i;

        if (!is_phi_of(m, links[i], loop) && !made_there)
            carry_value(m, first + i, links[i]);
    }
    for (uint32_t i = 0; i < inst->a[1]; i++) {
        const struct value *phi = value_of(m, first + i);
        bool lanes = phi->form == FORM_LANES && has_lanes(value_of(m, links[i]));

        if (!is_phi_of(m, links[i], loop))
            continue;
        carry(m, first + i, phi->spare, lanes);
        if (lanes)
            make_put_reg(m, make_type(m, first + i), phi->spare);
    }
    make_step(
        m, &(struct tile_step){.kind = STEP_NEXT,
                               .type = inst_of(m, loop)->type,
                               .out = value_of(m, loop)->one,
                               .b = value_of(m, m->module->links[inst_of(m, loop)->a[0] + 1])->one,
                               .to = step + 1,
                               .imm = inst_of(m, loop)->imm});
    if (m->failed)
        return;
    m->code->steps[step].to = m->code->n_steps;
    if (value_of(m, loop)->spare != KIR_NONE)
        m->code->steps[value_of(m, loop)->spare].to = m->code->n_steps;
}

static void make_if(struct make *m, uint32_t at)
{
    value_of(m, at)->reg = m->code->n_steps;
    make_step(m, &(struct tile_step){.kind = STEP_IF, .a = value_of(m, inst_of(m, at)->a[0])->one});
}

static void make_end(struct make *m, uint32_t at)
{
    if (!m->failed)
        m->code->steps[value_of(m, inst_of(m, at)->pair)->reg].to = m->code->n_steps;
}

/* All other instructions are elementwise. */
static const make_fn makers[KIR_OPS] = {
    [KIR_const] = make_leaf,       [KIR_param] = make_param,     [KIR_lane] = make_leaf,
    [KIR_group] = make_leaf,       [KIR_eq] = make_maybe_range,  [KIR_lt] = make_maybe_range,
    [KIR_le] = make_maybe_range,   [KIR_ult] = make_maybe_range, [KIR_ule] = make_maybe_range,
    [KIR_and] = make_maybe_range,  [KIR_exchange] = make_across, [KIR_shift] = make_across,
    [KIR_first] = make_across,     [KIR_barrier] = make_nothing, [KIR_load] = make_load,
    [KIR_load_if] = make_load,     [KIR_tload] = make_load,      [KIR_store] = make_store,
    [KIR_store_if] = make_store,   [KIR_tstore] = make_store,    [KIR_tstore_if] = make_store,
    [KIR_atomic_add] = make_store, [KIR_for] = make_for,         [KIR_phi] = make_nothing,
    [KIR_next] = make_next,        [KIR_if] = make_if,           [KIR_end] = make_end,
};

static void make_now(struct make *m, uint32_t at)
{
    struct value *value = value_of(m, at);

    (makers[inst_of(m, at)->op] ? makers[inst_of(m, at)->op] : make_loop)(m, at);
    if (value->lanes && inst_of(m, at)->op != KIR_phi) {
        if (value->form == FORM_LINE)
            value->reg = make_take_reg(m, make_type(m, at));
        fill(m, at);
    }
}

void make_inst(struct make *m, uint32_t at)
{
    if (!value_of(m, at)->needed)
        return;
    if (!value_of(m, at)->made)
        make_now(m, at);
    make_release(m, at);
}

/* Whether the steps of an instruction read and write single elements alone. */
static bool is_single(struct make *m, uint32_t at)
{
    const struct kir_inst *inst = inst_of(m, at);
    const struct value *value = value_of(m, at);
    const make_fn maker = makers[inst->op];

    if ((maker && maker != make_leaf && maker != make_param && maker != make_maybe_range) ||
        (value->form != FORM_ONE && value->form != FORM_LINE) || value->lanes || !value->needed)
        return false;
    for (uint32_t k = 0; k < kir_op_info(inst->op)->n; k++)
        if (value_of(m, inst->a[k])->form != FORM_ONE && value_of(m, inst->a[k])->form != FORM_LINE)
            return false;
    return true;
}

void make_early(struct make *m, uint32_t first, uint32_t end, uint32_t outside)
{
    for (uint32_t at = first; at < end; at++) {
        const struct kir_inst *inst = inst_of(m, at);
        bool ready = !value_of(m, at)->made && is_single(m, at);

        for (uint32_t k = 0; ready && k < kir_op_info(inst->op)->n; k++)
            ready = inst->a[k] < outside || value_of(m, inst->a[k])->made;
        if (!ready)
            continue;
        make_now(m, at);
        value_of(m, at)->made = true;
    }
}
