/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions are copied one by one.  A fragment is a list of values; those that a loop changes
 * are phis of it, after its own. */
#include "ir/expand.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

struct expansion {
    const struct kir_module *module;
    const struct kir_phase *phase;
    struct kir_module *out;
    bool fma;
    uint32_t *value;     /* per instruction of the phase: that of the copy */
    uint32_t **elements; /* per fragment: values, row by row */
    uint32_t *list;      /* what `next` gives: as many as all elements and instructions */
    uint32_t lane;       /* of the team, I32 */
    frit_err *err;
};

static uint32_t constant(const struct expansion *x, int64_t number)
{
    return kir_index(x->out, number);
}

static uint32_t add(const struct expansion *x, uint32_t a, uint32_t b)
{
    return kir_binary(x->out, KIR_add, a, b);
}

/* ---- elements ---- */

/* Values of a row: of a left fragment all, else those of a lane's columns. */
static uint32_t row_values(const struct expansion *x, const struct kir_fragment *f)
{
    return f->use == KIR_LEFT ? f->columns : f->columns / x->phase->team;
}

static uint32_t count_of(const struct expansion *x, uint32_t fragment)
{
    const struct kir_fragment *f = &x->phase->fragments[fragment];

    return f->rows * row_values(x, f);
}

/* The column of a row's value: a constant, or the lane's. */
static uint32_t column_of(const struct expansion *x, const struct kir_fragment *f, uint32_t number,
                          bool as_index)
{
    enum kir_type type = as_index ? kir_index_type(x->out) : KIR_I32;
    uint32_t lane = x->lane;

    if (f->use == KIR_LEFT)
        return kir_const_i(x->out, type, number);
    if (type == KIR_I64)
        lane = kir_unary(x->out, KIR_i64, lane);
    return number ? add(x, lane, kir_const_i(x->out, type, (int64_t)number * x->phase->team))
                  : lane;
}

/* ---- memory ---- */

/* Where element `near` of line `far` is, see kir_fragment_at. */
static uint32_t offset_in_blocks(const struct expansion *x, const struct kir_inst *inst,
                                 uint32_t far, uint32_t near)
{
    const uint32_t shift = constant(x, 6), bits = constant(x, 7), three = constant(x, 3);
    uint32_t block = kir_binary(x->out, KIR_shr, near, shift), at;

    near = kir_binary(x->out, KIR_and, near, constant(x, KIR_BLOCK - 1));
    at = add(x, kir_binary(x->out, KIR_shl, far, shift), near);
    at = add(x, at, kir_binary(x->out, KIR_mul, block, x->value[inst->a[1]]));
    at = add(x, at, x->value[inst->a[0]]);
    far = kir_binary(x->out, KIR_and, kir_binary(x->out, KIR_shr, at, shift), bits);
    return kir_binary(x->out, KIR_xor, at, kir_binary(x->out, KIR_shl, far, three));
}

/* Where the element of a row and a column is. */
static uint32_t offset_of(const struct expansion *x, const struct kir_inst *inst,
                          const struct kir_fragment *f, uint32_t i)
{
    const struct kir_fragment_place place = kir_fragment_place_of(inst->imm);
    uint32_t row = constant(x, i / row_values(x, f));
    uint32_t column = column_of(x, f, i % row_values(x, f), true);
    uint32_t far = place.by_columns ? column : row, near = place.by_columns ? row : column;

    if (place.in_blocks)
        return offset_in_blocks(x, inst, far, near);
    far = kir_binary(x->out, KIR_mul, far, x->value[inst->a[1]]);
    return add(x, add(x, x->value[inst->a[0]], far), near);
}

static void move(struct expansion *x, const struct kir_inst *inst)
{
    const struct kir_fragment_place place = kir_fragment_place_of(inst->imm);
    const struct kir_fragment *f = &x->phase->fragments[place.fragment];
    const enum kir_op load = place.is_tile ? KIR_tload : KIR_load;
    const enum kir_op store = place.is_tile ? KIR_tstore : KIR_store;

    for (uint32_t i = 0; i < count_of(x, place.fragment); i++) {
        uint32_t *element = &x->elements[place.fragment][i], at = offset_of(x, inst, f, i);

        if (inst->op == KIR_mload)
            *element = kir_emit_as(x->out, load, kir_type_of(f->dtype), place.place, at, KIR_NONE,
                                   KIR_NONE);
        else
            kir_emit_imm(x->out, store, place.place, at, *element, KIR_NONE);
    }
}

