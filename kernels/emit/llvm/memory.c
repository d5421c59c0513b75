/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and tiles.  Neighbouring lanes at neighbouring elements, up or down, are vector
 * accesses, the same element for all lanes is one, all else gathers and scatters.  A tile of lanes
 * has its elements lane by lane next to each other. */
#include "emit/llvm/memory.h"

#include "emit/llvm/convert.h"
#include "emit/llvm/deferred.h"
#include "emit/llvm/emit.h"
#include "emit/llvm/prefetch.h"
#include "emit/llvm/rows.h"
#include "emit/llvm/unroll.h"
#include "emit/llvm/value.h"

#include <assert.h>

enum {
    LINE = 64,
    MAX_CONST = 1 << 15,
    MAX_STEP = 4,   /* of elements that are loaded with all between them */
    LEAST_RUN = 4,  /* lanes whose access pays for finding their address */
    INDEX_DEPTH = 6 /* of rows that find it */
};

struct llvm_access {
    const struct kir_inst *inst;
    ll_value base;
    ll_type type;   /* in memory */
    uint32_t dtype; /* of an argument, of a tile of 16 bits; of other tiles 0: as the value */
    uint32_t bytes;
    uint32_t kind; /* of the offset: enum fact_kind */
    int64_t stride;
    uint32_t run; /* VARYING: lanes in a row that access neighbours, or one element if `run_same` */
    bool run_same;
    uint32_t index; /* the value */
    uint64_t times; /* index * times + lane * step: the element */
    uint64_t step;
    ll_value first;              /* I64: element of the chunk's first lane; unless VARYING */
    uint32_t mask, other, value; /* KIR_NONE: none */
};

/* ---- where ---- */

static ll_value widened(struct ll *l, uint32_t value, ll_value number)
{
    if (l->phase->inst[value].type == KIR_I64)
        return number;
    return BUILD(l, SExt, number, ll_shape(l, l->types.i64));
}

/* A scalar offset, likewise, without *number, which is added to it.  What a small constant is added
 * to is extended, and the constant becomes a part of the address: a sum that wraps is no offset of
 * an access that is in bounds, since those of 32 bits lie MAX_CONST below the ends of the type at
 * least. */
static ll_value widened_offset(struct ll *l, uint32_t value, int64_t *number)
{
    const struct kir_inst *inst = &l->phase->inst[value], *by;

    *number = 0;
    if (inst->op != KIR_add || inst->type != KIR_I32 ||
        l->regions.region[value] != l->region) /* there its operands are not those of this region */
        return widened(l, value, l->scalar[value]);
    by = &l->phase->inst[inst->a[1]];
    if (by->op != KIR_const || (int32_t)(uint32_t)by->imm < -MAX_CONST ||
        (int32_t)(uint32_t)by->imm > MAX_CONST || l->facts.of[inst->a[0]].kind == FACT_VARYING)
        return widened(l, value, l->scalar[value]);
    *number = (int32_t)(uint32_t)by->imm;
    return widened(l, inst->a[0], l->scalar[inst->a[0]]);
}

static void find_tile(struct ll *l, struct llvm_access *a)
{
    const struct kir_tile *tile = &l->phase->tiles[a->inst->imm];
    ll_value at = ll_int(l, l->types.i64, l->tile[a->inst->imm]);

    a->base = BUILD(l, GEP2, l->types.i8, l->scratch, &at, 1);
    a->type = l->types.of[tile->type];
    a->bytes = kir_tile_bytes(tile);
    if (kir_is_16_bit_float(tile->dtype)) {
        a->dtype = tile->dtype;
        a->type = ll_memory_type(l, a->dtype);
    }
    if (tile->space == KIR_LANE) {
        a->times = l->phase->lanes;
        a->step = 1;
    }
}

static void find_run(const struct ll *l, struct llvm_access *a, const struct fact *fact)
{
    if (!a->dtype || fact->run < LEAST_RUN || fact->run_stride < 0 || fact->run_stride > 1)
        return;
    a->run = fact->run < l->width ? fact->run : l->width;
    a->run_same = fact->run_stride == 0;
}

