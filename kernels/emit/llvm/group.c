/* SPDX-License-Identifier: Apache-2.0 */
/* Across lanes: shuffles within a chunk; beyond it through the slots where values are held.  A slot
 * has a linear value as that of lane 0, a varying one lane by lane, bits as bytes. */
#include "emit/llvm/group.h"

#include "emit/llvm/emit.h"
#include "emit/llvm/value.h"

static ll_value *vector_of(struct ll *l, uint32_t value)
{
    return l->vector + (size_t)value * l->units;
}

static ll_type type_of(const struct ll *l, uint32_t value)
{
    return l->types.of[l->phase->inst[value].type];
}

/* ---- within a chunk ---- */

/* Lanes `from`[..] of all units together; they lie in two units at most. */
static ll_value pick(struct ll *l, const ll_value *in, const uint32_t *from)
{
    uint32_t first = from[0] / l->width, second = first, lanes[LL_MAX_WIDTH];

    for (uint32_t i = 0; i < l->width; i++) {
        if (from[i] / l->width != first)
            second = from[i] / l->width;
    }
    for (uint32_t i = 0; i < l->width; i++)
        lanes[i] = from[i] % l->width + (from[i] / l->width == first ? 0 : l->width);
    return BUILD(l, ShuffleVector, in[first], in[second], ll_mask(l, lanes));
}

static void pick_all(struct ll *l, uint32_t at, const ll_value *in)
{
    const struct kir_inst *inst = &l->phase->inst[at];
    uint32_t by = (uint32_t)inst->imm, from[LL_MAX_WIDTH];

    for (uint32_t u = 0; u < l->units; u++) {
        for (uint32_t i = 0; i < l->width; i++) {
            uint32_t lane = u * l->width + i;

            from[i] = inst->op == KIR_exchange ? lane ^ by : lane < by ? lane : lane - by;
        }
        vector_of(l, at)[u] = pick(l, in, from);
    }
}

static void across(struct ll *l, uint32_t at)
{
    uint32_t of = l->phase->inst[at].a[0];
    ll_value in[LL_MAX_UNITS];

    if (ll_is(l, of, FACT_UNIFORM)) {
        ll_set(l, at, l->scalar[of]);
        return;
    }
    for (uint32_t u = 0; u < l->units; u++)
        in[u] = ll_at(l, of, u);
    pick_all(l, at, in);
}

void ll_exchange(struct ll *l, uint32_t at)
{
    across(l, at);
}

void ll_shift(struct ll *l, uint32_t at)
{
    across(l, at);
}

/* The scalar of what is linear is that of lane 0. */
void ll_first(struct ll *l, uint32_t at)
{
    uint32_t of = l->phase->inst[at].a[0];

    if (ll_is(l, of, FACT_VARYING))
        ll_set(l, at,
               BUILD(l, ExtractElement, vector_of(l, of)[0], ll_int(l, l->types.of[KIR_I32], 0)));
    else
        ll_set(l, at, l->scalar[of]);
}

/* ---- slots ---- */

static bool is_bit(const struct ll *l, uint32_t value)
{
    return l->phase->inst[value].type == KIR_B;
}

static ll_type slot_type(const struct ll *l, uint32_t value)
{
    return is_bit(l, value) ? l->types.i8 : type_of(l, value);
}

/* Element `lane` of a slot; NULL: the first. */
static ll_value slot_at(struct ll *l, uint32_t value, ll_value lane)
{
    ll_value at = ll_int(l, l->types.i64, l->slot[value]), base;

    base = BUILD(l, GEP2, l->types.i8, l->scratch, &at, 1);
    return lane ? BUILD(l, GEP2, slot_type(l, value), base, &lane, 1) : base;
}

static ll_value lane_of_unit(struct ll *l, ll_value lane0, uint32_t unit)
{
    return BUILD(l, Add, lane0, ll_int(l, l->types.of[KIR_I32], (uint64_t)unit * l->width));
}

/* lane0 * stride, of the type of the value. */
static ll_value ahead(struct ll *l, uint32_t value, ll_value lane0)
{
    ll_type type = type_of(l, value);
    ll_value lane = type == l->types.of[KIR_I32] ? lane0 : BUILD(l, ZExt, lane0, type);

    return BUILD(l, Mul, lane, ll_int(l, type, (uint64_t)l->facts.of[value].stride));
}

static void put(struct ll *l, ll_value value, bool bit, ll_value to)
{
    if (bit)
        value = BUILD(l, ZExt, value, ll_shape(l, l->types.i8));
    l->api->SetAlignment(l->api->BuildStore(l->builder, value, to), 1);
}

static ll_value get(struct ll *l, uint32_t value, ll_value from)
{
    ll_value out = BUILD(l, Load2, ll_shape(l, slot_type(l, value)), from);

    l->api->SetAlignment(out, 1);
    return is_bit(l, value) ? BUILD(l, Trunc, out, ll_shape(l, l->types.of[KIR_B])) : out;
}

/* What one chunk carries must not be seen by the next one where they share it. */
static ll_value slot_behind(struct ll *l, uint32_t value)
{
    ll_value at = ll_int(l, l->types.i64, l->slot[value] + 8);

    return BUILD(l, GEP2, l->types.i8, l->scratch, &at, 1);
}

