/* SPDX-License-Identifier: Apache-2.0 */
/* Facts by rounds over a phase until nothing changes.  A phi starts as its first value is and is
 * joined with what `next` gives it; a fact only ever gets weaker, so that rounds end.
 *
 * A conversion to I64 keeps a stride only where the I32 value cannot have wrapped: for that, values
 * made of the lane and constants have the range that they are in. */
#include "ir/facts.h"

#include <stdlib.h>

#include "base/fail.h"

enum { UNKNOWN = FACT_VARYING + 1 }; /* before the first round */

struct known {
    uint32_t kind;
    bool bounded; /* of integers: always in least .. most, as signed */
    int64_t stride;
    int64_t least, most;
    uint32_t same, run;
    int64_t run_stride;
};

struct walk {
    const struct kir_module *module;
    const struct kir_phase *phase;
    const struct kir_inst *inst;
    struct known *of;
};

typedef struct known (*rule_fn)(const struct walk *w);

static const struct known varying = {.kind = FACT_VARYING};
static const struct known uniform = {.kind = FACT_UNIFORM};

/* ---- making ---- */

static int64_t wrapped(int64_t value, uint32_t type)
{
    return type == KIR_I32 ? (int64_t)(int32_t)(uint32_t)value : value;
}

static struct known linear(uint32_t type, int64_t stride)
{
    stride = wrapped(stride, type);
    return (struct known){.kind = stride ? FACT_LINEAR : FACT_UNIFORM, .stride = stride};
}

/* `fact` with a range, if that lies within the type. */
static struct known within(struct known fact, uint32_t type, int64_t least, int64_t most)
{
    if (wrapped(least, type) != least || wrapped(most, type) != most)
        return fact;
    fact.bounded = true;
    fact.least = least;
    fact.most = most;
    return fact;
}

static bool is_integer(uint32_t type)
{
    return type == KIR_I32 || type == KIR_I64;
}

static const struct known *operand(const struct walk *w, uint32_t i)
{
    return &w->of[w->inst->a[i]];
}

/* ---- rules ---- */

/* All operands are uniform, or nothing is known. */
static struct known rule_same(const struct walk *w)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (w->inst->a[i] != KIR_NONE && operand(w, i)->kind != FACT_UNIFORM)
            return varying;
    }
    return uniform;
}

static struct known rule_uniform(const struct walk *w)
{
    (void)w;
    return uniform;
}

static struct known rule_const(const struct walk *w)
{
    int64_t value = wrapped((int64_t)w->inst->imm, w->inst->type);

    return is_integer(w->inst->type) ? within(uniform, w->inst->type, value, value) : uniform;
}

static struct known rule_lane(const struct walk *w)
{
    return within(linear(KIR_I32, w->phase->lanes > 1), KIR_I32, 0, (int64_t)w->phase->lanes - 1);
}

static struct known rule_add(const struct walk *w)
{
    const struct known *a = operand(w, 0), *b = operand(w, 1);
    struct known sum;
    int64_t stride, least, most;

    if (!is_integer(w->inst->type) || a->kind == FACT_VARYING || b->kind == FACT_VARYING)
        return rule_same(w);
    stride = (int64_t)((uint64_t)a->stride + (uint64_t)b->stride);
    sum = linear(w->inst->type, stride);
    if (a->bounded && b->bounded && !__builtin_add_overflow(a->least, b->least, &least) &&
        !__builtin_add_overflow(a->most, b->most, &most))
        sum = within(sum, w->inst->type, least, most);
    return sum;
}

static struct known rule_sub(const struct walk *w)
{
    const struct known *a = operand(w, 0), *b = operand(w, 1);
    struct known difference;
    int64_t stride, least, most;

    if (!is_integer(w->inst->type) || a->kind == FACT_VARYING || b->kind == FACT_VARYING)
        return rule_same(w);
    stride = (int64_t)((uint64_t)a->stride - (uint64_t)b->stride);
    difference = linear(w->inst->type, stride);
    if (a->bounded && b->bounded && !__builtin_sub_overflow(a->least, b->most, &least) &&
        !__builtin_sub_overflow(a->most, b->least, &most))
        difference = within(difference, w->inst->type, least, most);
    return difference;
}