static ll_value offset_of(struct ll *l, const struct llvm_access *a)
{
    int64_t number;
    ll_value offset = widened_offset(l, a->index, &number);

    if (l->rounds.loop != KIR_NONE && a->inst->op == KIR_load)
        offset = ll_offset_in_round(l, (uint32_t)(a->inst - l->phase->inst), offset);
    return number ? BUILD(l, Add, offset, ll_int(l, l->types.i64, (uint64_t)number)) : offset;
}

static void find_place(struct ll *l, struct llvm_access *a)
{
    const struct fact *fact = &l->facts.of[a->index];

    a->kind = fact->kind;
    if (a->kind == FACT_VARYING) {
        find_run(l, a, fact);
        return;
    }
    l->wide = false;
    a->stride = (int64_t)((uint64_t)fact->stride * a->times + a->step);
    a->kind = a->stride ? FACT_LINEAR : FACT_UNIFORM;
    a->first = offset_of(l, a);
    if (a->step) {
        a->first = BUILD(l, Mul, a->first, ll_int(l, l->types.i64, a->times));
        a->first = BUILD(l, Add, a->first, BUILD(l, ZExt, l->lane0, l->types.i64));
    }
}

static struct llvm_access access_of(struct ll *l, uint32_t at)
{
    const struct kir_inst *inst = &l->phase->inst[at];
    bool loads = inst->type != KIR_VOID;
    struct llvm_access a = {.inst = inst, .index = inst->a[0], .times = 1};

    a.mask = inst->a[loads ? 1 : 2];
    a.other = loads ? inst->a[2] : KIR_NONE;
    a.value = loads ? KIR_NONE : inst->a[1];
    if (kir_op_info(inst->op)->imm == KIR_IMM_TILE) {
        find_tile(l, &a);
    } else {
        a.base = l->args[inst->imm];
        a.dtype = l->module->args[inst->imm].dtype;
        a.type = ll_memory_type(l, a.dtype);
        a.bytes = (uint32_t)frit_storage_bytes(a.dtype, 1);
    }
    find_place(l, &a);
    return a;
}

static ll_value pointer(struct ll *l, const struct llvm_access *a, ll_value index)
{
    return BUILD(l, GEP2, a->type, a->base, &index, 1);
}

/* Of each lane of a unit. */
static ll_value pointers(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    uint64_t steps[LL_MAX_WIDTH];
    bool linear = a->kind != FACT_VARYING;
    ll_value index;

    l->wide = true;
    for (uint32_t i = 0; i < l->width; i++)
        steps[i] = ((uint64_t)unit * l->width + i) * (linear ? (uint64_t)a->stride : a->step);
    if (linear) {
        index = ll_splat(l, a->first, l->types.i64);
    } else {
        index = widened(l, a->index, ll_at(l, a->index, unit));
        if (a->step) {
            index = BUILD(l, Mul, index, ll_num(l, l->types.i64, a->times));
            index = BUILD(l, Add, index,
                          ll_splat(l, BUILD(l, ZExt, l->lane0, l->types.i64), l->types.i64));
        }
    }
    return pointer(l, a, BUILD(l, Add, index, ll_lanes(l, l->types.i64, steps)));
}

/* The lowest element of a unit, whose lanes are next to each other. */
static ll_value low_of(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    int64_t low = a->stride > 0 ? (int64_t)unit * l->width : -(int64_t)(unit + 1) * l->width + 1;

    return BUILD(l, Add, a->first, ll_int(l, l->types.i64, (uint64_t)low));
}

static ll_value run_of(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    return pointer(l, a, low_of(l, a, unit));
}

static bool is_run(const struct llvm_access *a)
{
    return a->kind == FACT_LINEAR && (a->stride == 1 || a->stride == -1);
}

/* Lanes of a vector as elements of memory, or the other way. */
static ll_value ordered(struct ll *l, const struct llvm_access *a, ll_value vector, ll_type type)
{
    uint32_t lanes[LL_MAX_WIDTH];

    if (a->stride > 0)
        return vector;
    for (uint32_t i = 0; i < l->width; i++)
        lanes[i] = l->width - 1 - i;
    return BUILD(l, ShuffleVector, vector, l->api->GetUndef(ll_vector_of(l, type)),
                 ll_mask(l, lanes));
}

