/* SPDX-License-Identifier: Apache-2.0 */
/* Three passes over each phase, each relying on those before: how loops and ifs nest, what each
 * instruction is made of, and what is uniform. */
#include "ir/verify.h"

#include <stdlib.h>
#include <string.h>

#include <frit/program.h>

#include "base/fail.h"
#include "ir/facts.h"

struct verify {
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct kir_inst *inst;
    struct kir_place place;
    uint32_t *scope; /* per instruction: the for or if around it, or KIR_NONE */
    frit_err *err;
};

/* Puts the place in front of the reason: "phase 0, %3 add: ...". */
static frit_status at_place(const struct verify *v, frit_status status)
{
    if (v->err && v->place.at != KIR_NONE)
        fail_context(v->err, "phase %u, %%%u %s", v->place.phase, v->place.at,
                     v->inst->op < KIR_OPS ? kir_op_info(v->inst->op)->name : "?");
    else if (v->err && v->place.phase != KIR_NONE)
        fail_context(v->err, "phase %u", v->place.phase);
    return status;
}

#define bad(v, ...) at_place(v, fail((v)->err, FRIT_INVALID, __VA_ARGS__))

static void go_to(struct verify *v, uint32_t at)
{
    v->place.at = at;
    v->inst = &v->phase->inst[at];
}

/* ---- nesting ---- */

static frit_status check_pair(struct verify *v, uint32_t opener)
{
    uint32_t op = v->inst->op == KIR_next ? KIR_for : v->inst->op == KIR_end ? KIR_if : KIR_each;
    const char *wanted = kir_op_info(op)->name;

    if (opener == KIR_NONE || v->phase->inst[opener].op != op)
        return bad(v, "the innermost open loop or if is not '%s'", wanted);
    if (v->inst->pair != opener || v->phase->inst[opener].pair != v->place.at)
        return bad(v, "is not paired with its %s, which is %%%u", wanted, opener);
    return FRIT_OK;
}

static frit_status check_nesting(struct verify *v)
{
    uint32_t open = KIR_NONE, depth = 0; /* the innermost loop or if */

    for (uint32_t i = 0; i < v->phase->n; i++) {
        uint32_t op;

        go_to(v, i);
        op = v->inst->op;
        if (op >= KIR_OPS)
            return bad(v, "is not an instruction");
        if (v->inst->level != depth)
            return bad(v, "stands at level %u and says %u", depth, v->inst->level);
        v->scope[i] = open;
        if (kir_closes(op)) {
            TRY(check_pair(v, open));
            open = v->scope[open];
            depth--;
        } else if (kir_opens(op)) {
            if (depth == KIR_MAX_DEPTH)
                return bad(v, "is nested deeper than %u", KIR_MAX_DEPTH);
            open = i;
            depth++;
        } else if (v->inst->pair != KIR_NONE) {
            return bad(v, "has a pair");
        }
    }
    if (open != KIR_NONE) {
        go_to(v, open);
        return bad(v, "is never closed");
    }
    return FRIT_OK;
}

/* ---- operands ---- */

/* Whether `value` may be used at `at`. */
static frit_status check_use(struct verify *v, uint32_t value, uint32_t at)
{
    const struct kir_inst *inst = v->phase->inst;
    uint32_t scope;

    if (value == KIR_NONE)
        return bad(v, "an operand is missing");
    if (value >= at)
        return bad(v, "uses %%%u, which is made later", value);
    if (inst[value].type == KIR_VOID)
        return bad(v, "uses %%%u, which has no value", value);
    /* A counter and an element are made in what they begin, a phi around it. */
    scope = inst[value].op == KIR_for || inst[value].op == KIR_each ? value : v->scope[value];
    if (inst[value].op == KIR_phi)
        scope = v->scope[scope];
    if (scope != KIR_NONE && inst[scope].pair < at)
        return bad(v, "uses %%%u outside of the loop or if where it is made", value);
    return FRIT_OK;
}

