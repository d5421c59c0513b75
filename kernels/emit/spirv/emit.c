/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the instructions of a phase in order, in one pass, and remembers the ids of each value.
 * Launch words are loaded in the entry block. */
#include "emit/spirv/emit.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "emit/spirv/access.h"
#include "emit/spirv/control.h"
#include "emit/spirv/fragment.h"
#include "emit/spirv/group.h"
#include "emit/spirv/space.h"
#include "emit/spirv/tile.h"
#include "emit/spirv/value.h"

enum { PUSH_BASE = 0, PUSH_ZERO = 3, PUSH_BLOCK = 4 /* members of the push constants */ };
enum { LEAST_THREADS = 32 /* if the subgroup size is unknown: the most common one */ };

void emit_refuse(struct emit *e, const char *what)
{
    if (!e->status)
        e->status =
            fail(e->err, FRIT_UNSUPPORTED, "kernel `%s` needs %s, which the device does not have",
                 e->module->name, what);
}

void emit_set_all(struct emit *e, uint32_t at, uint32_t id)
{
    for (uint32_t j = 0; j < e->shape.per_thread; j++)
        emit_set_id(e, at, j, id);
}

/* ---- types, constants, variables ---- */

static void decorate(struct emit *e, uint32_t id, uint32_t decoration, uint32_t value)
{
    spv_put(&e->build, SPV_IN_DECORATIONS, SPV_DECORATE, SPV(id, decoration, value));
}

uint32_t emit_int_type(struct emit *e, uint32_t bits)
{
    return spv_type(&e->build, SPV_TYPE_INT, SPV(bits, 0));
}

uint32_t emit_bool_type(struct emit *e)
{
    return spv_type(&e->build, SPV_TYPE_BOOL, NULL, 0);
}

uint32_t emit_type(struct emit *e, uint32_t kir_type)
{
    switch (kir_type) {
    case KIR_B:
        return emit_bool_type(e);
    case KIR_I32:
        return emit_int_type(e, 32);
    case KIR_I64:
        return emit_int_type(e, 64);
    case KIR_F32:
        return spv_type(&e->build, SPV_TYPE_FLOAT, SPV(32));
    default:
        if (!e->target->float64)
            emit_refuse(e, "64-bit floats");
        e->has_f64 = true;
        spv_capability(&e->build, SPV_CAP_FLOAT64);
        return spv_type(&e->build, SPV_TYPE_FLOAT, SPV(64));
    }
}

uint32_t emit_const(struct emit *e, uint32_t kir_type, uint64_t word)
{
    uint32_t type = emit_type(e, kir_type), low = (uint32_t)word, high = (uint32_t)(word >> 32);

    if (kir_type == KIR_B)
        return spv_constant(&e->build, word & 1 ? SPV_CONSTANT_TRUE : SPV_CONSTANT_FALSE, type,
                            NULL, 0);
    if (kir_type == KIR_I32 || kir_type == KIR_F32)
        return spv_constant(&e->build, SPV_CONSTANT, type, SPV(low));
    return spv_constant(&e->build, SPV_CONSTANT, type, SPV(low, high));
}

uint32_t emit_u32(struct emit *e, uint32_t value)
{
    return emit_const(e, KIR_I32, value);
}

uint32_t emit_u64(struct emit *e, uint64_t value)
{
    return emit_const(e, KIR_I64, value);
}

uint32_t emit_pointer_type(struct emit *e, enum spv_class class, uint32_t type)
{
    return spv_type(&e->build, SPV_TYPE_POINTER, SPV((uint32_t) class, type));
}

uint32_t emit_block_type(struct emit *e, uint32_t element, uint32_t bytes)
{
    uint32_t n = e->build.section[SPV_IN_GLOBALS].n, array, block;

    array = spv_type(&e->build, SPV_TYPE_RUNTIME_ARRAY, SPV(element));
    block = spv_type(&e->build, SPV_TYPE_STRUCT, SPV(array));
    if (e->build.section[SPV_IN_GLOBALS].n == n)
        return block;
    decorate(e, array, SPV_DEC_ARRAY_STRIDE, bytes);
    spv_put(&e->build, SPV_IN_DECORATIONS, SPV_DECORATE, SPV(block, SPV_DEC_BLOCK));
    spv_put(&e->build, SPV_IN_DECORATIONS, SPV_MEMBER_DECORATE, SPV(block, 0, SPV_DEC_OFFSET, 0));
    return block;
}