/* The value into the slot of another, which is of the same type but may be more varying. */
static void hold_as(struct ll *l, uint32_t value, uint32_t slot_of, bool carried)
{
    ll_value scalar = l->scalar[value];

    l->wide = false;
    if (ll_is(l, slot_of, FACT_VARYING)) {
        for (uint32_t u = 0; u < l->units; u++) {
            ll_value vector = ll_at(l, value, u);

            l->wide = true;
            put(l, vector, is_bit(l, value), slot_at(l, slot_of, lane_of_unit(l, l->lane0, u)));
        }
        return;
    }
    if (ll_is(l, slot_of, FACT_LINEAR))
        scalar = BUILD(l, Sub, scalar, ahead(l, slot_of, l->lane0));
    put(l, scalar, is_bit(l, value), carried ? slot_behind(l, slot_of) : slot_at(l, slot_of, NULL));
}

void ll_hold(struct ll *l, uint32_t value)
{
    hold_as(l, value, value, false);
}

void ll_carry(struct ll *l, uint32_t value, uint32_t phi)
{
    hold_as(l, value, phi, true);
}

void ll_carried(struct ll *l, uint32_t phi)
{
    ll_value bits;

    if (ll_is(l, phi, FACT_VARYING))
        return;
    bits = BUILD(l, Load2, l->types.i64, slot_behind(l, phi));
    l->api->BuildStore(l->builder, bits, slot_at(l, phi, NULL));
}

ll_value ll_fetch_group(struct ll *l, uint32_t value)
{
    if (l->regions.home[value] != REGION_HELD)
        return l->phase->inst[value].op == KIR_lane ? ll_int(l, l->types.of[KIR_I32], 0)
                                                    : l->scalar[value];
    l->wide = false;
    return get(l, value, slot_at(l, value, NULL));
}

void ll_fetch(struct ll *l, uint32_t value)
{
    ll_value scalar;

    if (ll_is(l, value, FACT_VARYING)) {
        l->wide = true;
        for (uint32_t u = 0; u < l->units; u++)
            vector_of(l, value)[u] = get(l, value, slot_at(l, value, lane_of_unit(l, l->lane0, u)));
        return;
    }
    scalar = ll_fetch_group(l, value);
    if (ll_is(l, value, FACT_LINEAR))
        scalar = BUILD(l, Add, scalar, ahead(l, value, l->lane0));
    ll_set(l, value, scalar);
}

/* ---- beyond a chunk ---- */

static ll_value lanes_of_unit(struct ll *l, uint32_t unit)
{
    uint64_t steps[LL_MAX_WIDTH];

    for (uint32_t i = 0; i < l->width; i++)
        steps[i] = (uint64_t)unit * l->width + i;
    return BUILD(l, Add, ll_splat(l, l->lane0, l->types.of[KIR_I32]),
                 ll_lanes(l, l->types.of[KIR_I32], steps));
}

/* Of a linear value, that of other lanes. */
static ll_value linear_at(struct ll *l, uint32_t value, ll_value lanes)
{
    ll_type type = type_of(l, value);
    ll_value stride, base = ll_splat(l, ll_fetch_group(l, value), type);

    l->wide = true;
    stride = ll_num(l, type, (uint64_t)l->facts.of[value].stride);
    if (type != l->types.of[KIR_I32])
        lanes = BUILD(l, ZExt, lanes, ll_vector_of(l, type));
    return BUILD(l, Add, base, BUILD(l, Mul, lanes, stride));
}

static ll_value shifted(struct ll *l, uint32_t of, uint32_t by, uint32_t unit)
{
    ll_type i32 = l->types.of[KIR_I32], type = slot_type(l, of);
    ll_type types[2] = {ll_vector_of(l, type), l->types.ptr};
    ll_value lanes = lanes_of_unit(l, unit), moves, args[4], away, own;

    l->wide = true;
    moves = BUILD(l, ICmp, LL_UGE, lanes, ll_num(l, i32, by));
    if (ll_is(l, of, FACT_LINEAR))
        return linear_at(l, of,
                         BUILD(l, Select, moves, BUILD(l, Sub, lanes, ll_num(l, i32, by)), lanes));
    own = BUILD(l, Load2, types[0], slot_at(l, of, lane_of_unit(l, l->lane0, unit)));
    l->api->SetAlignment(own, 1);
    away = BUILD(l, Sub, lane_of_unit(l, l->lane0, unit), ll_int(l, i32, by));
    args[0] = slot_at(l, of, away);
    args[1] = ll_int(l, i32, 1);
    args[2] = moves;
    args[3] = own;
    own = ll_call(l, "llvm.masked.load", types, 2, args, 4);
    return is_bit(l, of) ? BUILD(l, Trunc, own, ll_shape(l, l->types.of[KIR_B])) : own;
}

static ll_value exchanged(struct ll *l, uint32_t of, uint32_t by, uint32_t unit)
{
    ll_type i32 = l->types.of[KIR_I32];
    ll_value from;

    if (ll_is(l, of, FACT_LINEAR)) {
        ll_value lanes = lanes_of_unit(l, unit);

        l->wide = true;
        return linear_at(l, of, BUILD(l, Xor, lanes, ll_num(l, i32, by)));
    }
    l->wide = true;
    from = BUILD(l, Xor, lane_of_unit(l, l->lane0, unit), ll_int(l, i32, by));
    return get(l, of, slot_at(l, of, from));
}

void ll_cross(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = &l->phase->inst[at];

    for (uint32_t u = 0; u < l->units; u++)
        vector_of(l, at)[u] = inst->op == KIR_shift
                                  ? shifted(l, inst->a[0], (uint32_t)inst->imm, u)
                                  : exchanged(l, inst->a[0], (uint32_t)inst->imm, u);
    ll_hold(l, at);
}