static bool letter_allows(const struct verify *v, char letter, uint32_t type)
{
    switch (letter) {
    case 'a':
        return type != KIR_B;
    case 'n':
        return type == KIR_I32 || type == KIR_I64;
    case 'f':
        return type == KIR_F32 || type == KIR_F64;
    case 'b':
        return type == KIR_B;
    case 'l':
        return type == KIR_B || type == KIR_I32 || type == KIR_I64;
    case 'i':
        return type == kir_index_type(v->module);
    case 'v':
        return type == v->inst->type;
    case 'o':
        return type == v->phase->inst[v->inst->a[0]].type;
    default:
        return true;
    }
}

static frit_status check_operands(struct verify *v)
{
    const struct kir_op_info *info = kir_op_info(v->inst->op);
    uint32_t used = v->inst->op == KIR_for || v->inst->op == KIR_next ? 2 : info->n;

    for (uint32_t i = used; i < 3; i++) {
        if (v->inst->a[i] != KIR_NONE)
            return bad(v, "has more than %u operands", info->n);
    }
    for (uint32_t i = 0; i < info->n; i++) {
        uint32_t value = v->inst->a[i];

        TRY(check_use(v, value, v->place.at));
        if (!letter_allows(v, info->operands[i], v->phase->inst[value].type))
            return bad(v, "operand %c, %%%u, may not be of type %s%s", (char)('a' + i), value,
                       kir_type_name(v->phase->inst[value].type),
                       info->operands[i] != 'i' ? ""
                       : v->module->wide        ? " in a wide module"
                                                : " in a module that is not wide");
    }
    return FRIT_OK;
}

static uint32_t type_bits(uint32_t type)
{
    return type == KIR_B ? 1 : type == KIR_I32 || type == KIR_F32 ? 32 : 64;
}

static frit_status check_result(struct verify *v)
{
    const struct kir_op_info *info = kir_op_info(v->inst->op);
    uint32_t first = info->n ? v->phase->inst[v->inst->a[0]].type : KIR_VOID;
    uint32_t type = v->inst->type;
    bool conversion = info->result == KIR_RESULT_TYPE && info->n == 1 &&
                      info->imm == KIR_IMM_NONE && info->operands[0] != 'v';
    bool right = info->result == KIR_RESULT_NONE   ? type == KIR_VOID
                 : info->result == KIR_RESULT_SAME ? type == first
                 : info->result == KIR_RESULT_TYPE ? type == info->type || v->inst->op == KIR_for
                                                   : type > KIR_VOID && type < KIR_TYPES;

    if (!right)
        return bad(v, "the result cannot be of type %s",
                   type < KIR_TYPES ? kir_type_name(type) : "of no name");
    if (conversion && type == first)
        return bad(v, "%%%u is of type %s already", v->inst->a[0], kir_type_name(type));
    if (v->inst->op == KIR_bits && (type_bits(type) != type_bits(first) || type == first))
        return bad(v, "bits of %s cannot be taken as %s", kir_type_name(first),
                   kir_type_name(type));
    return FRIT_OK;
}

/* ---- immediates ---- */

static frit_status check_arg(struct verify *v)
{
    const struct kir_arg *arg;
    uint32_t op = v->inst->op, type;
    bool reads = op == KIR_load || op == KIR_load_if;
    uint32_t access = reads ? KIR_READ : op == KIR_atomic_add ? KIR_READ | KIR_WRITE : KIR_WRITE;

    if (v->inst->imm >= v->module->n_args)
        return bad(v, "there are %u arguments", v->module->n_args);
    arg = &v->module->args[v->inst->imm];
    if ((arg->access & access) != access)
        return bad(v, "argument %u may not be %s", (uint32_t)v->inst->imm,
                   reads                 ? "read"
                   : access == KIR_WRITE ? "written"
                                         : "read and written");
    type = reads ? v->inst->type : v->phase->inst[v->inst->a[1]].type;
    if (type != kir_type_of(arg->dtype))
        return bad(v, "an element of argument %u is not %s", (uint32_t)v->inst->imm,
                   kir_type_name(type));
    if (op == KIR_atomic_add && (arg->dtype == FRIT_F64 || arg->dtype == FRIT_BOOL ||
                                 frit_storage_bytes(arg->dtype, 1) < 4))
        return bad(v, "argument %u has elements that cannot be added to", (uint32_t)v->inst->imm);
    return FRIT_OK;
}