static ll_value mask_of(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    ll_type bit = l->types.of[KIR_B];

    l->wide = true;
    return a->mask == KIR_NONE ? ll_num(l, bit, 1) : ll_at(l, a->mask, unit);
}

/* ---- loads ---- */

static ll_value load_at(struct ll *l, ll_type type, ll_value from)
{
    ll_value out = BUILD(l, Load2, type, from);

    l->api->SetAlignment(out, 1);
    return out;
}

/* A vector, where the mask is, if there is one, else 0. */
static ll_value load_where(struct ll *l, ll_type vector, ll_value from, ll_value mask)
{
    ll_type types[2] = {vector, l->types.ptr};
    ll_value args[4] = {from, ll_int(l, l->types.of[KIR_I32], 1), mask, l->api->ConstNull(vector)};

    return mask ? ll_call(l, "llvm.masked.load", types, 2, args, 4) : load_at(l, vector, from);
}

static ll_value load_run(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    ll_value from = run_of(l, a, unit), mask = NULL;

    if (a->mask != KIR_NONE)
        mask = ordered(l, a, mask_of(l, a, unit), l->types.of[KIR_B]);
    return ordered(l, a, load_where(l, ll_vector_of(l, a->type), from, mask), a->type);
}

/* ---- runs of a unit ---- */

static ll_value raw_of(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    ll_value value;

    l->wide = true;
    value = ll_at(l, a->value, unit);
    return a->dtype ? ll_to_memory(l, a->dtype, value) : value;
}

/* Whether a lane of a value is better computed from that lane of its operands. */
static bool is_index_row(const struct ll *l, uint32_t value)
{
    switch (l->phase->inst[value].op) {
    case KIR_add:
    case KIR_sub:
    case KIR_mul:
    case KIR_shl:
    case KIR_shr:
        return l->regions.region[value] == l->region;
    default:
        return false;
    }
}

/* One lane of the chunk of a value.  `depth` operands behind each other are computed for the lane
 * alone, in instructions that take less time than those of vectors and getting it out of one. */
static ll_value lane_of(struct ll *l, uint32_t value, uint32_t lane, uint32_t depth)
{
    const struct kir_inst *inst = &l->phase->inst[value];
    ll_type type = l->types.of[inst->type];
    uint64_t ahead = lane * (uint64_t)l->facts.of[value].stride;
    ll_value a[3] = {NULL, NULL, NULL};

    l->wide = false;
    if (ll_is(l, value, FACT_UNIFORM))
        return l->scalar[value];
    if (ll_is(l, value, FACT_LINEAR))
        return BUILD(l, Add, l->scalar[value], ll_int(l, type, ahead));
    if (!depth || !is_index_row(l, value))
        return BUILD(l, ExtractElement, ll_at(l, value, lane / l->width),
                     ll_int(l, l->types.of[KIR_I32], lane % l->width));
    for (uint32_t i = 0; i < 2; i++)
        a[i] = lane_of(l, inst->a[i], lane, depth - 1);
    l->wide = false;
    return ll_row(l, inst, a);
}

/* Where run number `part` of a unit begins. */
static ll_value part_of(struct ll *l, const struct llvm_access *a, uint32_t unit, uint32_t part)
{
    ll_value index = lane_of(l, a->index, unit * l->width + part * a->run, INDEX_DEPTH);

    l->wide = false;
    return pointer(l, a, widened(l, a->index, index));
}

/* `n` lanes of two vectors together, from number `first` on. */
static ll_value lanes_from(struct ll *l, ll_value low, ll_value high, uint32_t first, uint32_t n)
{
    ll_value lanes[LL_MAX_WIDTH];

    for (uint32_t i = 0; i < n; i++)
        lanes[i] = ll_int(l, l->types.of[KIR_I32], first + i);
    return BUILD(l, ShuffleVector, low, high, l->api->ConstVector(lanes, n));
}

static ll_value mask_of_part(struct ll *l, const struct llvm_access *a, uint32_t unit,
                             uint32_t part)
{
    ll_value mask = mask_of(l, a, unit);

    return a->run == l->width ? mask : lanes_from(l, mask, mask, part * a->run, a->run);
}

