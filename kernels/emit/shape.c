/* SPDX-License-Identifier: Apache-2.0 */
/* How lanes become threads, and where a thread's neighbouring lanes make one access.
 *
 * One access has up to 16 bytes and is aligned to its size.  That the lanes are neighbours in
 * memory is a fact (stride 1); that the first of them is aligned is found here: powers of two are
 * followed from constants, so that an offset shows that it is a multiple of four by being made as
 * `x * 4`.  Tiles of the group are always aligned.  Where no access of a phase has neighbours,
 * threads take lanes apart from each other: then neighbouring threads read neighbouring elements.
 */
#include "emit/shape.h"

#include "base/fail.h"

enum { EVEN_MAX = 1 << 16, PER_THREAD_MAX = 8, PER_THREAD_USUAL = 4, ACCESS_BYTES = 16 };

enum even_rule {
    EVEN_NO,
    EVEN_CONST,
    EVEN_ZERO,
    EVEN_LEAST,
    EVEN_TIMES,
    EVEN_SHIFT,
    EVEN_ANY,
    EVEN_A,
    EVEN_LOOP,
    EVEN_PHI
};

/* Of values in the first lane of a chunk: the lane is 0, or a multiple of what a chunk has. */
static const uint8_t rules[KIR_OPS] = {
    [KIR_const] = EVEN_CONST,  [KIR_lane] = EVEN_ZERO,  [KIR_add] = EVEN_LEAST,
    [KIR_sub] = EVEN_LEAST,    [KIR_or] = EVEN_LEAST,   [KIR_xor] = EVEN_LEAST,
    [KIR_srem] = EVEN_LEAST,   [KIR_urem] = EVEN_LEAST, [KIR_smin] = EVEN_LEAST,
    [KIR_smax] = EVEN_LEAST,   [KIR_umin] = EVEN_LEAST, [KIR_umax] = EVEN_LEAST,
    [KIR_select] = EVEN_LEAST, [KIR_mul] = EVEN_TIMES,  [KIR_shl] = EVEN_SHIFT,
    [KIR_and] = EVEN_ANY,      [KIR_neg] = EVEN_A,      [KIR_i32] = EVEN_A,
    [KIR_i64] = EVEN_A,        [KIR_u64] = EVEN_A,      [KIR_first] = EVEN_A,
    [KIR_for] = EVEN_LOOP,     [KIR_phi] = EVEN_PHI,
};

static uint32_t capped(uint64_t even)
{
    return even && even < EVEN_MAX ? (uint32_t)even : EVEN_MAX;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t even_of(const struct shape *s, uint32_t at)
{
    const struct kir_inst *inst = &s->phase->inst[at], *b, *next;
    const uint32_t *even = s->even, *links = s->module->links;

    switch ((enum even_rule)rules[inst->op]) {
    case EVEN_CONST:
        return capped(inst->imm & (0 - inst->imm));
    case EVEN_ZERO:
        return EVEN_MAX;
    case EVEN_LEAST:
        return least(even[inst->a[0]], even[inst->a[1]]);
    case EVEN_TIMES:
        return capped((uint64_t)even[inst->a[0]] * even[inst->a[1]]);
    case EVEN_SHIFT:
        b = &s->phase->inst[inst->a[1]];
        return b->op == KIR_const && b->imm < 32 ? capped((uint64_t)even[inst->a[0]] << b->imm) : 1;
    case EVEN_ANY:
        return even[inst->a[0]] > even[inst->a[1]] ? even[inst->a[0]] : even[inst->a[1]];
    case EVEN_A:
        return even[inst->a[0]];
    case EVEN_LOOP:
        return least(even[links[inst->a[0]]], capped(inst->imm & (0 - inst->imm)));
    case EVEN_PHI:
        next = &s->phase->inst[s->phase->inst[at - 1 - (uint32_t)inst->imm].pair];
        return least(even[inst->a[0]], even[links[next->a[0] + inst->imm]]);
    case EVEN_NO:
        break;
    }
    return 1;
}

/* Everything is even until something says otherwise: what then stays is true by induction over
 * rounds of loops. */
static void find_even(struct shape *s)
{
    bool changed = true;

    for (uint32_t i = 0; i < s->phase->n; i++)
        s->even[i] = EVEN_MAX;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < s->phase->n; i++) {
            uint32_t even = even_of(s, i);

            changed |= even != s->even[i];
            s->even[i] = even;
        }
    }
}

static bool is_access(const struct kir_inst *inst)
{
    return inst->op == KIR_load || inst->op == KIR_load_if || inst->op == KIR_store ||
           inst->op == KIR_store_if;
}

static uint32_t bytes_of(const struct shape *s, uint32_t arg)
{
    return (uint32_t)frit_storage_bytes(s->module->args[arg].dtype, 1);
}

/* Of memory that is aligned. */
static uint32_t chunk_of(const struct shape *s, uint32_t bytes, uint32_t offset)
{
    const struct fact *fact = &s->facts->of[offset];
    uint32_t n;

    if (fact->run_stride != 1)
        return 1;
    n = least(least(s->per_thread, s->even[offset]), ACCESS_BYTES / bytes);
    n = least(n, fact->run);
    return n * bytes < 4 ? 1 : n;
}

uint32_t shape_chunk(const struct shape *s, uint32_t arg, uint32_t offset)
{
    return s->aligned && !s->striped ? chunk_of(s, bytes_of(s, arg), offset) : 1;
}

uint32_t shape_tile_chunk(const struct shape *s, uint32_t tile, uint32_t offset)
{
    return s->striped ? 1 : chunk_of(s, kir_tile_bytes(&s->phase->tiles[tile]), offset);
}