static frit_status check_tile(struct verify *v)
{
    uint32_t type;

    if (v->inst->imm >= v->phase->n_tiles)
        return bad(v, "there are %u tiles", v->phase->n_tiles);
    type = v->inst->op == KIR_tload ? v->inst->type : v->phase->inst[v->inst->a[1]].type;
    if (type != v->phase->tiles[v->inst->imm].type)
        return bad(v, "an element of tile %u is not %s", (uint32_t)v->inst->imm,
                   kir_type_name(type));
    return FRIT_OK;
}

static frit_status check_copy(struct verify *v)
{
    const struct kir_copy copy = kir_copy_of(v->inst->imm);

    if (copy.tile >= v->phase->n_tiles || v->phase->tiles[copy.tile].space != KIR_GROUP)
        return bad(v, "tile %u is none of the group", copy.tile);
    if (copy.arg >= v->module->n_args || !(v->module->args[copy.arg].access & KIR_READ))
        return bad(v, "argument %u may not be read", copy.arg);
    return v->module->args[copy.arg].dtype == v->phase->tiles[copy.tile].dtype
               ? FRIT_OK
               : bad(v, "argument %u and tile %u have other elements", copy.arg, copy.tile);
}

static bool is_power_of_two(uint64_t number)
{
    return number && !(number & (number - 1));
}

static bool narrow_is_right(const struct kir_inst *inst)
{
    int64_t imm = (int64_t)inst->imm;

    return inst->op == KIR_wrap
               ? imm == 8 || imm == -8 || imm == 16 || imm == -16
               : inst->imm < FRIT_DTYPE_LIMIT && kir_is_16_bit_float((uint32_t)inst->imm);
}

/* ---- fragments ---- */

static const struct kir_fragment *find_fragment(const struct verify *v, uint32_t number)
{
    return number < v->phase->n_fragments ? &v->phase->fragments[number] : NULL;
}

static bool is_sum(const struct kir_fragment *fragment)
{
    return fragment && fragment->use == KIR_SUM;
}

/* mfill, each, peer: of an accumulator. */
static frit_status check_sum(struct verify *v)
{
    const struct kir_fragment *fragment =
        v->inst->imm > UINT16_MAX ? NULL : find_fragment(v, (uint32_t)v->inst->imm);
    uint32_t type = v->inst->op == KIR_mfill ? v->phase->inst[v->inst->a[0]].type : v->inst->type;

    if (!is_sum(fragment))
        return bad(v, "fragment %llu is no sum", (unsigned long long)v->inst->imm);
    return type == kir_type_of(fragment->dtype) ? FRIT_OK
                                                : bad(v, "an element of fragment %u is not %s",
                                                      (uint32_t)v->inst->imm, kir_type_name(type));
}

static frit_status check_fragment_tile(struct verify *v, const struct kir_fragment *fragment,
                                       uint32_t number)
{
    const struct kir_tile *tile = number < v->phase->n_tiles ? &v->phase->tiles[number] : NULL;

    if (!tile || tile->space != KIR_GROUP)
        return bad(v, "tile %u is none of the group", number);
    if (tile->dtype != fragment->dtype)
        return bad(v, "tile %u and the fragment have other elements", number);
    return FRIT_OK;
}