/* A copy at once; batches and waits are nothing then. */
static void copy_to_tile(struct expansion *x, const struct kir_inst *inst)
{
    const struct kir_copy copy = kir_copy_of(inst->imm);
    const enum kir_type type = kir_type_of(x->module->args[copy.arg].dtype);
    uint32_t zero = type == KIR_F32 || type == KIR_F64 ? kir_const_f(x->out, type, 0)
                                                       : kir_const_i(x->out, type, 0);

    kir_emit_imm(x->out, KIR_tstore, copy.tile, x->value[inst->a[0]],
                 kir_emit_as(x->out, KIR_load_if, type, copy.arg, x->value[inst->a[1]],
                             x->value[inst->a[2]], zero),
                 KIR_NONE);
}

/* ---- products ---- */

static uint32_t add_product(const struct expansion *x, uint32_t sum, uint32_t a, uint32_t b)
{
    if (x->fma && kir_type_at(x->out, sum) != KIR_I32)
        return kir_emit(x->out, KIR_fma, a, b, sum);
    return add(x, sum, kir_binary(x->out, KIR_mul, a, b));
}

static void multiply(struct expansion *x, uint64_t imm)
{
    const uint32_t sum = kir_factor(imm, 0), left = kir_factor(imm, 1), right = kir_factor(imm, 2);
    const uint32_t columns = row_values(x, &x->phase->fragments[sum]);
    const uint32_t depth = x->phase->fragments[left].columns;

    for (uint32_t k = 0; k < depth; k++)
        for (uint32_t i = 0; i < count_of(x, sum); i++)
            x->elements[sum][i] =
                add_product(x, x->elements[sum][i], x->elements[left][i / columns * depth + k],
                            x->elements[right][k * columns + i % columns]);
}

static void scale(struct expansion *x, uint64_t imm)
{
    const uint32_t sum = kir_factor(imm, 0), by = kir_factor(imm, 1);

    for (uint32_t i = 0; i < count_of(x, sum); i++)
        x->elements[sum][i] = kir_binary(x->out, KIR_mul, x->elements[sum][i], x->elements[by][i]);
}

/* ---- instructions ---- */

static void copy(struct expansion *x, uint32_t at)
{
    const struct kir_inst *inst = &x->phase->inst[at];
    uint32_t a[3] = {KIR_NONE, KIR_NONE, KIR_NONE};

    for (uint32_t k = 0; k < kir_op_info(inst->op)->n; k++)
        a[k] = x->value[inst->a[k]];
    x->value[at] = kir_emit_as(x->out, inst->op, inst->type, inst->imm, a[0], a[1], a[2]);
}

/* The body of an each, for each value of the fragment. */
static void expand_each(struct expansion *x, uint32_t each)
{
    const uint32_t fragment = (uint32_t)x->phase->inst[each].imm, done = x->phase->inst[each].pair;
    const struct kir_fragment *f = &x->phase->fragments[fragment];

    for (uint32_t i = 0; i < count_of(x, fragment); i++) {
        x->value[each] = x->elements[fragment][i];
        for (uint32_t at = each + 1; at < done; at++) {
            if (x->phase->inst[at].op == KIR_row)
                x->value[at] = kir_const_i(x->out, KIR_I32, i / row_values(x, f));
            else if (x->phase->inst[at].op == KIR_peer)
                x->value[at] = x->elements[x->phase->inst[at].imm][i];
            else if (x->phase->inst[at].op == KIR_column)
                x->value[at] = column_of(x, f, i % row_values(x, f), false);
            else
                copy(x, at);
        }
        x->elements[fragment][i] = x->value[x->phase->inst[done].a[0]];
    }
}