uint32_t emit_variable(struct emit *e, enum spv_class class, uint32_t type)
{
    bool local = class == SPV_CLASS_FUNCTION;
    uint32_t id = spv_make(&e->build, local ? SPV_IN_LOCALS : SPV_IN_GLOBALS, SPV_VARIABLE,
                           emit_pointer_type(e, class, type), SPV((uint32_t) class));

    if (!local)
        e->globals[e->n_globals++] = id;
    return id;
}

/* ---- shared memory ---- */

/* A block of its own: types of the same array differ by their layout alone. */
static uint32_t shared_block(struct emit *e, uint32_t element, uint32_t bytes, uint32_t count,
                             uint32_t place)
{
    uint32_t array = spv_id(&e->build), block = spv_id(&e->build), n = emit_u32(e, count);

    spv_put(&e->build, SPV_IN_GLOBALS, SPV_TYPE_ARRAY, SPV(array, element, n));
    spv_put(&e->build, SPV_IN_GLOBALS, SPV_TYPE_STRUCT, SPV(block, array));
    decorate(e, array, SPV_DEC_ARRAY_STRIDE, bytes);
    spv_put(&e->build, SPV_IN_DECORATIONS, SPV_DECORATE, SPV(block, SPV_DEC_BLOCK));
    spv_put(&e->build, SPV_IN_DECORATIONS, SPV_MEMBER_DECORATE,
            SPV(block, 0, SPV_DEC_OFFSET, place));
    spv_capability(&e->build, SPV_CAP_BLOCKS_OF_GROUP);
    if (bytes == 2)
        spv_capability(&e->build, SPV_CAP_BLOCKS_OF_GROUP_16);
    spv_extension(&e->build, "SPV_KHR_workgroup_memory_explicit_layout");
    return block;
}

uint32_t emit_shared(struct emit *e, uint32_t element, uint32_t bytes, uint32_t count,
                     uint32_t place)
{
    uint32_t id;

    if (!e->has_blocks)
        return emit_variable(e, SPV_CLASS_WORKGROUP,
                             spv_type(&e->build, SPV_TYPE_ARRAY, SPV(element, emit_u32(e, count))));
    id = emit_variable(e, SPV_CLASS_WORKGROUP, shared_block(e, element, bytes, count, place));
    spv_put(&e->build, SPV_IN_DECORATIONS, SPV_DECORATE, SPV(id, SPV_DEC_ALIASED));
    return id;
}

uint32_t emit_shared_pointer(struct emit *e, uint32_t element, uint32_t variable, uint32_t at)
{
    uint32_t pointer = emit_pointer_type(e, SPV_CLASS_WORKGROUP, element);

    return e->has_blocks ? EMIT(e, SPV_ACCESS_CHAIN, pointer, variable, emit_u32(e, 0), at)
                         : EMIT(e, SPV_ACCESS_CHAIN, pointer, variable, at);
}

uint32_t emit_memory_operands(const struct emit *e, uint32_t bytes, uint32_t out[2])
{
    out[0] = (bytes ? SPV_ALIGNED : 0) | (e->phase->n_fragments ? SPV_NON_PRIVATE : 0);
    out[1] = bytes;
    return out[0] ? 1 + (bytes > 0) : 0;
}

uint32_t emit_load(struct emit *e, uint32_t type, uint32_t pointer, uint32_t bytes)
{
    uint32_t operands[3] = {pointer}, n = emit_memory_operands(e, bytes, operands + 1);

    return spv_make(&e->build, SPV_IN_BODY, SPV_LOAD, type, operands, 1 + n);
}

void emit_store(struct emit *e, uint32_t pointer, uint32_t id, uint32_t bytes)
{
    uint32_t operands[4] = {pointer, id}, n = emit_memory_operands(e, bytes, operands + 2);

    spv_put(&e->build, SPV_IN_BODY, SPV_STORE, operands, 2 + n);
}

/* ---- what is loaded in the entry block ---- */

#define AT_ENTRY(e, op, type, ...) spv_make(&(e)->build, SPV_IN_ENTRY, op, type, SPV(__VA_ARGS__))