static frit_status check_place(struct verify *v)
{
    const struct kir_fragment_place place = kir_fragment_place_of(v->inst->imm);
    const struct kir_fragment *fragment = find_fragment(v, place.fragment);
    const bool stores = v->inst->op == KIR_mstore;
    const struct kir_arg *arg;

    if (!fragment || (stores && !is_sum(fragment)))
        return bad(v, "fragment %u is none%s", place.fragment, stores ? " of sums" : "");
    if (place.in_blocks && (stores || !place.is_tile))
        return bad(v, "blocks are loaded from tiles alone");
    if (place.is_tile)
        return check_fragment_tile(v, fragment, place.place);
    if (place.place >= v->module->n_args)
        return bad(v, "there are %u arguments", v->module->n_args);
    arg = &v->module->args[place.place];
    if (!(arg->access & (stores ? KIR_WRITE : KIR_READ)))
        return bad(v, "argument %u may not be %s", place.place, stores ? "written" : "read");
    if (stores ? kir_type_of(arg->dtype) != kir_type_of(fragment->dtype)
               : arg->dtype != fragment->dtype)
        return bad(v, "argument %u and the fragment have other elements", place.place);
    return FRIT_OK;
}

static frit_status check_product(struct verify *v)
{
    const struct kir_fragment *sum = find_fragment(v, kir_factor(v->inst->imm, 0));
    const struct kir_fragment *left = find_fragment(v, kir_factor(v->inst->imm, 1));
    const struct kir_fragment *right = find_fragment(v, kir_factor(v->inst->imm, 2));

    if (!is_sum(sum) || !left || left->use != KIR_LEFT || !right || right->use != KIR_RIGHT)
        return bad(v, "takes a sum, a left and a right fragment");
    if (sum->rows != left->rows || left->columns != right->rows || right->columns != sum->columns ||
        left->dtype != right->dtype || kir_type_of(left->dtype) != kir_type_of(sum->dtype))
        return bad(v, "the fragments do not fit each other");
    return FRIT_OK;
}

/* Two as large; the second is an accumulator, the first too, or a left one. */
static frit_status check_rows(struct verify *v)
{
    const struct kir_fragment *to = find_fragment(v, kir_factor(v->inst->imm, 0));
    const struct kir_fragment *from = find_fragment(v, kir_factor(v->inst->imm, 1));
    const uint32_t use = v->inst->op == KIR_mnarrow ? KIR_LEFT : KIR_SUM;

    if (v->inst->imm >> 32 || !to || to->use != use || !is_sum(from) || to == from)
        return bad(v, "takes a %s fragment and another one of sums",
                   use == KIR_LEFT ? "left" : "sum");
    return to->rows == from->rows && to->columns == from->columns &&
                   kir_type_of(to->dtype) == kir_type_of(from->dtype)
               ? FRIT_OK
               : bad(v, "the fragments do not fit each other");
}

/* Whether an instruction may stand in an each: what a lane does alone, without control. */
static bool may_be_in_each(const struct kir_inst *inst)
{
    switch (inst->op) {
    case KIR_load:
    case KIR_load_if:
    case KIR_store:
    case KIR_store_if:
    case KIR_row:
    case KIR_column:
    case KIR_peer:
    case KIR_param:
    case KIR_group:
        return true;
    default:
        return inst->op < KIR_load && inst->op != KIR_lane;
    }
}

/* The fragment of the each around it is as large. */
static frit_status check_peer(struct verify *v, uint32_t number)
{
    const struct kir_fragment *own = find_fragment(v, number);
    const struct kir_fragment *peer =
        v->inst->imm > UINT16_MAX ? NULL : find_fragment(v, (uint32_t)v->inst->imm);

    return own && peer && own->rows == peer->rows && own->columns == peer->columns
               ? FRIT_OK
               : bad(v, "the fragments do not fit each other");
}