/* ---- control ---- */

/* Whether an instruction between two changes the fragment. */
static bool changes(const struct expansion *x, uint32_t fragment, uint32_t from, uint32_t end)
{
    for (uint32_t at = from; at < end; at++) {
        const struct kir_inst *inst = &x->phase->inst[at];

        if (((inst->op == KIR_mfill || inst->op == KIR_each) && inst->imm == fragment) ||
            (inst->op == KIR_mload && kir_fragment_place_of(inst->imm).fragment == fragment) ||
            ((inst->op == KIR_mma || inst->op == KIR_mscale) &&
             kir_factor(inst->imm, 0) == fragment))
            return true;
    }
    return false;
}

static frit_status expand_for(struct expansion *x, uint32_t at)
{
    const struct kir_inst *inst = &x->phase->inst[at];
    const uint32_t *bounds = x->module->links + inst->a[0];

    x->value[at] = kir_for(x->out, x->value[bounds[0]], x->value[bounds[1]], (uint32_t)inst->imm);
    for (uint32_t i = at + 1; x->phase->inst[i].op == KIR_phi; i++)
        x->value[i] = kir_phi(x->out, x->value[x->phase->inst[i].a[0]]);
    for (uint32_t f = 0; f < x->phase->n_fragments; f++)
        for (uint32_t i = 0; changes(x, f, at, inst->pair) && i < count_of(x, f); i++)
            x->elements[f][i] = kir_phi(x->out, x->elements[f][i]);
    return FRIT_OK;
}

/* After the loop its phis are what the fragments hold. */
static frit_status expand_next(struct expansion *x, uint32_t at)
{
    const struct kir_inst *inst = &x->phase->inst[at];
    uint32_t n = 0, phi;

    for (; n < inst->a[1]; n++)
        x->list[n] = x->value[x->module->links[inst->a[0] + n]];
    phi = x->value[inst->pair] + 1 + n;
    for (uint32_t f = 0; f < x->phase->n_fragments; f++)
        for (uint32_t i = 0; changes(x, f, inst->pair, at) && i < count_of(x, f); i++) {
            x->list[n++] = x->elements[f][i];
            x->elements[f][i] = phi++;
        }
    kir_next(x->out, x->list, n);
    return FRIT_OK;
}

static frit_status expand_if(struct expansion *x, uint32_t at)
{
    for (uint32_t f = 0; f < x->phase->n_fragments; f++)
        if (changes(x, f, at, x->phase->inst[at].pair))
            return fail(x->err, FRIT_UNSUPPORTED, "kernel %s: an if changes fragment %u",
                        x->module->name, f);
    kir_if(x->out, x->value[x->phase->inst[at].a[0]]);
    return FRIT_OK;
}

static frit_status expand_inst(struct expansion *x, uint32_t *at)
{
    const struct kir_inst *inst = &x->phase->inst[*at];

    switch (inst->op) {
    case KIR_for:
        return expand_for(x, *at);
    case KIR_next:
        return expand_next(x, *at);
    case KIR_if:
        return expand_if(x, *at);
    case KIR_end:
        kir_end(x->out);
        return FRIT_OK;
    case KIR_phi:
        return FRIT_OK;
    case KIR_mfill:
        for (uint32_t i = 0; i < count_of(x, (uint32_t)inst->imm); i++)
            x->elements[inst->imm][i] = x->value[inst->a[0]];
        return FRIT_OK;
    case KIR_mload:
    case KIR_mstore:
        move(x, inst);
        return FRIT_OK;
    case KIR_tcopy:
        copy_to_tile(x, inst);
        return FRIT_OK;
    case KIR_mbatch:
    case KIR_mwait:
    case KIR_tbatch:
    case KIR_twait:
        return FRIT_OK;
    case KIR_mma:
        multiply(x, inst->imm);
        return FRIT_OK;
    case KIR_mscale:
        scale(x, inst->imm);
        return FRIT_OK;
    case KIR_mlargest:
    case KIR_mtotal:
    case KIR_mnarrow:
        return fail(x->err, FRIT_UNSUPPORTED, "kernel %s: folds rows of fragments",
                    x->module->name);
    case KIR_each:
        expand_each(x, *at);
        *at = inst->pair;
        return FRIT_OK;
    default:
        copy(x, *at);
        return FRIT_OK;
    }
}

