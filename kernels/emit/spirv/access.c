/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments: loads, stores and atomics by address.  Neighbouring elements that shape_chunk allows
 * are one access of 4, 8 or 16 bytes, in words or 64-bit words; any other element is an access by
 * itself.  A conditional chunk is one wide access where its condition holds for every element;
 * otherwise each lane tests its own condition. */
#include "emit/spirv/access.h"

#include "emit/spirv/convert.h"
#include "emit/spirv/emit.h"
#include "emit/spirv/value.h"

enum { ACCESS_MAX = 16 }; /* elements: 16 bytes of the smallest */

/* One access: `n` lanes from `first` on. */
struct access {
    const struct kir_inst *inst;
    uint32_t arg, offset; /* a number; a value */
    uint32_t dtype, bytes;
    uint32_t first, n;
    uint32_t condition; /* operand, KIR_NONE: always */
};

static struct access access_of(const struct emit *e, uint32_t at, uint32_t condition)
{
    struct access a = {.inst = &e->phase->inst[at], .condition = condition};
    bool copies = a.inst->op == KIR_tcopy;

    a.arg = copies ? kir_copy_of(a.inst->imm).arg : (uint32_t)a.inst->imm;
    a.offset = a.inst->a[copies];
    a.dtype = e->module->args[a.arg].dtype;
    a.bytes = (uint32_t)frit_storage_bytes(a.dtype, 1);
    a.n = shape_chunk(&e->shape, a.arg, a.offset);
    return a;
}

/* Bits of the words that an access moves. */
static uint32_t word_bits(const struct access *a)
{
    return a->n == 1 || a->bytes == 8 ? a->bytes * 8 : 32;
}

static uint32_t word_count(const struct access *a)
{
    return a->n * a->bytes * 8 / word_bits(a);
}

/* Elements of a word. */
static uint32_t per_word(const struct access *a)
{
    return a->n / word_count(a);
}

/* What the access moves: a word or a vector of them. */
static uint32_t access_type(struct emit *e, const struct access *a)
{
    uint32_t bits = word_bits(a), n = word_count(a), word;

    if (bits == 8 && !e->target->store8)
        emit_refuse(e, "access to single elements of 8 bits");
    if (bits == 16 && !e->target->store16)
        emit_refuse(e, "access to single elements of 16 bits");
    if (bits < 32)
        spv_capability(&e->build, bits == 8 ? SPV_CAP_STORE_8 : SPV_CAP_STORE_16);
    word = emit_int_type(e, bits);
    return n == 1 ? word : spv_type(&e->build, SPV_TYPE_VECTOR, SPV(word, n));
}

/* A pointer to element `offset` of the argument, at the access' first lane. */
static uint32_t pointer(struct emit *e, const struct access *a, uint32_t type)
{
    uint32_t offset = emit_id(e, a->offset, a->first), wide = emit_int_type(e, 64);

    if (emit_type_at(e, a->offset) == KIR_I32)
        offset = EMIT(e, SPV_S_CONVERT, wide, offset);
    if (a->bytes > 1)
        offset = EMIT(e, SPV_I_MUL, wide, offset, emit_u64(e, a->bytes));
    offset = EMIT(e, SPV_I_ADD, wide, offset, emit_launch_word(e, a->arg));
    return EMIT(e, SPV_CONVERT_U_TO_PTR, emit_pointer_type(e, SPV_CLASS_PHYSICAL, type), offset);
}

/* ---- loads ---- */

/* The words of the access, those below 32 bits widened. */
static void load_words(struct emit *e, const struct access *a, uint32_t *out)
{
    uint32_t type = access_type(e, a), bits = word_bits(a), raw, count = word_count(a);

    raw = emit_load(e, type, pointer(e, a, type), a->n * a->bytes);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = count == 1 ? raw : EMIT(e, SPV_COMPOSITE_EXTRACT, emit_int_type(e, bits), raw, i);
        if (bits < 32)
            out[i] = EMIT(e, SPV_U_CONVERT, emit_int_type(e, 32), out[i]);
    }
}