static ll_value load_part(struct ll *l, const struct llvm_access *a, uint32_t unit, uint32_t part)
{
    ll_value from = part_of(l, a, unit, part);
    ll_value mask = a->mask == KIR_NONE ? NULL : mask_of_part(l, a, unit, part);

    return load_where(l, l->api->VectorType(a->type, a->run), from, mask);
}

static ll_value load_parts(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    ll_value parts[LL_MAX_WIDTH / LEAST_RUN];
    uint32_t n = l->width / a->run;

    parts[0] = load_part(l, a, unit, 0);
    for (uint32_t i = 1; i < n; i++)
        parts[i] = load_part(l, a, unit, i);
    for (uint32_t lanes = a->run; n > 1; n /= 2, lanes *= 2)
        for (uint32_t i = 0; i < n / 2; i++)
            parts[i] = lanes_from(l, parts[2 * i], parts[2 * i + 1], 0, 2 * lanes);
    return parts[0];
}

/* Whether a mask of n lanes is known; *bits: the lanes where it is set. */
static bool is_known(struct ll *l, ll_value mask, uint32_t n, uint64_t *bits)
{
    ll_type bit = l->types.of[KIR_B];

    *bits = 0;
    if (!l->api->IsConstant(mask))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        ll_value lane = l->api->GetAggregateElement(mask, i);

        if (lane != ll_int(l, bit, 0) && lane != ll_int(l, bit, 1)) /* constants are unique */
            return false;
        *bits |= (uint64_t)(lane == ll_int(l, bit, 1)) << i;
    }
    return true;
}

static void store_at(struct ll *l, ll_value value, ll_value to)
{
    l->api->SetAlignment(l->api->BuildStore(l->builder, value, to), 1);
}

/* Lanes `first` .. `end` - 1 of a vector, as few stores as there are powers of two in their number.
 */
static void store_lanes(struct ll *l, const struct llvm_access *a, ll_value vector, ll_value to,
                        uint32_t first, uint32_t end)
{
    for (uint32_t n; first < end; first += n) {
        ll_value at = ll_int(l, l->types.i64, first);

        n = 1u << (31 - __builtin_clz(end - first));
        at = BUILD(l, GEP2, a->type, to, &at, 1);
        store_at(l, lanes_from(l, vector, vector, first, n), at);
    }
}

/* A mask as a number of n bits. */
static ll_value bits_of(struct ll *l, ll_value mask, uint32_t n)
{
    return BUILD(l, BitCast, mask, l->api->IntTypeInContext(l->context, n));
}

/* Most vectors are stored whole or not at all, at the end of a line. */
static void store_by_mask(struct ll *l, const struct llvm_access *a, ll_value vector, ll_value to,
                          ll_value mask, uint32_t n)
{
    ll_type types[2] = {l->api->VectorType(a->type, n), l->types.ptr};
    ll_value args[4] = {vector, to, ll_int(l, l->types.of[KIR_I32], 1), mask};
    ll_block all = ll_new_block(l), rest = ll_new_block(l), some = ll_new_block(l);
    ll_block after = ll_new_block(l);
    ll_type type = l->api->IntTypeInContext(l->context, n);
    ll_value bits = bits_of(l, mask, n);

    l->api->BuildCondBr(l->builder,
                        BUILD(l, ICmp, LL_EQ, bits, ll_int(l, type, UINT64_MAX >> (64 - n))), all,
                        rest);
    l->api->PositionBuilderAtEnd(l->builder, all);
    store_at(l, vector, to);
    l->api->BuildBr(l->builder, after);
    l->api->PositionBuilderAtEnd(l->builder, rest);
    l->api->BuildCondBr(l->builder, BUILD(l, ICmp, LL_EQ, bits, ll_int(l, type, 0)), after, some);
    l->api->PositionBuilderAtEnd(l->builder, some);
    ll_call(l, "llvm.masked.store", types, 2, args, 4);
    l->api->BuildBr(l->builder, after);
    l->api->PositionBuilderAtEnd(l->builder, after);
}

/* `n` lanes next to each other.  Without AVX-512 a masked store is avoided where it can be:
 * processors of one vendor take as long for it as for ten others. */