/* What stands in an each, and that row and column stand nowhere else. */
static frit_status check_in_each(struct verify *v)
{
    const uint32_t op = v->inst->op, scope = v->scope[v->place.at];
    const bool inside = scope != KIR_NONE && v->phase->inst[scope].op == KIR_each;

    if (inside && op != KIR_done && !may_be_in_each(v->inst))
        return bad(v, "may not stand in an each");
    if (!inside)
        return op != KIR_row && op != KIR_column && op != KIR_peer
                   ? FRIT_OK
                   : bad(v, "stands outside of an each");
    return op == KIR_peer ? check_peer(v, (uint32_t)v->phase->inst[scope].imm) : FRIT_OK;
}

static frit_status check_imm(struct verify *v)
{
    const struct kir_inst *inst = v->inst;
    bool right = false;

    switch (kir_op_info(inst->op)->imm) {
    case KIR_IMM_FRAGMENT:
        return check_sum(v);
    case KIR_IMM_PLACE:
        return check_place(v);
    case KIR_IMM_PRODUCT:
        return check_product(v);
    case KIR_IMM_PAIR:
        return check_rows(v);
    case KIR_IMM_ARG:
        return check_arg(v);
    case KIR_IMM_COPY:
        return check_copy(v);
    case KIR_IMM_TILE:
        return check_tile(v);
    case KIR_IMM_NONE:
        right = inst->imm == 0;
        break;
    case KIR_IMM_BITS:
        right = type_bits(inst->type) == 64 || inst->imm >> type_bits(inst->type) == 0;
        break;
    case KIR_IMM_NUMBER:
        right = inst->op == KIR_phi ||
                inst->imm < (inst->op == KIR_twait || inst->op == KIR_mwait ? KIR_MAX_BATCHES
                                                                            : v->module->n_params);
        break;
    case KIR_IMM_DIM:
        right = inst->imm < (v->module->spaces ? 1u : 3u);
        break;
    case KIR_IMM_NARROW:
        right = narrow_is_right(inst);
        break;
    case KIR_IMM_LANES:
        right = inst->imm > 0 && inst->imm < v->phase->lanes &&
                (inst->op == KIR_shift || is_power_of_two(inst->imm));
        break;
    case KIR_IMM_LOOP:
        right = inst->imm > 0 && inst->imm <= (inst->type == KIR_I32 ? INT32_MAX : UINT32_MAX);
        break;
    }
    return right ? FRIT_OK : bad(v, "the immediate cannot be %lld", (long long)inst->imm);
}

/* ---- control ---- */

static frit_status check_links(struct verify *v, uint32_t count)
{
    const struct kir_inst *inst = v->inst;

    if (inst->a[1] != count || (uint64_t)inst->a[0] + inst->a[1] > v->module->n_links)
        return bad(v, "takes %u values and has %u", count, inst->a[1]);
    for (uint32_t i = 0; i < count; i++)
        TRY(check_use(v, v->module->links[inst->a[0] + i], v->place.at));
    return FRIT_OK;
}

static frit_status check_for(struct verify *v)
{
    TRY(check_links(v, 2));
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t value = v->module->links[v->inst->a[0] + i];

        if (v->phase->inst[value].type != v->inst->type || !letter_allows(v, 'n', v->inst->type))
            return bad(v, "begin, end and counter are of one integer type");
    }
    return FRIT_OK;
}

static frit_status check_phi(struct verify *v)
{
    uint32_t loop = v->scope[v->place.at];

    if (loop == KIR_NONE || v->phase->inst[loop].op != KIR_for ||
        v->place.at - loop - 1 != v->inst->imm || (v->inst->imm && v->inst[-1].op != KIR_phi))
        return bad(v, "phis stand right after their loop, numbered from 0");
    if (v->inst->type != v->phase->inst[v->inst->a[0]].type)
        return bad(v, "the first value, %%%u, is of another type", v->inst->a[0]);
    return check_use(v, v->inst->a[0], loop);
}