/* The elements that words have. */
static void unpack(struct emit *e, const struct access *a, const uint32_t *words, uint32_t *out)
{
    for (uint32_t j = 0; j < a->n; j++) {
        uint32_t part = j % per_word(a), word = words[j / per_word(a)];

        if (part)
            word = EMIT(e, SPV_SHIFT_RIGHT_LOGICAL, emit_int_type(e, 32), word,
                        emit_u32(e, part * a->bytes * 8));
        out[j] = convert_load(e, a->dtype, word);
    }
}

/* Into out[0 .. n). */
static void load_now(struct emit *e, const struct access *a, uint32_t *out)
{
    uint32_t words[ACCESS_MAX];

    load_words(e, a, words);
    unpack(e, a, words, out);
}

/* Behind a region: a value that was packed in it at `from`, or the packed one from elsewhere. */
static uint32_t merge(struct emit *e, uint32_t type, const struct region *region, uint32_t packed,
                      uint32_t from, uint32_t other)
{
    return EMIT(e, SPV_PHI, value_packed_type(e, type), packed, from, other, region->from);
}

static uint32_t third(struct emit *e, const struct access *a, uint32_t j)
{
    return value_packed(e, a->inst->type, emit_id(e, a->inst->a[2], j));
}

/* One lane, where its condition is true; else its third operand; packed. */
static uint32_t load_guarded(struct emit *e, const struct access *a, uint32_t j)
{
    struct access one = *a;
    uint32_t other = third(e, a, j), loaded, from;
    struct region region = emit_if(e, emit_id(e, a->condition, j));

    one.first = j;
    one.n = 1;
    load_now(e, &one, &loaded);
    loaded = value_packed(e, a->inst->type, loaded);
    from = e->block;
    emit_end_if(e, &region);
    return merge(e, a->inst->type, &region, loaded, from, other);
}

/* The condition that holds if the conditions of all elements of the chunk do.  `*same`: they are
 * one id. */
static uint32_t all_of(struct emit *e, const struct access *a, bool *same)
{
    uint32_t first = emit_id(e, a->condition, a->first), all = first;

    *same = true;
    for (uint32_t j = 1; j < a->n; j++) {
        uint32_t other = emit_id(e, a->condition, a->first + j);

        if (other == first)
            continue;
        *same = false;
        all = EMIT(e, SPV_LOGICAL_AND, emit_bool_type(e), all, other);
    }
    return all;
}

/* Lanes first .. first + n of a chunk under conditions into `out`, packed. */
static void load_where(struct emit *e, const struct access *a, uint32_t *out)
{
    uint32_t narrow[ACCESS_MAX], from, all;
    struct region region;
    bool same;

    if (a->n == 1) {
        out[0] = load_guarded(e, a, a->first);
        return;
    }
    all = all_of(e, a, &same);
    for (uint32_t j = 0; same && j < a->n; j++)
        narrow[j] = third(e, a, a->first + j);
    region = emit_if(e, all);
    load_now(e, a, out);
    for (uint32_t j = 0; j < a->n; j++)
        out[j] = value_packed(e, a->inst->type, out[j]);
    from = e->block;
    if (!same) {
        emit_else(e, &region);
        for (uint32_t j = 0; j < a->n; j++)
            narrow[j] = load_guarded(e, a, a->first + j);
        region.from = e->block;
    }
    emit_end_if(e, &region);
    for (uint32_t j = 0; j < a->n; j++)
        out[j] = merge(e, a->inst->type, &region, out[j], from, narrow[j]);
}

/* ---- pairs of 16-bit floats that tiles take as they are ---- */

uint32_t access_word(const struct emit *e, uint32_t value, uint32_t dtype, uint32_t j)
{
    const struct kir_inst *inst = &e->phase->inst[value];

    if (!e->words || (inst->op != KIR_load && inst->op != KIR_load_if) ||
        e->module->args[inst->imm].dtype != dtype)
        return 0;
    return e->words[value * e->stride + j];
}

/* Whether what a load gives where its condition is false is all zeros. */
static bool has_zeros(const struct emit *e, const struct access *a)
{
    const struct kir_inst *third;

    if (a->condition == KIR_NONE)
        return true;
    third = &e->phase->inst[a->inst->a[2]];
    return third->op == KIR_const && !third->imm;
}

