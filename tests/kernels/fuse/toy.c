/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/fuse/toy.h"

#include <sched.h>

#include "base/fail.h"

enum { MOST = 32, WORKSPACE = 64 };

atomic_uint toy_builds, toy_matches, toy_meet;
bool toy_exact;
int toy_fault;

static bool knows(const struct block_op *op)
{
    return op->id == FRIT_OP_add || op->id == FRIT_OP_mul || op->id == FRIT_OP_neg ||
           op->id == FRIT_OP_matmul;
}

static bool match(struct matcher *matcher, const struct block *block)
{
    toy_matches++;
    return knows(&block->ops[matcher->n_ops]);
}

static bool always(const struct matcher *matcher, const struct block *block)
{
    (void)matcher, (void)block;
    return true;
}

static bool is_even(const struct matcher *matcher, const struct block *block)
{
    (void)block;
    return !(matcher->n_ops & 1);
}

/* ---- building ---- */

struct builder {
    struct sched *s;
    uint32_t value[MOST]; /* by value of the block */
    uint32_t at, inside;
};

static void add_word(struct sched_numbers *n, uint64_t word)
{
    n->words[n->n_words++] = word;
}

static uint32_t operand(struct builder *b, const struct block_input *in)
{
    struct sched_numbers *n = b->s->numbers;

    if (in->kind == FRIT_OPERAND_TENSOR)
        return b->value[in->value];
    n->late[n->n_late++] =
        (struct sched_late){.word = n->n_words, .number = in->scalar, .type = KIR_F32};
    add_word(n, 0);
    return kir_param(b->s->module, KIR_F32);
}

static void emit_op(struct builder *b, const struct block_op *op)
{
    enum kir_op with = op->id == FRIT_OP_add ? KIR_add : op->id == FRIT_OP_mul ? KIR_mul : KIR_neg;
    uint32_t x = operand(b, &op->in[0]);
    uint32_t y = op->n_in > 1 ? operand(b, &op->in[1]) : KIR_NONE;

    b->value[op->out[0]] = kir_emit(b->s->module, with, x, y, KIR_NONE);
}

/* Where this lane works. */
static void emit_place(struct builder *b, uint32_t lanes, int64_t count)
{
    struct kir_module *m = b->s->module;
    uint32_t group = kir_emit_imm(m, KIR_group, 0, KIR_NONE, KIR_NONE, KIR_NONE);
    uint32_t first = kir_emit(m, KIR_mul, group, kir_const_i(m, KIR_I32, lanes), KIR_NONE);
    uint32_t lane = kir_emit(m, KIR_lane, KIR_NONE, KIR_NONE, KIR_NONE);
    uint32_t end;

    if (toy_exact) {
        end = kir_const_i(m, KIR_I32, count);
    } else {
        end = kir_param(m, KIR_I32);
        add_word(b->s->numbers, (uint64_t)count);
    }
    b->at = kir_emit(m, KIR_add, first, lane, KIR_NONE);
    b->inside = kir_emit(m, KIR_lt, b->at, end, KIR_NONE);
}

static void emit_body(struct builder *b)
{
    const struct block *block = b->s->block;
    struct kir_module *m = b->s->module;
    uint32_t zero = kir_const_f(m, KIR_F32, 0);

    for (uint32_t i = 0; i < block->n_inputs; i++)
        b->value[block->inputs[i]] =
            kir_emit_as(m, KIR_load_if, KIR_F32, i, b->at, b->inside, zero);
    for (uint32_t i = 0; i < block->n_ops; i++)
        emit_op(b, &block->ops[i]);
    for (uint32_t i = 0; i < block->n_outputs; i++)
        kir_emit_imm(m, KIR_store_if, block->n_inputs + i, b->at, b->value[block->outputs[i]],
                     b->inside);
}

static void spoil(struct kir_module *m)
{
    uint32_t lanes = 32;

    if (toy_fault == TOY_ARGUMENT)
        kir_arg(m, FRIT_F32, KIR_READ);
    if (toy_fault == TOY_PARAMETER)
        kir_param(m, KIR_I32);
    for (int i = 0; toy_fault == TOY_PHASES && i < SCHED_PHASES; i++)
        kir_phase(m, lanes);
    if (toy_fault == TOY_BODY)
        kir_if(m, kir_const_b(m, true));
}

static frit_status build(struct sched *s, uint32_t lanes, uint32_t workspace, frit_err *err)
{
    const struct block *block = s->block;
    const struct block_value *like = &block->values[block->outputs[0]];
    struct builder b = {.s = s};
    int64_t count = 1;

    atomic_fetch_add(&toy_builds, 1);
    s->numbers->words = arena_array(&s->numbers->arena, MOST, sizeof(*s->numbers->words));
    s->numbers->late = arena_array(&s->numbers->arena, MOST, sizeof(*s->numbers->late));
    if (!s->numbers->words || !s->numbers->late)
        return fail_memory(err, MOST);
    for (uint32_t d = 0; d < like->rank; d++)
        count *= s->extents[like->extent[d]];
    for (uint32_t i = 0; i < block->n_inputs; i++)
        kir_arg(s->module, FRIT_F32, KIR_READ);
    for (uint32_t i = 0; i < block->n_outputs; i++)
        kir_arg(s->module, FRIT_F32, KIR_WRITE);
    if (workspace)
        kir_arg(s->module, FRIT_F32, KIR_READ | KIR_WRITE);
    kir_phase(s->module, lanes);
    emit_place(&b, lanes, count);
    emit_body(&b);
    spoil(s->module);
    while (atomic_load(&toy_builds) < atomic_load(&toy_meet))
        sched_yield();
    s->numbers->grid[0][0] = (uint32_t)((count + lanes - 1) / lanes);
    s->numbers->grid[0][1] = s->numbers->grid[0][2] = 1;
    s->numbers->workspace_bytes = workspace;
    s->numbers->bytes = (uint64_t)count * 4 * (block->n_inputs + block->n_outputs);
    s->numbers->flops = (uint64_t)count * block->n_ops;
    for (uint32_t i = 0; i < block->n_outputs; i++)
        s->numbers->alias[i] = (1ull << block->n_inputs) - 1;
    return FRIT_OK;
}

static frit_status narrow_build(struct sched *s, frit_err *err)
{
    if (s->block->values[s->block->outputs[0]].rank == 3)
        return fail(err, FRIT_UNSUPPORTED, "narrow: rank 3");
    return build(s, 32, 0, err);
}

static frit_status pairs_build(struct sched *s, frit_err *err)
{
    return build(s, 64, WORKSPACE, err);
}

static const struct schedule narrow = {
    .name = "narrow", .quality = 900, .match = match, .fits = always, .build = narrow_build};
static const struct schedule pairs = {
    .name = "pairs", .quality = 500, .match = match, .fits = is_even, .build = pairs_build};

const struct schedule *const schedules[] = {&narrow, &pairs};
const uint32_t n_schedules = 2;