static frit_status check_next(struct verify *v)
{
    uint32_t first = v->inst->pair + 1, n = 0;

    while (v->phase->inst[first + n].op == KIR_phi)
        n++;
    TRY(check_links(v, n));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t value = v->module->links[v->inst->a[0] + i];

        if (v->phase->inst[value].type != v->phase->inst[first + i].type)
            return bad(v, "%%%u is of another type than its phi, %%%u", value, first + i);
    }
    return FRIT_OK;
}

static frit_status check_inst(struct verify *v)
{
    TRY(check_in_each(v));
    TRY(check_operands(v));
    TRY(check_result(v));
    TRY(check_imm(v));
    if (v->inst->op == KIR_for)
        return check_for(v);
    if (v->inst->op == KIR_phi)
        return check_phi(v);
    if (v->inst->op == KIR_done &&
        v->phase->inst[v->inst->a[0]].type != v->phase->inst[v->inst->pair].type)
        return bad(v, "the element is of another type");
    return v->inst->op == KIR_next ? check_next(v) : FRIT_OK;
}

/* ---- what is uniform ---- */

static frit_status check_uniform_values(struct verify *v, const struct facts *facts)
{
    for (uint32_t i = 0; i < v->phase->n; i++) {
        const uint32_t *values;
        uint32_t n;

        go_to(v, i);
        n = v->inst->op == KIR_for ? 2 : v->inst->op == KIR_if;
        values = n == 2 ? v->module->links + v->inst->a[0] : v->inst->a;
        for (uint32_t k = 0; k < n; k++) {
            if (facts->of[values[k]].kind != FACT_UNIFORM)
                return bad(v, "%%%u is not uniform", values[k]);
        }
    }
    return FRIT_OK;
}

/* Values that a team takes, and those from outside of an each, are the same in all of its lanes. */
static frit_status check_team_values(struct verify *v, const struct facts *facts)
{
    uint32_t each = KIR_NONE;

    for (uint32_t i = 0; i < v->phase->n; i++) {
        const uint32_t op = v->phase->inst[i].op;
        const bool takes = op == KIR_mfill || op == KIR_mload || op == KIR_mstore;

        go_to(v, i);
        for (uint32_t k = 0; (takes || each != KIR_NONE) && k < kir_op_info(op)->n; k++) {
            const uint32_t value = v->inst->a[k];

            if ((each == KIR_NONE || value < each) && facts->of[value].same < v->phase->team)
                return bad(v, "%%%u is not the same in all lanes of a team", value);
        }
        each = op == KIR_each ? i : op == KIR_done ? KIR_NONE : each;
    }
    return FRIT_OK;
}

static frit_status check_uniform(struct verify *v)
{
    struct facts facts;
    frit_status st;

    TRY(facts_init(&facts, v->module, v->place.phase, v->err));
    st = check_uniform_values(v, &facts);
    if (!st && v->phase->n_fragments)
        st = check_team_values(v, &facts);
    facts_fini(&facts);
    return st;
}

/* ---- the module ---- */

static bool is_sum_dtype(uint32_t dtype)
{
    return dtype == FRIT_F32 || dtype == FRIT_F64 || dtype == FRIT_I32;
}

static frit_status check_fragments(struct verify *v)
{
    const struct kir_phase *phase = v->phase;

    if (phase->n_fragments ? !is_power_of_two(phase->team) || phase->team > phase->lanes
                           : phase->team)
        return bad(v, "a team of %u lanes", phase->team);
    if (phase->n_fragments > UINT16_MAX)
        return bad(v, "%u fragments", phase->n_fragments);
    for (uint32_t i = 0; i < phase->n_fragments; i++) {
        const struct kir_fragment *f = &phase->fragments[i];

        if (f->use > KIR_SUM || kir_type_of(f->dtype) <= KIR_B || !f->rows || !f->columns ||
            f->rows > KIR_MAX_SIDE || f->columns > KIR_MAX_SIDE ||
            (f->use == KIR_SUM && !is_sum_dtype(f->dtype)))
            return bad(v, "fragment %u is of no use, of no such dtype, or of no such size", i);
    }
    return FRIT_OK;
}