static uint32_t word_type(struct emit *e, const struct access *a)
{
    return emit_int_type(e, a->bytes == 8 ? 64 : 32);
}

static uint32_t word_zero(struct emit *e, const struct access *a)
{
    return a->bytes == 8 ? emit_u64(e, 0) : emit_u32(e, 0);
}

/* The word of lane j alone; zero where its condition is false. */
static uint32_t load_guarded_word(struct emit *e, const struct access *a, uint32_t j)
{
    struct access one = *a;
    struct region region;
    uint32_t word, from;

    one.first = j;
    one.n = 1;
    if (a->condition == KIR_NONE) {
        load_words(e, &one, &word);
        return word;
    }
    region = emit_if(e, emit_id(e, a->condition, j));
    load_words(e, &one, &word);
    from = e->block;
    emit_end_if(e, &region);
    return EMIT(e, SPV_PHI, word_type(e, a), word, from, word_zero(e, a), region.from);
}

/* The word that lanes have from j on, of which each tests its condition. */
static uint32_t load_word_by_lanes(struct emit *e, const struct access *a, uint32_t j)
{
    uint32_t word = load_guarded_word(e, a, j), other, type = word_type(e, a);

    for (uint32_t i = 1; i < per_word(a); i++) {
        other = load_guarded_word(e, a, j + i);
        other = EMIT(e, SPV_SHIFT_LEFT_LOGICAL, type, other, emit_u32(e, i * a->bytes * 8));
        word = EMIT(e, SPV_BITWISE_OR, type, word, other);
    }
    return word;
}

/* The words of the access, zeros for lanes whose conditions are false. */
static void load_words_where(struct emit *e, const struct access *a, uint32_t *words)
{
    uint32_t others[ACCESS_MAX], from, all;
    struct region region;
    bool same;

    all = all_of(e, a, &same);
    region = emit_if(e, all);
    load_words(e, a, words);
    from = e->block;
    if (!same)
        emit_else(e, &region);
    for (uint32_t i = 0; i < word_count(a); i++)
        others[i] = same ? word_zero(e, a) : load_word_by_lanes(e, a, a->first + i * per_word(a));
    if (!same)
        region.from = e->block;
    emit_end_if(e, &region);
    for (uint32_t i = 0; i < word_count(a); i++)
        words[i] = EMIT(e, SPV_PHI, word_type(e, a), words[i], from, others[i], region.from);
}

/* Without a condition where it is always true. */
static uint32_t copy_condition(const struct emit *e, const struct kir_inst *inst)
{
    const struct kir_inst *condition = &e->phase->inst[inst->a[2]];

    return condition->op == KIR_const && condition->imm & 1 ? KIR_NONE : inst->a[2];
}

void access_copy(struct emit *e, uint32_t at, uint32_t j, uint32_t n, uint32_t *words)
{
    struct access a = access_of(e, at, copy_condition(e, &e->phase->inst[at]));
    uint32_t step, wide = a.n >= n;

    a.first = j;
    a.n = n;
    step = per_word(&a);
    if (wide && a.condition == KIR_NONE)
        load_words(e, &a, words);
    else if (wide)
        load_words_where(e, &a, words);
    for (uint32_t i = 0; !wide && i < n / step; i++)
        words[i] = load_word_by_lanes(e, &a, j + i * step);
}

/* A chunk whose words are kept for tiles. */
static void load_pairs(struct emit *e, const struct access *a, uint32_t at)
{
    uint32_t words[ACCESS_MAX], out[ACCESS_MAX];

    if (a->condition == KIR_NONE)
        load_words(e, a, words);
    else
        load_words_where(e, a, words);
    unpack(e, a, words, out);
    for (uint32_t j = 0; j < a->n; j++) {
        emit_set_id(e, at, a->first + j, out[j]);
        if (j % 2 == 0)
            e->words[at * e->stride + a->first + j] = words[j / 2];
    }
}