/* a times a number. */
static struct known scaled(const struct walk *w, const struct known *a, int64_t by)
{
    struct known product;
    int64_t x, y;

    if (a->kind == FACT_VARYING)
        return varying;
    product = linear(w->inst->type, (int64_t)((uint64_t)a->stride * (uint64_t)by));
    if (a->bounded && !__builtin_mul_overflow(a->least, by, &x) &&
        !__builtin_mul_overflow(a->most, by, &y))
        product = within(product, w->inst->type, x < y ? x : y, x < y ? y : x);
    return product;
}

static bool is_number(const struct known *fact)
{
    return fact->bounded && fact->least == fact->most;
}

static struct known rule_mul(const struct walk *w)
{
    const struct known *a = operand(w, 0), *b = operand(w, 1);

    if (is_integer(w->inst->type) && is_number(b))
        return scaled(w, a, b->least);
    if (is_integer(w->inst->type) && is_number(a))
        return scaled(w, b, a->least);
    return rule_same(w);
}

static struct known rule_shl(const struct walk *w)
{
    const struct known *b = operand(w, 1);

    if (is_number(b) && b->least >= 0 && b->least < (w->inst->type == KIR_I32 ? 32 : 63))
        return scaled(w, operand(w, 0), (int64_t)1 << b->least);
    return rule_same(w);
}

static struct known rule_neg(const struct walk *w)
{
    return is_integer(w->inst->type) ? scaled(w, operand(w, 0), -1) : rule_same(w);
}

static bool same(const struct known *a, const struct known *b)
{
    return a->kind == b->kind && a->stride == b->stride && a->bounded == b->bounded &&
           a->least == b->least && a->most == b->most && a->same == b->same && a->run == b->run &&
           a->run_stride == b->run_stride;
}

/* What holds for one of two values, the same one in all lanes. */
static struct known either(const struct known *a, const struct known *b)
{
    if (same(a, b))
        return *a;
    if (a->kind != b->kind || a->stride != b->stride)
        return varying;
    return (struct known){.kind = a->kind, .stride = a->stride};
}

static struct known rule_select(const struct walk *w)
{
    return operand(w, 2)->kind == FACT_UNIFORM ? either(operand(w, 0), operand(w, 1)) : varying;
}

/* Between integers: to I32 the low bits, to I64 the same number where the range says so. */
static struct known rule_convert(const struct walk *w)
{
    const struct known *a = operand(w, 0);
    bool kept = a->bounded && (w->inst->op != KIR_u64 || a->least >= 0);
    struct known out;

    if (!is_integer(w->phase->inst[w->inst->a[0]].type) || a->kind == FACT_VARYING)
        return rule_same(w);
    if (a->kind == FACT_LINEAR && w->inst->op != KIR_i32 && !kept)
        return varying;
    out = linear(w->inst->type, a->stride);
    return kept ? within(out, w->inst->type, a->least, a->most) : out;
}

static struct known rule_tload(const struct walk *w)
{
    return w->phase->tiles[w->inst->imm].space == KIR_GROUP ? rule_same(w) : varying;
}

/* Which lane has which element is not said. */
static struct known rule_element(const struct walk *w)
{
    (void)w;
    return varying;
}

/* A phi's first value, and what the end of its loop gives it as far as that is known by now. */
static struct known rule_phi(const struct walk *w)
{
    uint32_t at = (uint32_t)(w->inst - w->phase->inst), loop = at - 1 - (uint32_t)w->inst->imm;
    const struct kir_inst *next = &w->phase->inst[w->phase->inst[loop].pair];
    const struct known *value = &w->of[w->module->links[next->a[0] + w->inst->imm]];

    return value->kind == UNKNOWN ? *operand(w, 0) : either(operand(w, 0), value);
}

/* ---- runs of lanes ---- */