/* Declares the push constants: their head and `n` 64-bit words. */
static void make_push(struct emit *e, uint32_t n)
{
    uint32_t *members = arena_array(&e->arena, PUSH_BLOCK + n, sizeof(*members)), type;

    if (!members) {
        e->build.failed = true;
        return;
    }
    for (uint32_t i = 0; i < PUSH_BLOCK + n; i++)
        members[i] = emit_int_type(e, i < PUSH_BLOCK ? 32 : 64);
    type = spv_type(&e->build, SPV_TYPE_STRUCT, members, PUSH_BLOCK + n);
    spv_put(&e->build, SPV_IN_DECORATIONS, SPV_DECORATE, SPV(type, SPV_DEC_BLOCK));
    for (uint32_t i = 0; i < PUSH_BLOCK + n; i++)
        spv_put(&e->build, SPV_IN_DECORATIONS, SPV_MEMBER_DECORATE,
                SPV(type, i, SPV_DEC_OFFSET, i < PUSH_BLOCK ? i * 4 : SPIRV_HEAD + (i - 4) * 8));
    e->push = emit_variable(e, SPV_CLASS_PUSH, type);
    e->code->push_bytes = SPIRV_HEAD + n * 8;
}

static uint32_t push_member(struct emit *e, uint32_t number)
{
    uint32_t word = emit_int_type(e, number < PUSH_BLOCK ? 32 : 64), pointer;

    pointer = AT_ENTRY(e, SPV_ACCESS_CHAIN, emit_pointer_type(e, SPV_CLASS_PUSH, word), e->push,
                       emit_u32(e, number));
    return AT_ENTRY(e, SPV_LOAD, word, pointer);
}

uint32_t emit_push_word(struct emit *e, uint32_t number)
{
    return push_member(e, PUSH_BLOCK + number);
}

uint32_t emit_launch_word(struct emit *e, uint32_t number)
{
    uint32_t word = emit_int_type(e, 64), address;

    if (e->launch_words[number])
        return e->launch_words[number];
    if (e->code->block_is_pushed && (number >= e->module->n_args || !e->target->split_block)) {
        /* With a split block one word, its address, is pushed in place of the arguments. */
        uint32_t before = e->target->split_block ? e->module->n_args - 1 : 0;

        e->launch_words[number] = push_member(e, PUSH_BLOCK + number - before);
        return e->launch_words[number];
    }
    if (!e->block_address)
        e->block_address = push_member(e, PUSH_BLOCK);
    address = AT_ENTRY(e, SPV_I_ADD, word, e->block_address, emit_u64(e, (uint64_t)number * 8));
    address =
        AT_ENTRY(e, SPV_CONVERT_U_TO_PTR, emit_pointer_type(e, SPV_CLASS_PHYSICAL, word), address);
    e->launch_words[number] = AT_ENTRY(e, SPV_LOAD, word, address, SPV_ALIGNED, 8);
    return e->launch_words[number];
}

uint32_t emit_thread(struct emit *e)
{
    uint32_t word = emit_int_type(e, 32), variable;

    if (!e->thread && e->shape.threads == 1)
        e->thread = emit_u32(e, 0);
    if (!e->thread) {
        variable = emit_variable(e, SPV_CLASS_INPUT, word);
        decorate(e, variable, SPV_DEC_BUILT_IN, SPV_BUILT_IN_LOCAL_INDEX);
        e->thread = AT_ENTRY(e, SPV_LOAD, word, variable);
    }
    return e->thread;
}

uint32_t emit_group(struct emit *e, uint32_t dim)
{
    uint32_t word = emit_int_type(e, 32),
             three = spv_type(&e->build, SPV_TYPE_VECTOR, SPV(word, 3)), id;

    if (!e->workgroup) {
        uint32_t variable = emit_variable(e, SPV_CLASS_INPUT, three);

        decorate(e, variable, SPV_DEC_BUILT_IN, SPV_BUILT_IN_WORKGROUP_ID);
        e->workgroup = AT_ENTRY(e, SPV_LOAD, three, variable);
    }
    if (!e->group[dim]) {
        id = AT_ENTRY(e, SPV_COMPOSITE_EXTRACT, word, e->workgroup, dim);
        e->group[dim] = AT_ENTRY(e, SPV_I_ADD, word, id, push_member(e, PUSH_BASE + dim));
    }
    return e->group[dim];
}