static void load_chunk(struct emit *e, const struct access *a, uint32_t at)
{
    uint32_t out[ACCESS_MAX];

    if (e->words && a->n > 1 && kir_is_16_bit_float(a->dtype) && has_zeros(e, a)) {
        load_pairs(e, a, at);
        return;
    }

    if (a->condition == KIR_NONE)
        load_now(e, a, out);
    else
        load_where(e, a, out);
    for (uint32_t j = 0; j < a->n; j++) {
        if (a->condition != KIR_NONE)
            out[j] = value_unpacked(e, a->inst->type, out[j]);
        emit_set_id(e, at, a->first + j, out[j]);
    }
}

void access_load(struct emit *e, uint32_t at)
{
    bool conditional = e->phase->inst[at].op == KIR_load_if;
    struct access a = access_of(e, at, conditional ? e->phase->inst[at].a[1] : KIR_NONE);

    if (emit_is_uniform(e, at)) {
        a.n = 1;
        load_chunk(e, &a, at);
        emit_set_all(e, at, emit_id(e, at, 0));
        return;
    }
    if (a.n == 1 && emit_run_length(e, at) > 1) {
        for (; a.first < e->shape.per_thread; a.first += emit_run_length(e, at)) {
            load_chunk(e, &a, at);
            emit_set_run(e, at, a.first, emit_id(e, at, a.first));
        }
        return;
    }
    for (; a.first < e->shape.per_thread; a.first += a.n)
        load_chunk(e, &a, at);
}

/* ---- stores ---- */

/* The word that elements from the access' element `j` on make. */
static uint32_t word_from(struct emit *e, const struct access *a, uint32_t j)
{
    uint32_t bits = word_bits(a), word = 0, value;

    if (per_word(a) == 2 && kir_is_16_bit_float(a->dtype))
        return convert_pair(e, a->dtype, emit_id(e, a->inst->a[1], a->first + j),
                            emit_id(e, a->inst->a[1], a->first + j + 1));
    for (uint32_t part = 0; part < per_word(a); part++) {
        value = convert_store(e, a->dtype, emit_id(e, a->inst->a[1], a->first + j + part));
        if (bits < 32)
            value = EMIT(e, SPV_U_CONVERT, emit_int_type(e, bits), value);
        if (part)
            value = EMIT(e, SPV_SHIFT_LEFT_LOGICAL, emit_int_type(e, 32), value,
                         emit_u32(e, part * a->bytes * 8));
        word = part ? EMIT(e, SPV_BITWISE_OR, emit_int_type(e, 32), word, value) : value;
    }
    return word;
}

static void store_now(struct emit *e, const struct access *a)
{
    uint32_t type = access_type(e, a), words[ACCESS_MAX], raw;

    for (uint32_t i = 0; i < word_count(a); i++)
        words[i] = word_from(e, a, i * per_word(a));
    raw = words[0];
    if (word_count(a) > 1)
        raw = spv_make(&e->build, SPV_IN_BODY, SPV_COMPOSITE_CONSTRUCT, type, words, word_count(a));
    emit_store(e, pointer(e, a, type), raw, a->n * a->bytes);
}

static void store_guarded(struct emit *e, const struct access *a, uint32_t j)
{
    struct access one = *a;
    struct region region = emit_if(e, emit_id(e, a->condition, j));

    one.first = j;
    one.n = 1;
    store_now(e, &one);
    emit_end_if(e, &region);
}

static void store_chunk(struct emit *e, const struct access *a)
{
    struct region region;
    uint32_t all;
    bool same;

    if (a->condition == KIR_NONE) {
        store_now(e, a);
        return;
    }
    if (a->n == 1) {
        store_guarded(e, a, a->first);
        return;
    }
    all = all_of(e, a, &same);
    region = emit_if(e, all);
    store_now(e, a);
    if (!same) {
        emit_else(e, &region);
        for (uint32_t j = 0; j < a->n; j++)
            store_guarded(e, a, a->first + j);
    }
    emit_end_if(e, &region);
}

void access_store(struct emit *e, uint32_t at)
{
    bool conditional = e->phase->inst[at].op == KIR_store_if;
    struct access a = access_of(e, at, conditional ? e->phase->inst[at].a[2] : KIR_NONE);

    for (; a.first < e->shape.per_thread; a.first += a.n)
        store_chunk(e, &a);
}