static bool commutes(uint32_t op)
{
    return op == KIR_add || op == KIR_mul || op == KIR_and || op == KIR_or || op == KIR_xor ||
           op == KIR_smin || op == KIR_smax || op == KIR_umin || op == KIR_umax || op == KIR_fmin ||
           op == KIR_fmax;
}

/* Whether operand `b` is what lanes get that exchange operand `a` with the neighbouring run. */
static bool trades(const struct walk *w, uint32_t a, uint32_t b)
{
    const struct kir_inst *other = &w->phase->inst[w->inst->a[b]];

    return other->op == KIR_exchange && other->a[0] == w->inst->a[a] &&
           other->imm == w->of[other->a[0]].same;
}

static uint32_t least_same(const struct walk *w)
{
    uint32_t least = w->phase->lanes;

    for (uint32_t i = 0; i < kir_op_info(w->inst->op)->n; i++)
        if (w->inst->a[i] != KIR_NONE && operand(w, i)->same < least)
            least = operand(w, i)->same;
    return least;
}

static uint32_t phi_same(const struct walk *w)
{
    uint32_t at = (uint32_t)(w->inst - w->phase->inst), loop = at - 1 - (uint32_t)w->inst->imm;
    const struct kir_inst *next = &w->phase->inst[w->phase->inst[loop].pair];
    uint32_t first = operand(w, 0)->same;
    uint32_t value = w->of[w->module->links[next->a[0] + w->inst->imm]].same;

    return value < first ? value : first;
}

/* Whether it is the number of the lane. */
static bool is_lane(const struct walk *w, const struct known *fact)
{
    return fact->kind == FACT_LINEAR && fact->stride == 1 && fact->bounded && fact->least == 0 &&
           fact->most == (int64_t)w->phase->lanes - 1;
}

/* The high bits of the lane. */
static uint32_t shr_same(const struct walk *w)
{
    const struct known *by = operand(w, 1);
    uint32_t same = 1;

    if (!is_lane(w, operand(w, 0)) || !is_number(by) || by->least < 0 || by->least > 30)
        return least_same(w);
    while (same < w->phase->lanes && same < 1u << by->least)
        same *= 2;
    return same;
}

static uint32_t same_of(const struct walk *w, uint32_t kind)
{
    if (kind == FACT_UNIFORM)
        return w->phase->lanes;
    switch (w->inst->op) {
    case KIR_lane:
    case KIR_shift:
    case KIR_each:
    case KIR_peer:
    case KIR_row:
    case KIR_column:
        return 1;
    case KIR_shr:
        return shr_same(w);
    case KIR_phi:
        return phi_same(w);
    case KIR_tload:
        return w->phase->tiles[w->inst->imm].space == KIR_GROUP ? least_same(w) : 1;
    default:
        if (commutes(w->inst->op) && (trades(w, 0, 1) || trades(w, 1, 0)))
            return 2 * least_same(w);
        return least_same(w);
    }
}

/* ---- runs of neighbours ---- */

/* The low bits of the lane. */
static uint32_t and_run(const struct walk *w)
{
    const struct known *bits = operand(w, 1);
    uint32_t run = 1;

    if (!is_lane(w, operand(w, 0)) || !is_number(bits) || bits->least < 0)
        return 0;
    while (run < w->phase->lanes && bits->least & run)
        run *= 2;
    return bits->least == (int64_t)run - 1 ? run : 0;
}

/* Of a sum of integers. */
static void add_run(const struct walk *w, struct known *fact)
{
    const struct known *a = operand(w, 0), *b = operand(w, 1);
    uint32_t run = a->run < b->run ? a->run : b->run;
    uint64_t stride = (uint64_t)a->run_stride + (uint64_t)b->run_stride;

    if (run <= fact->same)
        return;
    fact->run = run;
    fact->run_stride = wrapped((int64_t)stride, w->inst->type);
}