uint32_t shape_run(const struct shape *s, uint32_t value)
{
    uint32_t same = s->facts->of[value].same;

    if (s->striped && same < s->phase->lanes)
        return 1;
    return least(same, s->per_thread);
}

bool shape_has_chunks(const struct shape *s)
{
    for (uint32_t i = 0; i < s->phase->n; i++) {
        const struct kir_inst *inst = &s->phase->inst[i];

        if (is_access(inst) && chunk_of(s, bytes_of(s, (uint32_t)inst->imm), inst->a[0]) > 1)
            return true;
    }
    return false;
}

/* Whether a phase loads neighbours from tiles of the group more often than it accesses arguments:
 * then those accesses decide. */
static bool has_tile_chunks(const struct shape *s)
{
    uint32_t wide = 0, others = 0;

    for (uint32_t i = 0; i < s->phase->n; i++) {
        const struct kir_inst *inst = &s->phase->inst[i];

        others += is_access(inst);
        wide += inst->op == KIR_tload && s->phase->tiles[inst->imm].space == KIR_GROUP &&
                chunk_of(s, kir_tile_bytes(&s->phase->tiles[inst->imm]), inst->a[0]) > 1;
    }
    return wide > others;
}

/* The offset of a load from a tile of the group, as a sum: *base, and a constant. */
static bool tile_offset(const struct shape *s, uint32_t at, uint32_t *base, uint64_t *n)
{
    const struct kir_inst *inst = &s->phase->inst[at], *sum;

    if (inst->op != KIR_tload || s->phase->tiles[inst->imm].space != KIR_GROUP)
        return false;
    sum = &s->phase->inst[inst->a[0]];
    if (sum->op != KIR_add || s->phase->inst[sum->a[1]].op != KIR_const)
        return false;
    *base = sum->a[0];
    *n = s->phase->inst[sum->a[1]].imm;
    return true;
}

uint32_t shape_tile_together(const struct shape *s, uint32_t at, uint32_t *first)
{
    const struct kir_inst *inst = &s->phase->inst[at];
    uint32_t base, other, n;
    uint64_t number, next;

    if (!tile_offset(s, at, &base, &number) || shape_run(s, inst->a[0]) < s->per_thread)
        return 1;
    n = ACCESS_BYTES / kir_tile_bytes(&s->phase->tiles[inst->imm]);
    if (number % n > at || s->even[base] < n)
        return 1;
    *first = at - (uint32_t)(number % n);
    for (uint32_t i = 0; i < n; i++)
        if (*first + i >= s->phase->n || s->phase->inst[*first + i].imm != inst->imm ||
            !tile_offset(s, *first + i, &other, &next) || other != base ||
            next != number - number % n + i)
            return 1;
    return n;
}

/* Whether lanes next to each other access elements at one distance. */
static bool has_neighbours(const struct fact *offset)
{
    return offset->run_stride != 0;
}

/* Lanes of a thread: 16 bytes of the widest type that neighbours have. */
static uint32_t choose_per_thread(const struct shape *s, const struct shape_target *target)
{
    uint32_t widest = 0, per_thread, lanes = s->phase->lanes;

    for (uint32_t i = 0; i < s->phase->n; i++) {
        const struct kir_inst *inst = &s->phase->inst[i];

        if (is_access(inst) && has_neighbours(&s->facts->of[inst->a[0]]) &&
            bytes_of(s, (uint32_t)inst->imm) > widest)
            widest = bytes_of(s, (uint32_t)inst->imm);
    }
    per_thread = widest ? least(ACCESS_BYTES / widest, PER_THREAD_MAX) : PER_THREAD_USUAL;
    if (s->phase->per_thread)
        per_thread = s->phase->per_thread;
    while (per_thread > 1 && lanes / per_thread < target->least_threads)
        per_thread /= 2;
    while (lanes / per_thread > target->max_threads)
        per_thread *= 2;
    return per_thread;
}

/* A team of lanes is one of threads. */
static frit_status share_team(struct shape *s, const struct shape_target *target, frit_err *err)
{
    const uint32_t team = s->phase->team;

    if (!target->team || team < target->team || team / target->team > PER_THREAD_MAX ||
        (uint64_t)s->phase->lanes * target->team > (uint64_t)target->max_threads * team)
        return fail(err, FRIT_UNSUPPORTED, "kernel %s: %u lanes in teams of %u, among %u threads",
                    s->module->name, s->phase->lanes, team, target->max_threads);
    s->per_thread = team / target->team;
    return FRIT_OK;
}

frit_status shape_init(struct shape *s, const struct kir_module *module, uint32_t phase,
                       const struct facts *facts, const struct shape_target *target,
                       struct arena *arena, frit_err *err)
{
    *s = (struct shape){.aligned = target->aligned,
                        .module = module,
                        .phase = &module->phases[phase],
                        .facts = facts};
    s->even = arena_array(arena, (size_t)s->phase->n + 1, sizeof(*s->even));
    if (!s->even)
        return fail_memory(err, (size_t)s->phase->n * sizeof(*s->even));
    find_even(s);
    if (s->phase->team)
        TRY(share_team(s, target, err));
    else
        s->per_thread = choose_per_thread(s, target);
    s->threads = s->phase->lanes / s->per_thread;
    s->striped = s->per_thread > 1 && !s->phase->team && !s->phase->per_thread &&
                 !has_tile_chunks(s) && !(s->aligned && shape_has_chunks(s));
    return FRIT_OK;
}