static void store_masked(struct ll *l, const struct llvm_access *a, ll_value vector, ll_value to,
                         ll_value mask, uint32_t n)
{
    ll_type types[2] = {l->api->VectorType(a->type, n), l->types.ptr};
    ll_value args[4] = {vector, to, ll_int(l, l->types.of[KIR_I32], 1), mask};
    uint64_t bits;

    if (l->cpu.isa == LLVM_AVX512) {
        ll_call(l, "llvm.masked.store", types, 2, args, 4);
        return;
    }
    if (!is_known(l, mask, n, &bits)) {
        store_by_mask(l, a, vector, to, mask, n);
        return;
    }
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && bits >> end & 1; end++)
            ;
        store_lanes(l, a, vector, to, first, end);
        end += end == first;
    }
}

static void store_parts(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    ll_value raw = raw_of(l, a, unit);

    for (uint32_t i = 0; i < l->width / a->run; i++) {
        ll_value part = a->run == l->width ? raw : lanes_from(l, raw, raw, i * a->run, a->run);
        ll_value to = part_of(l, a, unit, i);

        if (a->mask == KIR_NONE)
            store_at(l, part, to);
        else
            store_masked(l, a, part, to, mask_of_part(l, a, unit, i), a->run);
    }
}

/* Lanes a few elements apart.  Masks are for elements of 32 bits at least. */
static bool is_stepped(const struct ll *l, const struct llvm_access *a)
{
    return a->kind == FACT_LINEAR && a->stride > 1 && a->stride <= MAX_STEP && l->width > 1 &&
           a->stride <=
               (int64_t)l->width + 1 && /* else a vector is beyond the last lane's element */
           (a->mask == KIR_NONE || a->bytes >= 4);
}

/* As stepped_mask: AVX-512's masks are numbers, whose bits are spread out. */
static ll_value stepped_bits(struct ll *l, ll_value mask, uint32_t from, uint32_t step)
{
    ll_type i64 = l->types.i64, bits = l->api->IntTypeInContext(l->context, l->width);
    uint64_t places = 0;
    ll_value args[2];

    for (uint32_t i = 0; i < l->width; i++)
        places |= (uint64_t)1 << (i * step);
    args[0] = BUILD(l, ZExt, BUILD(l, BitCast, mask, bits), i64);
    args[1] = ll_int(l, i64, places);
    args[0] = ll_call_bits(l, "llvm.x86.bmi.pdep.64", args, 2);
    args[0] = BUILD(l, LShr, args[0], ll_int(l, i64, from));
    return BUILD(l, BitCast, BUILD(l, Trunc, args[0], bits),
                 l->api->VectorType(l->types.of[KIR_B], l->width));
}

/* The mask of vector `from` .. of the elements from a unit's first lane on, where lanes are `step`
 * apart: those of no lane are not loaded.  Integers, which take less than vectors of bits. */
static ll_value stepped_mask(struct ll *l, ll_value mask, uint32_t from, uint32_t step)
{
    ll_type type = l->types.of[KIR_I32];
    ll_value none = l->api->ConstNull(ll_vector_of(l, type)), wide;
    uint32_t lanes[LL_MAX_WIDTH];

    if (l->cpu.isa == LLVM_AVX512)
        return stepped_bits(l, mask, from, step);
    for (uint32_t i = 0; i < l->width; i++)
        lanes[i] = (from + i) % step ? l->width : (from + i) / step;
    wide = BUILD(l, SExt, mask, ll_vector_of(l, type));
    wide = BUILD(l, ShuffleVector, wide, none, ll_mask(l, lanes));
    return BUILD(l, ICmp, LL_SLT, wide, none);
}

/* Vectors of all elements from the first lane's to the last one's, of which lanes are picked.  The
 * last vector ends with the last lane's element. */
static ll_value load_stepped(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    const uint32_t step = (uint32_t)a->stride, width = l->width, last = (width - 1) * step;
    ll_type vector = ll_vector_of(l, a->type);
    ll_value mask = a->mask == KIR_NONE ? NULL : mask_of(l, a, unit);
    ll_value first =
        BUILD(l, Add, a->first, ll_int(l, l->types.i64, (uint64_t)unit * width * step));
    ll_value out = NULL;
    uint32_t lanes[LL_MAX_WIDTH];

    for (uint32_t v = 0; v < step; v++) {
        uint32_t from = v + 1 < step ? v * width : last + 1 - width;
        ll_value index = BUILD(l, Add, first, ll_int(l, l->types.i64, from));
        ll_value next = load_where(l, vector, pointer(l, a, index),
                                   mask ? stepped_mask(l, mask, from, step) : NULL);

        for (uint32_t i = 0; i < width; i++)
            lanes[i] = out && i * step / width == v ? width + i * step - from
                       : out                        ? i
                                                    : i * step % width;
        out = BUILD(l, ShuffleVector, out ? out : next, next, ll_mask(l, lanes));
    }
    return out;
}