/* Sets run and run_stride of the fact of the instruction. */
static void set_run(const struct walk *w, struct known *fact)
{
    uint32_t run;

    fact->run = fact->same;
    fact->run_stride = 0;
    if (fact->kind != FACT_VARYING) {
        fact->run = w->phase->lanes;
        fact->run_stride = fact->kind == FACT_LINEAR ? fact->stride : 0;
    } else if (w->inst->op == KIR_and && is_integer(w->inst->type)) {
        run = and_run(w);
        fact->run = run ? run : fact->same;
        fact->run_stride = run > 1;
    } else if (w->inst->op == KIR_add && is_integer(w->inst->type)) {
        add_run(w, fact);
    }
}

/* What has no rule here is rule_same. */
static const rule_fn rules[KIR_OPS] = {
    [KIR_const] = rule_const,    [KIR_lane] = rule_lane,     [KIR_add] = rule_add,
    [KIR_sub] = rule_sub,        [KIR_mul] = rule_mul,       [KIR_shl] = rule_shl,
    [KIR_neg] = rule_neg,        [KIR_select] = rule_select, [KIR_i32] = rule_convert,
    [KIR_i64] = rule_convert,    [KIR_u64] = rule_convert,   [KIR_tload] = rule_tload,
    [KIR_first] = rule_uniform,  [KIR_for] = rule_uniform,   [KIR_phi] = rule_phi,
    [KIR_peer] = rule_element,   [KIR_each] = rule_element,  [KIR_row] = rule_element,
    [KIR_column] = rule_element,
};

/* ---- rounds ---- */

static bool walk_round(struct walk *w)
{
    bool changed = false;

    for (uint32_t i = 0; i < w->phase->n; i++) {
        struct known fact = uniform;

        w->inst = &w->phase->inst[i];
        if (w->inst->type != KIR_VOID)
            fact = rules[w->inst->op] ? rules[w->inst->op](w) : rule_same(w);
        fact.same = same_of(w, fact.kind);
        if (w->inst->type != KIR_VOID)
            set_run(w, &fact);
        changed |= !same(&fact, &w->of[i]);
        w->of[i] = fact;
    }
    return changed;
}

frit_status facts_init(struct facts *out, const struct kir_module *module, uint32_t phase,
                       frit_err *err)
{
    struct walk w = {.module = module, .phase = &module->phases[phase]};
    uint32_t n = w.phase->n;

    *out = (struct facts){.n = n, .of = calloc((size_t)n + 1, sizeof(*out->of))};
    w.of = malloc(((size_t)n + 1) * sizeof(*w.of));
    if (!out->of || !w.of) {
        free(w.of);
        facts_fini(out);
        return fail_memory(err, ((size_t)n + 1) * sizeof(*w.of));
    }
    for (uint32_t i = 0; i < n; i++)
        w.of[i] = (struct known){.kind = UNKNOWN, .same = w.phase->lanes, .run = w.phase->lanes};
    while (walk_round(&w))
        ;
    for (uint32_t i = 0; i < n; i++)
        out->of[i] = (struct fact){w.of[i].kind, w.of[i].stride, w.of[i].same, w.of[i].run,
                                   w.of[i].run_stride};
    free(w.of);
    return FRIT_OK;
}

void facts_fini(struct facts *facts)
{
    free(facts->of);
    *facts = (struct facts){0};
}

/* ---- divisions ---- */

static bool is_division(uint32_t op)
{
    return op == KIR_sdiv || op == KIR_udiv || op == KIR_srem || op == KIR_urem || op == KIR_mulhi;
}

static uint32_t divisions_of(const struct kir_phase *phase)
{
    uint32_t depth = 0, deepest = 0, count = 0;

    for (uint32_t i = 0; i < phase->n; i++) {
        uint32_t op = phase->inst[i].op;

        depth += op == KIR_for;
        depth -= op == KIR_next;
        if (depth > deepest) {
            deepest = depth;
            count = 0;
        }
        count += depth == deepest && is_division(op);
    }
    return count;
}

uint32_t facts_divisions(const struct kir_module *module)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < module->n_phases; i++)
        count += divisions_of(&module->phases[i]);
    return count;
}