/* ---- atomics ---- */

/* The Vulkan memory model has the device's scope only as an option. */
static uint32_t atomic_scope(struct emit *e)
{
    return emit_u32(e, e->phase->n_fragments ? SPV_SCOPE_QUEUE_FAMILY : SPV_SCOPE_DEVICE);
}

/* Or-ed with a zero the sum is an integer for certain: that of a float's bits has been taken for
 * one of floats (Mesa 22.3). */
static void add_i(struct emit *e, uint32_t pointer_id, uint32_t kir_type, uint32_t id)
{
    uint32_t type = emit_type(e, kir_type);

    id = EMIT(e, SPV_BITWISE_OR, type, id, emit_zero(e, kir_type, false));
    EMIT(e, SPV_ATOMIC_I_ADD, type, pointer_id, atomic_scope(e), emit_u32(e, 0), id);
}

static void add_f32(struct emit *e, uint32_t pointer_id, uint32_t id)
{
    spv_extension(&e->build, "SPV_EXT_shader_atomic_float_add");
    spv_capability(&e->build, SPV_CAP_ATOMIC_F32_ADD);
    EMIT(e, SPV_ATOMIC_F_ADD, emit_type(e, KIR_F32), pointer_id, atomic_scope(e), emit_u32(e, 0),
         id);
}

/* Without float atomics: exchange the word until nobody else did. */
static void add_f32_loop(struct emit *e, uint32_t pointer_id, uint32_t id)
{
    uint32_t head = spv_id(&e->build), body = spv_id(&e->build), resume = spv_id(&e->build);
    uint32_t merged = spv_id(&e->build), before = e->block, word = emit_int_type(e, 32);
    uint32_t zero = emit_u32(e, 0), device = atomic_scope(e);
    uint32_t first, old, sum, found = spv_id(&e->build), done;

    first = emit_load(e, word, pointer_id, 4);
    EMIT_PUT(e, SPV_BRANCH, head);
    emit_label(e, head);
    old = EMIT(e, SPV_PHI, word, first, before, found, resume);
    EMIT_PUT(e, SPV_LOOP_MERGE, merged, resume, 0);
    EMIT_PUT(e, SPV_BRANCH, body);
    emit_label(e, body);
    sum = value_round(e, SPV_F_ADD, KIR_F32, EMIT(e, SPV_BITCAST, emit_type(e, KIR_F32), old), id);
    EMIT_PUT(e, SPV_ATOMIC_COMPARE_EXCHANGE, word, found, pointer_id, device, zero, zero,
             value_bits(e, KIR_F32, sum), old);
    done = EMIT(e, SPV_I_EQUAL, emit_bool_type(e), found, old);
    EMIT_PUT(e, SPV_BRANCH_CONDITIONAL, done, merged, resume);
    emit_label(e, resume);
    EMIT_PUT(e, SPV_BRANCH, head);
    emit_label(e, merged);
}

void access_atomic(struct emit *e, uint32_t at)
{
    struct access a = access_of(e, at, e->phase->inst[at].a[2]);
    uint32_t type, id;

    if (a.bytes == 8 && !e->target->atomic_i64)
        emit_refuse(e, "64-bit atomics");
    if (a.bytes == 8)
        spv_capability(&e->build, SPV_CAP_INT64_ATOMICS);
    a.n = 1;
    for (; a.first < e->shape.per_thread; a.first++) {
        struct region region = emit_if(e, emit_id(e, a.condition, a.first));

        id = emit_id(e, a.inst->a[1], a.first);
        type = emit_int_type(e, a.bytes * 8);
        if (a.dtype != FRIT_F32)
            add_i(e, pointer(e, &a, type), kir_type_of(a.dtype), id);
        else if (e->target->atomic_f32)
            add_f32(e, pointer(e, &a, emit_type(e, KIR_F32)), id);
        else
            add_f32_loop(e, pointer(e, &a, type), id);
        emit_end_if(e, &region);
    }
}