uint32_t emit_zero(struct emit *e, uint32_t kir_type, bool minus)
{
    bool wide = kir_type == KIR_F64 || kir_type == KIR_I64;
    uint32_t *zero = &e->zeros[kir_type][minus], word = emit_int_type(e, wide ? 64 : 32);

    if (*zero)
        return *zero;
    *zero = push_member(e, PUSH_ZERO);
    if (wide)
        *zero = AT_ENTRY(e, SPV_U_CONVERT, word, *zero);
    if (minus)
        *zero = AT_ENTRY(e, SPV_BITWISE_XOR, word, *zero,
                         wide ? emit_u64(e, 1ull << 63) : emit_u32(e, 1u << 31));
    if (kir_type == KIR_F32 || kir_type == KIR_F64)
        *zero = AT_ENTRY(e, SPV_BITCAST, emit_type(e, kir_type), *zero);
    return *zero;
}

uint32_t emit_lane(struct emit *e, uint32_t j)
{
    uint32_t word = emit_int_type(e, 32), first = emit_thread(e);
    uint32_t stride = e->shape.striped ? e->shape.threads : 1;

    if (!e->shape.striped && e->shape.per_thread > 1)
        first = EMIT(e, SPV_I_MUL, word, first, emit_u32(e, e->shape.per_thread));
    return j ? EMIT(e, SPV_I_ADD, word, first, emit_u32(e, j * stride)) : first;
}

/* ---- blocks ---- */

void emit_label(struct emit *e, uint32_t label)
{
    EMIT_PUT(e, SPV_LABEL, label);
    e->block = label;
}

void emit_patch(struct emit *e, uint32_t where, uint32_t id)
{
    if (!e->build.failed)
        e->build.section[SPV_IN_BODY].word[where] = id;
}

struct region emit_if(struct emit *e, uint32_t condition)
{
    struct region region = {.from = e->block, .merge = spv_id(&e->build)};
    uint32_t inner = spv_id(&e->build);

    EMIT_PUT(e, SPV_SELECTION_MERGE, region.merge, 0);
    EMIT_PUT(e, SPV_BRANCH_CONDITIONAL, condition, inner, region.merge);
    region.patch = e->build.section[SPV_IN_BODY].n - 1;
    emit_label(e, inner);
    return region;
}

void emit_else(struct emit *e, struct region *region)
{
    uint32_t label = spv_id(&e->build);

    emit_patch(e, region->patch, label);
    EMIT_PUT(e, SPV_BRANCH, region->merge);
    emit_label(e, label);
}

void emit_end_if(struct emit *e, const struct region *region)
{
    EMIT_PUT(e, SPV_BRANCH, region->merge);
    emit_label(e, region->merge);
}

/* ---- instructions ---- */

static void set_lanes(struct emit *e, uint32_t at)
{
    for (uint32_t j = 0; j < e->shape.per_thread; j++)
        emit_set_id(e, at, j, emit_lane(e, j));
}

/* Instructions that are not written lane by lane by value_emit. */
static void (*const handlers[KIR_OPS])(struct emit *e, uint32_t at) = {
    [KIR_lane] = set_lanes,          [KIR_load] = access_load,
    [KIR_load_if] = access_load,     [KIR_store] = access_store,
    [KIR_store_if] = access_store,   [KIR_atomic_add] = access_atomic,
    [KIR_tload] = tile_load,         [KIR_tstore] = tile_store,
    [KIR_tstore_if] = tile_store,    [KIR_barrier] = group_barrier,
    [KIR_exchange] = group_exchange, [KIR_shift] = group_shift,
    [KIR_first] = group_first,       [KIR_for] = control_for,
    [KIR_phi] = control_phi,         [KIR_next] = control_next,
    [KIR_if] = control_if,           [KIR_end] = control_end,
    [KIR_mfill] = fragment_fill,     [KIR_mload] = fragment_load,
    [KIR_mstore] = fragment_store,   [KIR_mma] = fragment_multiply,
    [KIR_mscale] = fragment_scale,   [KIR_each] = fragment_each,
    [KIR_done] = fragment_done,      [KIR_tcopy] = tile_copy,
    [KIR_tbatch] = tile_batch,       [KIR_twait] = tile_wait,
    [KIR_row] = fragment_coordinate, [KIR_column] = fragment_coordinate,
};

