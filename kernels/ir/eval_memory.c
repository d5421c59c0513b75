/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and tiles: every access is checked before it is made. */
#include "ir/eval_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/fail.h"
#include "ir/eval_shadow.h"
#include "ir/eval_state.h"
#include "ir/half.h"

#define SEVERAL UINT32_MAX /* readers */

/* ---- elements ---- */

static uint64_t signed_32(int32_t value)
{
    return (uint32_t)value;
}

/* The value that an element of the dtype is as, from the `bytes` low bytes of `raw`. */
static uint64_t widened(uint32_t dtype, uint64_t raw)
{
    const frit_dtype_info info = frit_dtype_info_of(dtype);

    if (info.cls == FRIT_DTYPE_BOOL)
        return raw != 0;
    if (info.cls == FRIT_DTYPE_INT && info.bits < 32)
        return signed_32(info.bits == 8 ? (int8_t)raw : (int16_t)raw);
    return kir_is_16_bit_float(dtype) ? half_bits_of(half_load((uint16_t)raw, info.fraction)) : raw;
}

static uint64_t narrowed(uint32_t dtype, uint64_t value)
{
    if (!kir_is_16_bit_float(dtype))
        return value;
    return half_store(half_real_of((uint32_t)value), frit_dtype_info_of(dtype).fraction);
}

/* ---- where ---- */

static int64_t offset_in(const struct eval *e, uint32_t lane)
{
    uint32_t value = e->inst->a[0];
    uint64_t bits = eval_value(e, value)[lane];

    return e->phase->inst[value].type == KIR_I32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

static size_t element_bytes(const struct kir_arg *arg)
{
    return (size_t)frit_storage_bytes(arg->dtype, 1);
}

static uint64_t elements_in(uint64_t whole, uint64_t bytes)
{
    return bytes ? whole / bytes : 0;
}

/* The address of an argument's element that a lane touches. */
static frit_status find_element(const struct eval *e, uint32_t lane, int64_t at,
                                unsigned char **out)
{
    const struct eval_arg *arg = &e->args[eval_place(e)];
    uint64_t bytes = element_bytes(&e->module->args[eval_place(e)]);
    uint64_t below = elements_in(arg->before, bytes), above = elements_in(arg->after, bytes);

    if (at < 0 ? 0 - (uint64_t)at > below : (uint64_t)at >= above)
        return eval_fail(e, "lane %u is at element %lld of argument %u, which has -%llu up to %llu",
                         lane, (long long)at, eval_place(e), (unsigned long long)below,
                         (unsigned long long)above);
    *out = (unsigned char *)arg->base + at * (int64_t)bytes;
    return FRIT_OK;
}

/* ---- arguments ---- */

frit_status eval_read(struct eval *e, uint32_t lane, int64_t at, uint64_t *out)
{
    const struct kir_arg *arg = &e->module->args[eval_place(e)];
    size_t bytes = element_bytes(arg);
    unsigned char *element;
    uint64_t raw = 0;

    TRY(find_element(e, lane, at, &element));
    TRY(eval_shadow_read(e, lane, element, bytes));
    memcpy(&raw, element, bytes);
    *out = widened(arg->dtype, raw);
    return FRIT_OK;
}

frit_status eval_write(struct eval *e, uint32_t lane, int64_t at, uint64_t value)
{
    const struct kir_arg *arg = &e->module->args[eval_place(e)];
    uint64_t raw = narrowed(arg->dtype, value);
    size_t bytes = element_bytes(arg);
    unsigned char *element;

    TRY(find_element(e, lane, at, &element));
    TRY(eval_shadow_write(e, lane, element, &raw, bytes));
    memcpy(element, &raw, bytes);
    return FRIT_OK;
}

frit_status eval_load(struct eval *e)
{
    bool conditional = e->inst->op == KIR_load_if;
    const uint64_t *condition = conditional ? eval_value(e, e->inst->a[1]) : NULL;
    const uint64_t *other = conditional ? eval_value(e, e->inst->a[2]) : NULL;
    uint64_t *out = eval_value(e, (uint32_t)(e->inst - e->phase->inst));

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++) {
        if (eval_is_idle(e, lane))
            continue;
        if (condition && !condition[lane])
            out[lane] = other[lane];
        else
            TRY(eval_read(e, lane, offset_in(e, lane), &out[lane]));
    }
    return FRIT_OK;
}

frit_status eval_store(struct eval *e)
{
    const uint64_t *values = eval_value(e, e->inst->a[1]);
    const uint64_t *condition = e->inst->op == KIR_store_if ? eval_value(e, e->inst->a[2]) : NULL;

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++)
        if (!eval_is_idle(e, lane) && (!condition || condition[lane]))
            TRY(eval_write(e, lane, offset_in(e, lane), values[lane]));
    return FRIT_OK;
}