/* ---- loads and stores of a unit ---- */

static ll_value gather(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    ll_type vector = ll_vector_of(l, a->type);
    ll_type types[2] = {vector, ll_vector_of(l, l->types.ptr)};
    ll_value args[4] = {pointers(l, a, unit), ll_int(l, l->types.of[KIR_I32], a->bytes),
                        mask_of(l, a, unit), l->api->ConstNull(vector)};

    return ll_call(l, "llvm.masked.gather", types, 2, args, 4);
}

static ll_value load_unit(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    bool in_runs = a->run && !a->run_same;
    ll_value raw = is_run(a)          ? load_run(l, a, unit)
                   : is_stepped(l, a) ? load_stepped(l, a, unit)
                   : in_runs          ? load_parts(l, a, unit)
                                      : gather(l, a, unit);

    l->wide = true;
    if (a->dtype)
        raw = ll_from_memory(l, a->dtype, raw);
    if (a->mask == KIR_NONE)
        return raw;
    return BUILD(l, Select, mask_of(l, a, unit), raw, ll_at(l, a->other, unit));
}

static ll_value load_one(struct ll *l, const struct llvm_access *a)
{
    ll_value raw;

    l->wide = false;
    raw = load_at(l, a->type, pointer(l, a, a->first));
    return a->dtype ? ll_from_memory(l, a->dtype, raw) : raw;
}

/* The element where `wanted`, else what `other` gives. */
static ll_value load_one_if(struct ll *l, const struct llvm_access *a, ll_value wanted,
                            ll_value other)
{
    ll_block from[2] = {l->api->GetInsertBlock(l->builder), ll_new_block(l)};
    ll_block after = ll_new_block(l);
    ll_value values[2] = {other, NULL}, phi;

    l->api->BuildCondBr(l->builder, wanted, from[1], after);
    l->api->PositionBuilderAtEnd(l->builder, from[1]);
    values[1] = load_one(l, a);
    l->api->BuildBr(l->builder, after);
    l->api->PositionBuilderAtEnd(l->builder, after);
    phi = BUILD(l, Phi, l->types.of[a->inst->type]);
    l->api->AddIncoming(phi, values, from, 2);
    return phi;
}

/* One element for all lanes of the chunk that want it, once. */
static void load_one_for_lanes(struct ll *l, uint32_t at, const struct llvm_access *a)
{
    ll_type type = l->types.of[a->inst->type];
    ll_value any = NULL, one;

    for (uint32_t u = 0; u < l->units; u++) {
        ll_value mask = mask_of(l, a, u);

        any = any ? BUILD(l, Or, any, mask) : mask;
    }
    any = bits_of(l, any, l->width);
    any = BUILD(l, ICmp, LL_NE, any, ll_int(l, l->api->IntTypeInContext(l->context, l->width), 0));
    one = load_one_if(l, a, any, l->api->ConstNull(type));
    l->wide = true;
    for (uint32_t u = 0; u < l->units; u++)
        l->vector[(size_t)at * l->units + u] =
            BUILD(l, Select, mask_of(l, a, u), ll_splat(l, one, type), ll_at(l, a->other, u));
}

/* What is loaded here next, line by line. */
static void prefetch_next(struct ll *l, uint32_t at, const struct llvm_access *a)
{
    ll_value next = ll_next_distance(l, at, a->bytes);

    for (uint32_t u = 0; u < l->units && next; u++)
        if (u * l->width * a->bytes % LINE == 0)
            ll_prefetch(l, pointer(l, a, BUILD(l, Add, next, low_of(l, a, u))), false);
}