/* Whether memory has elements of the dtype as the type's values, or as halves of them. */
static bool is_tile_dtype(const struct kir_tile *tile)
{
    if (tile->dtype >= FRIT_DTYPE_LIMIT || kir_type_of(tile->dtype) != tile->type)
        return false;
    return kir_is_16_bit_float(tile->dtype)
               ? tile->space == KIR_GROUP
               : frit_storage_bytes(tile->dtype, 1) == type_bits(tile->type) / 8;
}

static frit_status check_phase_head(struct verify *v)
{
    if (!is_power_of_two(v->phase->lanes) || v->phase->lanes > KIR_MAX_LANES)
        return bad(v, "%u lanes are not a power of two up to %u", v->phase->lanes, KIR_MAX_LANES);
    if (v->phase->per_thread && !is_power_of_two(v->phase->per_thread))
        return bad(v, "%u lanes of a thread are not a power of two", v->phase->per_thread);
    for (uint32_t i = 0; i < v->phase->n_tiles; i++) {
        const struct kir_tile *tile = &v->phase->tiles[i];

        if (tile->space > KIR_GROUP || tile->type <= KIR_B || tile->type >= KIR_TYPES ||
            !is_tile_dtype(tile) || !tile->count)
            return bad(v, "tile %u is of no space, of no type, or empty", i);
    }
    return check_fragments(v);
}

static frit_status check_phase(struct verify *v)
{
    frit_status st;

    TRY(check_phase_head(v));
    v->scope = malloc(((size_t)v->phase->n + 1) * sizeof(*v->scope));
    if (!v->scope)
        return fail_memory(v->err, ((size_t)v->phase->n + 1) * sizeof(*v->scope));
    st = check_nesting(v);
    for (uint32_t i = 0; !st && i < v->phase->n; i++) {
        go_to(v, i);
        st = check_inst(v);
    }
    if (!st)
        st = check_uniform(v);
    free(v->scope);
    return st;
}

static bool is_word(const char *name)
{
    size_t length = strlen(name);

    return length > 0 && length <= KIR_MAX_NAME &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+") ==
               length;
}

static frit_status check_module(struct verify *v)
{
    const struct kir_module *module = v->module;

    if (module->failed)
        return fail_memory(v->err, sizeof(struct kir_inst));
    if (!is_word(module->name))
        return bad(v, "the name is not a word of letters, digits and _ . - +");
    if (module->n_phases < 1 || module->n_phases > KIR_PHASES)
        return bad(v, "%u phases; there may be 1 to %u", module->n_phases, KIR_PHASES);
    for (uint32_t i = 0; i < module->n_args; i++) {
        const struct kir_arg *arg = &module->args[i];

        if (kir_type_of(arg->dtype) == KIR_VOID || !arg->access ||
            arg->access > (KIR_READ | KIR_WRITE))
            return bad(v, "argument %u has no dtype that is loaded, or no access", i);
    }
    if (module->spaces && module->n_phases > 1)
        return bad(v, "several phases over several spaces");
    for (uint32_t i = 0; i < module->n_phases; i++) {
        v->place = (struct kir_place){i, KIR_NONE};
        v->phase = &module->phases[i];
        TRY(check_phase(v));
    }
    return FRIT_OK;
}

frit_status kir_verify(const struct kir_module *module, struct kir_place *place, frit_err *err)
{
    struct verify v = {.module = module, .place = {KIR_NONE, KIR_NONE}, .err = err};
    frit_status st = check_module(&v);

    if (st && place)
        *place = v.place;
    return st;
}