static void emit_instruction(struct emit *e, uint32_t at)
{
    const struct kir_inst *inst = &e->phase->inst[at];
    uint32_t n = kir_op_info(inst->op)->n, v[3] = {0};

    if (handlers[inst->op]) {
        handlers[inst->op](e, at);
        return;
    }
    for (uint32_t j = 0; j < e->shape.per_thread; j += emit_run_length(e, at)) {
        for (uint32_t i = 0; i < n; i++)
            v[i] = emit_id(e, inst->a[i], j);
        emit_set_run(e, at, j, value_emit(e, inst, v));
    }
}

/* ---- the module around the phase ---- */

static void add_mode(struct emit *e, uint32_t entry, enum spv_capability capability,
                     enum spv_mode mode, uint32_t bits)
{
    spv_capability(&e->build, capability);
    spv_put(&e->build, SPV_IN_MODES, SPV_EXECUTION_MODE, SPV(entry, (uint32_t)mode, bits));
}

/* Requests the behaviour of floats of a width, as far as the device supports such requests. */
static void make_float_modes(struct emit *e, uint32_t entry, uint32_t bits, bool special,
                             bool denormal, bool even)
{
    if (special)
        add_mode(e, entry, SPV_CAP_SIGNED_ZERO_INF_NAN_PRESERVE,
                 SPV_MODE_SIGNED_ZERO_INF_NAN_PRESERVE, bits);
    if (denormal)
        add_mode(e, entry, SPV_CAP_DENORM_PRESERVE, SPV_MODE_DENORM_PRESERVE, bits);
    if (even)
        add_mode(e, entry, SPV_CAP_ROUNDING_MODE_RTE, SPV_MODE_ROUNDING_MODE_RTE, bits);
}

static void make_modes(struct emit *e, uint32_t entry)
{
    const struct spirv_target *t = e->target;

    spv_put(&e->build, SPV_IN_MODES, SPV_EXECUTION_MODE,
            SPV(entry, SPV_MODE_LOCAL_SIZE, e->shape.threads, 1, 1));
    make_float_modes(e, entry, 32, t->keep_special32, t->keep_denormal32, t->round_even32);
    if (e->has_f64)
        make_float_modes(e, entry, 64, t->keep_special64, t->keep_denormal64, t->round_even64);
    if (e->has_f16)
        make_float_modes(e, entry, 16, true, true, true);
}

static void make_head(struct emit *e, uint32_t entry)
{
    uint32_t n,
        *words = arena_array(&e->arena, KIR_MAX_NAME / 4 + 8 + e->n_globals, sizeof(*words));

    if (!words) {
        e->build.failed = true;
        return;
    }
    words[0] = e->glsl;
    n = spv_text(words + 1, "GLSL.std.450");
    spv_put(&e->build, SPV_IN_HEAD, SPV_EXT_INST_IMPORT, words, n + 1);
    spv_put(&e->build, SPV_IN_HEAD, SPV_MEMORY_MODEL,
            SPV(SPV_ADDRESSING_PHYSICAL_64,
                e->phase->n_fragments ? SPV_MODEL_VULKAN : SPV_MODEL_GLSL450));
    words[0] = entry;
    n = spv_text(words + 1, e->module->name);
    spv_put(&e->build, SPV_IN_NAMES, SPV_NAME, words, n + 1);
    words[0] = SPV_EXECUTION_GLCOMPUTE;
    words[1] = entry;
    n = 2 + spv_text(words + 2, "main");
    memcpy(words + n, e->globals, e->n_globals * sizeof(*words));
    spv_put(&e->build, SPV_IN_HEAD, SPV_ENTRY_POINT, words, n + e->n_globals);
}