frit_status eval_atomic_add(struct eval *e)
{
    const struct kir_arg *arg = &e->module->args[eval_place(e)];
    size_t bytes = element_bytes(arg);
    const uint64_t *values = eval_value(e, e->inst->a[1]);
    const uint64_t *condition = eval_value(e, e->inst->a[2]);

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++) {
        unsigned char *element;
        uint64_t raw = 0;

        if (condition && !condition[lane])
            continue;
        TRY(find_element(e, lane, offset_in(e, lane), &element));
        TRY(eval_shadow_add(e, lane, element, bytes));
        memcpy(&raw, element, bytes);
        if (arg->dtype == FRIT_F32)
            raw = half_bits_of(half_real_of((uint32_t)raw) + half_real_of((uint32_t)values[lane]));
        else
            raw += values[lane];
        memcpy(element, &raw, bytes);
    }
    return FRIT_OK;
}

/* ---- tiles ---- */

/* Elements of a tile, of all lanes together. */
static size_t tile_capacity(const struct eval *e, uint32_t tile)
{
    const struct kir_tile *t = &e->phase->tiles[tile];

    return t->space == KIR_GROUP ? t->count : (size_t)t->count * e->phase->lanes;
}

frit_status eval_tiles_init(struct eval *e)
{
    e->tiles = calloc((size_t)e->phase->n_tiles + 1, sizeof(*e->tiles));
    if (!e->tiles)
        return fail_memory(e->err, e->phase->n_tiles * sizeof(*e->tiles));
    for (uint32_t i = 0; i < e->phase->n_tiles; i++) {
        struct eval_tile *tile = &e->tiles[i];
        bool shared = e->phase->tiles[i].space == KIR_GROUP;

        tile->values = malloc(tile_capacity(e, i) * sizeof(*tile->values));
        tile->touch = shared ? malloc(tile_capacity(e, i) * sizeof(*tile->touch)) : NULL;
        if (!tile->values || (shared && !tile->touch))
            return fail_memory(e->err, tile_capacity(e, i) * sizeof(*tile->values));
    }
    return FRIT_OK;
}

void eval_tiles_fini(struct eval *e)
{
    for (uint32_t i = 0; e->tiles && i < e->phase->n_tiles; i++) {
        free(e->tiles[i].values);
        free(e->tiles[i].touch);
    }
    free(e->tiles);
    free(e->copies);
    e->tiles = NULL;
    e->copies = NULL;
    e->copies_capacity = 0;
}

void eval_tiles_barrier(struct eval *e)
{
    for (uint32_t i = 0; i < e->phase->n_tiles; i++) {
        if (e->tiles[i].touch)
            memset(e->tiles[i].touch, 0, tile_capacity(e, i) * sizeof(*e->tiles[i].touch));
    }
}

void eval_tiles_reset(struct eval *e)
{
    e->n_copies = e->batch = 0;
    for (uint32_t i = 0; i < e->phase->n_tiles; i++) {
        uint32_t type = e->phase->tiles[i].type;
        uint64_t ones = type == KIR_I32 || type == KIR_F32 ? UINT32_MAX : UINT64_MAX;

        for (size_t k = 0; k < tile_capacity(e, i); k++)
            e->tiles[i].values[k] = ones;
    }
    eval_tiles_barrier(e);
}

/* The index into `values` of the element that a lane touches. */
static frit_status find_tile_element(const struct eval *e, uint32_t lane, int64_t at, size_t *out)
{
    const struct kir_tile *tile = &e->phase->tiles[eval_place(e)];

    if (at < 0 || at >= (int64_t)tile->count)
        return eval_fail(e, "lane %u is at element %lld of tile %u, which has %u", lane,
                         (long long)at, eval_place(e), tile->count);
    *out = (size_t)at + (tile->space == KIR_GROUP ? 0 : (size_t)lane * tile->count);
    return FRIT_OK;
}

static frit_status race(const struct eval *e, uint32_t lane, const char *does, size_t at,
                        uint32_t other, const char *did)
{
    if (other == SEVERAL)
        return eval_fail(e, "lane %u %s element %zu of tile %u, which others %s, with no barrier",
                         lane, does, at, eval_place(e), did);
    return eval_fail(e, "lane %u %s element %zu of tile %u, which lane %u %s, with no barrier",
                     lane, does, at, eval_place(e), other - 1, did);
}