/* A part of what groups after these load. */
static void prefetch_shared(struct ll *l, uint32_t at, const struct llvm_access *a)
{
    ll_value counter, index;

    if (l->rounds.loop == KIR_NONE || l->rounds.number || !l->rounds.ahead[at])
        return;
    l->wide = false;
    counter = widened(l, l->rounds.loop, l->scalar[l->rounds.loop]);
    index = BUILD(l, Add, l->rounds.ahead[at], BUILD(l, Mul, counter, l->rounds.each[at]));
    ll_prefetch(l, pointer(l, a, index), true);
}

/* Prefetches what a later group loads, where all lanes load the same element. */
static void prefetch_same(struct ll *l, uint32_t at, const struct llvm_access *a)
{
    ll_value next = ll_same_distance(l, at);

    if (next)
        ll_prefetch(l, pointer(l, a, BUILD(l, Add, next, a->first)), true);
}

/* All lanes load the same element, some not at all. */
static void load(struct ll *l, uint32_t at, const struct llvm_access *a)
{
    if (ll_is(l, at, FACT_UNIFORM)) {
        ll_set(l, at,
               a->mask == KIR_NONE ? load_one(l, a)
                                   : load_one_if(l, a, l->scalar[a->mask], l->scalar[a->other]));
        prefetch_same(l, at, a);
        return;
    }
    if (a->kind == FACT_UNIFORM && a->mask != KIR_NONE && l->width > 1) {
        load_one_for_lanes(l, at, a);
        return;
    }
    for (uint32_t u = 0; u < l->units; u++)
        l->vector[(size_t)at * l->units + u] = load_unit(l, a, u);
    if (!a->dtype)
        return;
    prefetch_shared(l, at, a);
    prefetch_next(l, at, a);
}

/* ---- stores ---- */

static void store_run(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    ll_value raw = ordered(l, a, raw_of(l, a, unit), a->type), to = run_of(l, a, unit);

    if (a->mask == KIR_NONE)
        store_at(l, raw, to);
    else
        store_masked(l, a, raw, to, ordered(l, a, mask_of(l, a, unit), l->types.of[KIR_B]),
                     l->width);
}

bool ll_may_stream(const struct ll *l)
{
    for (uint32_t i = 0; i < l->module->n_args; i++)
        if (l->module->args[i].access == (KIR_READ | KIR_WRITE))
            return false;
    return true;
}

uint32_t ll_stream_align(const struct ll *l, uint32_t bytes)
{
    return l->width * bytes < LINE ? l->width * bytes : LINE;
}

void ll_stream(struct ll *l, ll_value vector, ll_value to, uint32_t align)
{
    static const char kind[] = "nontemporal";
    ll_value store = l->api->BuildStore(l->builder, vector, to);
    ll_meta one = l->api->ValueAsMetadata(ll_int(l, l->types.of[KIR_I32], 1));
    ll_meta node = l->api->MDNodeInContext2(l->context, &one, 1);

    l->api->SetAlignment(store, align);
    l->api->SetMetadata(store, l->api->GetMDKindIDInContext(l->context, kind, sizeof(kind) - 1),
                        l->api->MetadataAsValue(l->context, node));
}

/* Around the caches, where the launch wants that and the place is aligned. */
static void store_runs(struct ll *l, uint32_t at, const struct llvm_access *a)
{
    ll_block around = ll_new_block(l), plain = ll_new_block(l), after = ll_new_block(l);
    uint32_t align = ll_stream_align(l, a->bytes);
    ll_type i64 = l->types.i64;
    ll_value raw[LL_MAX_UNITS] = {0}, to[LL_MAX_UNITS] = {0}, low;

    assert(l->units > 0);
    for (uint32_t u = 0; u < l->units; u++) {
        raw[u] = ordered(l, a, raw_of(l, a, u), a->type);
        to[u] = run_of(l, a, u);
    }
    low = BUILD(l, And, BUILD(l, PtrToInt, to[0], i64), ll_int(l, i64, align - 1));
    low = BUILD(l, ICmp, LL_EQ, low, ll_int(l, i64, 0));
    l->api->BuildCondBr(l->builder, BUILD(l, And, l->streams, low), around, plain);
    l->api->PositionBuilderAtEnd(l->builder, around);
    if (l->deferred.store == at) {
        ll_block full = ll_new_block(l);

        ll_hold_back(l, raw, to[0], full, after);
        l->api->PositionBuilderAtEnd(l->builder, full);
    }
    for (uint32_t u = 0; u < l->units; u++)
        ll_stream(l, raw[u], to[u], align);
    l->api->BuildBr(l->builder, after);
    l->api->PositionBuilderAtEnd(l->builder, plain);
    for (uint32_t u = 0; u < l->units; u++)
        store_at(l, raw[u], to[u]);
    l->api->BuildBr(l->builder, after);
    l->api->PositionBuilderAtEnd(l->builder, after);
}