/* ---- phases ---- */

static uint32_t zero_of(const struct expansion *x, uint32_t dtype)
{
    enum kir_type type = kir_type_of(dtype);

    return type == KIR_F32 || type == KIR_F64 ? kir_const_f(x->out, type, 0)
                                              : kir_const_i(x->out, type, 0);
}

/* Fragments hold anything at the begin. */
static frit_status begin_fragments(struct expansion *x)
{
    const uint32_t n = x->phase->n_fragments, team = x->phase->team;
    size_t total = x->phase->n;

    for (uint32_t f = 0; f < n; f++) {
        const struct kir_fragment *fragment = &x->phase->fragments[f];

        if (fragment->use != KIR_LEFT && fragment->columns % team)
            return fail(x->err, FRIT_UNSUPPORTED, "kernel %s: %u columns among %u lanes",
                        x->module->name, fragment->columns, team);
        x->elements[f] = malloc(count_of(x, f) * sizeof(**x->elements));
        if (!x->elements[f])
            return fail_memory(x->err, count_of(x, f) * sizeof(**x->elements));
        for (uint32_t i = 0; i < count_of(x, f); i++)
            x->elements[f][i] = zero_of(x, fragment->dtype);
        total += count_of(x, f);
    }
    x->list = malloc(total * sizeof(*x->list));
    return x->list ? FRIT_OK : fail_memory(x->err, total * sizeof(*x->list));
}

static frit_status fill_phase(struct expansion *x)
{
    for (uint32_t i = 0; i < x->phase->n_tiles; i++) {
        const struct kir_tile *tile = &x->phase->tiles[i];

        kir_tile_of(x->out, (enum kir_space)tile->space, tile->dtype, tile->count);
    }
    if (x->phase->team)
        x->lane =
            kir_binary(x->out, KIR_and, kir_emit(x->out, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE),
                       kir_const_i(x->out, KIR_I32, (int64_t)x->phase->team - 1));
    TRY(begin_fragments(x));
    for (uint32_t at = 0; at < x->phase->n; at++)
        TRY(expand_inst(x, &at));
    return FRIT_OK;
}

static frit_status expand_phase(struct expansion *x)
{
    const size_t n = (size_t)x->phase->n + 1, n_fragments = (size_t)x->phase->n_fragments + 1;
    frit_status status;

    kir_phase(x->out, x->phase->lanes);
    if (!x->out->failed)
        x->out->phases[x->out->n_phases - 1].per_thread = x->phase->per_thread;
    x->value = malloc(n * sizeof(*x->value));
    x->elements = calloc(n_fragments, sizeof(*x->elements));
    x->list = NULL;
    status = x->value && x->elements ? fill_phase(x) : fail_memory(x->err, n * sizeof(*x->value));
    for (uint32_t f = 0; x->elements && f < x->phase->n_fragments; f++)
        free(x->elements[f]);
    free(x->elements);
    free(x->value);
    free(x->list);
    return status;
}

frit_status kir_expand(const struct kir_module *module, bool fma, struct kir_module *out,
                       frit_err *err)
{
    struct expansion x = {.module = module, .out = out, .fma = fma, .err = err};
    frit_status status = FRIT_OK;

    kir_init(out, module->name);
    out->wide = module->wide;
    out->spaces = module->spaces;
    out->n_params = module->n_params;
    for (uint32_t i = 0; i < module->n_args; i++)
        kir_arg(out, module->args[i].dtype, module->args[i].access);
    for (uint32_t i = 0; i < module->n_phases && !status && !out->failed; i++) {
        x.phase = &module->phases[i];
        status = expand_phase(&x);
    }
    if (!status && out->failed)
        status = fail_memory(err, sizeof(struct kir_inst));
    if (status)
        kir_fini(out);
    return status;
}