frit_status eval_tread(struct eval *e, uint32_t lane, int64_t offset, uint64_t *out)
{
    const struct eval_tile *tile = &e->tiles[eval_place(e)];
    uint32_t self = lane + 1;
    size_t at;

    TRY(find_tile_element(e, lane, offset, &at));
    if (tile->touch) {
        struct eval_touch *touch = &tile->touch[at];

        if (touch->writer && touch->writer != self)
            return race(e, lane, "reads", at, touch->writer, "wrote");
        touch->reader = touch->reader && touch->reader != self ? SEVERAL : self;
    }
    *out = tile->values[at];
    return FRIT_OK;
}

frit_status eval_twrite(struct eval *e, uint32_t lane, int64_t offset, uint64_t value)
{
    const struct eval_tile *tile = &e->tiles[eval_place(e)];
    const uint32_t self = lane + 1, dtype = e->phase->tiles[eval_place(e)].dtype;
    size_t at;

    if (kir_is_16_bit_float(dtype))
        value = widened(dtype, narrowed(dtype, value));
    TRY(find_tile_element(e, lane, offset, &at));
    if (tile->touch) {
        struct eval_touch *touch = &tile->touch[at];

        if (touch->reader && touch->reader != self)
            return race(e, lane, "writes", at, touch->reader, "read");
        if (touch->writer && touch->writer != self && tile->values[at] != value)
            return race(e, lane, "writes", at, touch->writer, "wrote otherwise");
        touch->writer = self;
    }
    tile->values[at] = value;
    return FRIT_OK;
}

frit_status eval_tload(struct eval *e)
{
    uint64_t *out = eval_value(e, (uint32_t)(e->inst - e->phase->inst));

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++)
        TRY(eval_tread(e, lane, offset_in(e, lane), &out[lane]));
    return FRIT_OK;
}

frit_status eval_tstore(struct eval *e)
{
    const uint64_t *values = eval_value(e, e->inst->a[1]);
    const uint64_t *condition = e->inst->op == KIR_tstore_if ? eval_value(e, e->inst->a[2]) : NULL;

    for (uint32_t lane = 0; lane < e->phase->lanes; lane++)
        if (!condition || condition[lane])
            TRY(eval_twrite(e, lane, offset_in(e, lane), values[lane]));
    return FRIT_OK;
}

/* ---- copies ---- */

static int64_t offset_at(const struct eval *e, uint32_t operand, uint32_t lane)
{
    const uint64_t bits = eval_value(e, e->inst->a[operand])[lane];

    return e->phase->inst[e->inst->a[operand]].type == KIR_I32 ? (int32_t)(uint32_t)bits
                                                               : (int64_t)bits;
}

/* Until it is waited for the element is the same NaN as one that nothing wrote. */
static frit_status copy_element(struct eval *e, uint32_t lane)
{
    const uint64_t ones = e->phase->tiles[kir_copy_of(e->inst->imm).tile].type == KIR_I32 ||
                                  e->phase->tiles[kir_copy_of(e->inst->imm).tile].type == KIR_F32
                              ? UINT32_MAX
                              : UINT64_MAX;
    struct eval_copy copy = {
        .tile = kir_copy_of(e->inst->imm).tile, .batch = e->batch, .lane = lane};
    frit_status status = FRIT_OK;

    e->in_tile = false;
    if (eval_value(e, e->inst->a[2])[lane])
        status = eval_read(e, lane, offset_at(e, 1, lane), &copy.value);
    e->in_tile = true;
    if (!status)
        status = eval_twrite(e, lane, offset_at(e, 0, lane), ones);
    if (!status)
        status = find_tile_element(e, lane, offset_at(e, 0, lane), &copy.at);
    if (!status && !array_grow(&e->copies, &e->copies_capacity, e->n_copies, 1, sizeof(*e->copies)))
        status = fail_memory(e->err, sizeof(*e->copies));
    if (!status)
        e->copies[e->n_copies++] = copy;
    return status;
}

frit_status eval_tcopy(struct eval *e)
{
    for (uint32_t lane = 0; lane < e->phase->lanes; lane++)
        TRY(copy_element(e, lane));
    return FRIT_OK;
}

frit_status eval_tbatch(struct eval *e)
{
    e->batch++;
    return FRIT_OK;
}

frit_status eval_twait(struct eval *e)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < e->n_copies; i++) {
        const struct eval_copy *copy = &e->copies[i];

        if (copy->batch + e->inst->imm < e->batch) {
            e->tiles[copy->tile].values[copy->at] = copy->value;
            e->tiles[copy->tile].touch[copy->at].writer = copy->lane + 1;
        } else {
            e->copies[kept++] = *copy;
        }
    }
    e->n_copies = kept;
    return FRIT_OK;
}