static void make_function(struct emit *e)
{
    uint32_t none = spv_type(&e->build, SPV_TYPE_VOID, NULL, 0), entry, n_words;
    uint32_t type = spv_type(&e->build, SPV_TYPE_FUNCTION, SPV(none));

    spv_capability(&e->build, SPV_CAP_SHADER);
    spv_capability(&e->build, SPV_CAP_INT64);
    spv_capability(&e->build, SPV_CAP_PHYSICAL_ADDRESSES);
    e->glsl = spv_id(&e->build);
    entry = spv_make(&e->build, SPV_IN_LOCALS, SPV_FUNCTION, none, SPV(0, type));
    e->block = spv_id(&e->build);
    spv_put(&e->build, SPV_IN_LOCALS, SPV_LABEL, SPV(e->block));
    n_words = (e->target->split_block ? 1 : e->module->n_args) + e->module->n_params;
    e->code->block_is_pushed =
        !e->module->spaces && SPIRV_HEAD + n_words * 8 <= e->target->push_bytes;
    make_push(e, e->code->block_is_pushed ? n_words : e->module->spaces ? SPIRV_SPACE_WORDS : 1);
    tile_declare(e);
    fragment_declare(e);
    if (e->module->spaces)
        emit_space(e);
    for (uint32_t i = 0; i < e->phase->n && !e->build.failed; i++)
        emit_instruction(e, i);
    spv_put(&e->build, SPV_IN_BODY, SPV_RETURN, NULL, 0);
    spv_put(&e->build, SPV_IN_BODY, SPV_FUNCTION_END, NULL, 0);
    make_modes(e, entry);
    make_head(e, entry);
}

static bool has_half_tiles(const struct kir_phase *phase)
{
    for (uint32_t i = 0; i < phase->n_tiles; i++)
        if (kir_is_16_bit_float(phase->tiles[i].dtype))
            return true;
    return false;
}

/* Allocates the arrays whose lengths depend on the shape. */
static frit_status alloc_arrays(struct emit *e)
{
    size_t per_thread = e->shape.per_thread, n = e->phase->n,
           n_words = e->module->n_args + e->module->n_params;

    e->ids = arena_array(&e->arena, n + 1, per_thread * sizeof(*e->ids));
    if (has_half_tiles(e->phase))
        e->words = arena_array(&e->arena, n + 1, per_thread * sizeof(*e->words));
    e->launch_words = arena_array(&e->arena, n_words + 1, sizeof(*e->launch_words));
    e->tiles = arena_array(&e->arena, e->phase->n_tiles + 1, sizeof(*e->tiles));
    e->fragments = arena_array(&e->arena, e->phase->n_fragments + 1, sizeof(*e->fragments));
    e->globals = arena_array(&e->arena, e->phase->n_tiles + 8, sizeof(*e->globals));
    if (!e->ids || !e->launch_words || !e->tiles || !e->fragments || !e->globals)
        return fail_memory(e->err, (n + 1) * per_thread * sizeof(*e->ids));
    return FRIT_OK;
}

static frit_status emit_phase(struct emit *e, uint32_t phase)
{
    const struct shape_target target = {.max_threads = e->target->max_threads,
                                        .least_threads = e->target->subgroup ? e->target->subgroup
                                                                             : LEAST_THREADS,
                                        .aligned = e->aligned,
                                        .team = e->target->subgroup};

    TRY(facts_init(&e->facts, e->module, phase, e->err));
    TRY(shape_init(&e->shape, e->module, phase, &e->facts, &target, &e->arena, e->err));
    TRY(alloc_arrays(e));
    e->code->threads = e->shape.threads;
    e->code->per_thread = e->stride = e->shape.per_thread;
    make_function(e);
    if (e->status)
        return e->status;
    if (e->code->shared_bytes > e->target->shared_bytes)
        return fail(e->err, FRIT_UNSUPPORTED,
                    "kernel `%s` needs %u bytes of memory per workgroup, the device has %u",
                    e->module->name, e->code->shared_bytes, e->target->shared_bytes);
    e->code->words = spv_finish(&e->build, &e->code->n_words);
    return e->code->words ? FRIT_OK : fail_memory(e->err, 0);
}

frit_status spirv_emit(const struct kir_module *module, uint32_t phase,
                       const struct spirv_target *target, bool aligned, struct spirv_code *out,
                       frit_err *err)
{
    struct emit *e;
    frit_status status;

    *out = (struct spirv_code){0};
    e = calloc(1, sizeof(*e));
    if (!e)
        return fail_memory(err, sizeof(*e));
    e->module = module;
    e->phase = &module->phases[phase];
    e->target = target;
    e->aligned = aligned;
    e->code = out;
    e->err = err;
    status = emit_phase(e, phase);
    spv_fini(&e->build);
    facts_fini(&e->facts);
    arena_fini(&e->arena);
    free(e);
    return status;
}

void spirv_fini(struct spirv_code *code)
{
    free(code->words);
    *code = (struct spirv_code){0};
}