static void scatter(struct ll *l, const struct llvm_access *a, uint32_t unit)
{
    ll_type types[2] = {ll_vector_of(l, a->type), ll_vector_of(l, l->types.ptr)};
    ll_value args[4] = {raw_of(l, a, unit), pointers(l, a, unit),
                        ll_int(l, l->types.of[KIR_I32], a->bytes), mask_of(l, a, unit)};

    ll_call(l, "llvm.masked.scatter", types, 2, args, 4);
}

static void store_one(struct ll *l, const struct llvm_access *a)
{
    ll_block yes = NULL, after = NULL;
    ll_value raw;

    if (a->mask != KIR_NONE) {
        yes = ll_new_block(l);
        after = ll_new_block(l);
        l->api->BuildCondBr(l->builder, l->scalar[a->mask], yes, after);
        l->api->PositionBuilderAtEnd(l->builder, yes);
    }
    l->wide = false;
    raw = a->dtype ? ll_to_memory(l, a->dtype, l->scalar[a->value]) : l->scalar[a->value];
    store_at(l, raw, pointer(l, a, a->first));
    if (after) {
        l->api->BuildBr(l->builder, after);
        l->api->PositionBuilderAtEnd(l->builder, after);
    }
}

static void store(struct ll *l, uint32_t at, const struct llvm_access *a)
{
    if (a->kind == FACT_UNIFORM && ll_is(l, a->value, FACT_UNIFORM) &&
        (a->mask == KIR_NONE || ll_is(l, a->mask, FACT_UNIFORM))) {
        store_one(l, a);
        return;
    }
    if (is_run(a) && a->dtype && a->mask == KIR_NONE && l->width > 1 && ll_may_stream(l)) {
        store_runs(l, at, a);
        return;
    }
    for (uint32_t u = 0; u < l->units; u++) {
        if (is_run(a))
            store_run(l, a, u);
        else if (a->run && !a->run_same)
            store_parts(l, a, u);
        else
            scatter(l, a, u);
    }
}

void ll_access(struct ll *l, uint32_t at)
{
    const struct llvm_access a = access_of(l, at);

    if (a.inst->type != KIR_VOID)
        load(l, at, &a);
    else
        store(l, at, &a);
}

/* ---- atomics ---- */

/* Lane by lane; what is added where the mask is false is skipped. */
static void add_lane(struct ll *l, const struct llvm_access *a, ll_value to, ll_value value,
                     ll_value mask)
{
    ll_block yes = ll_new_block(l), after = ll_new_block(l);
    int op = a->dtype == FRIT_F32 ? LL_RMW_FADD : LL_RMW_ADD;

    l->api->BuildCondBr(l->builder, mask, yes, after);
    l->api->PositionBuilderAtEnd(l->builder, yes);
    l->api->BuildAtomicRMW(l->builder, op, to, value, LL_MONOTONIC, 0);
    l->api->BuildBr(l->builder, after);
    l->api->PositionBuilderAtEnd(l->builder, after);
}

void ll_atomic_add(struct ll *l, uint32_t at)
{
    const struct llvm_access a = access_of(l, at);

    for (uint32_t u = 0; u < l->units; u++) {
        ll_value to = pointers(l, &a, u), value = ll_at(l, a.value, u), mask = mask_of(l, &a, u);

        for (uint32_t i = 0; i < l->width; i++) {
            ll_value lane = ll_int(l, l->types.of[KIR_I32], i);

            add_lane(l, &a, BUILD(l, ExtractElement, to, lane),
                     BUILD(l, ExtractElement, value, lane), BUILD(l, ExtractElement, mask, lane));
        }
    }
}
