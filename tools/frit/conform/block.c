/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of values and extents have gaps and begin anywhere, as they may. */
#include "conform/block.h"
#include "conform/launch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = BLOCK_NONE, S = BLOCK_SCALAR };

/* One to three inputs, then ops; any driver's fusers take some of them, if they take f32. */
static const struct block blocks[] = {
    {"chain",
     "rcrc1c",
     {{FRIT_OP_add, {0, 1}},
      {FRIT_OP_neg, {3, N}},
      {FRIT_OP_maximum, {4, 2}},
      {FRIT_OP_add, {5, 0}}},
     4,
     0},
    {"scalars",
     "rc",
     {{FRIT_OP_maximum, {0, S}}, {FRIT_OP_add, {1, S}}, {FRIT_OP_neg, {2, N}}},
     3,
     0},
    {"order",
     "rcrcrc",
     {{FRIT_OP_neg, {2, N}}, {FRIT_OP_add, {3, 0}}, {FRIT_OP_maximum, {4, 1}}},
     3,
     0},
    {"living",
     "rcrc",
     {{FRIT_OP_add, {0, 1}}, {FRIT_OP_neg, {2, N}}, {FRIT_OP_maximum, {3, 0}}},
     3,
     1u << 2 | 1u << 3},
    {"calls",
     "rcrc",
     {{FRIT_OP_exp, {0, N}}, {FRIT_OP_mul, {2, 1}}, {FRIT_OP_sub, {3, S}}, {FRIT_OP_div, {4, 0}}},
     4,
     1u << 4},
    {"softmax",
     "rc",
     {{FRIT_OP_max, {0, N}},
      {FRIT_OP_sub, {0, 1}},
      {FRIT_OP_exp, {2, N}},
      {FRIT_OP_sum, {3, N}},
      {FRIT_OP_div, {3, 4}}},
     5,
     0},
    {"turned",
     "rccr",
     {{FRIT_OP_exp, {0, N}}, {FRIT_OP_permute, {2, N}}, {FRIT_OP_mul, {3, 1}}},
     3,
     0},
    {"sum", "rcrc", {{FRIT_OP_mul, {0, 1}}, {FRIT_OP_sum, {2, N}}}, 2, 0},
    {"square",
     "rrrrrr",
     {{FRIT_OP_matmul, {0, 1}}, {FRIT_OP_add, {3, 2}}, {FRIT_OP_maximum, {4, S}}},
     3,
     0},
    {"matmul",
     "rkkc1c",
     {{FRIT_OP_matmul, {0, 1}}, {FRIT_OP_add, {3, 2}}, {FRIT_OP_maximum, {4, S}}},
     3,
     0},
};

const struct block_op block_foreign = {FRIT_OP_CUSTOM + 4095, {0, N}};

const struct block *block_at(size_t index)
{
    return index < sizeof(blocks) / sizeof(blocks[0]) ? &blocks[index] : NULL;
}

static uint32_t n_inputs(const struct block *block)
{
    return (uint32_t)strlen(block->inputs) / 2;
}

static bool is_unknown(const struct block_op *op)
{
    return op->op >= FRIT_OP_CUSTOM;
}

static uint32_t record_of(uint32_t op)
{
    const frit_op_info *info = frit_op_info_at(op);

    return info ? info->record : (uint32_t)FRIT_RECORD_none;
}

/* ---- shapes, by the letters of their extents ---- */

static char letter_of(const struct block *block, uint32_t value, uint32_t dim)
{
    const struct block_op *op;
    char a, b;

    if (value < n_inputs(block))
        return block->inputs[2 * value + dim];
    op = &block->ops[value - n_inputs(block)];
    a = letter_of(block, (uint32_t)op->in[0], op->op == FRIT_OP_permute ? 1 - dim : dim);
    if (dim && record_of(op->op) == FRIT_RECORD_reduce)
        return '1';
    if (op->in[1] < 0)
        return a;
    b = letter_of(block, (uint32_t)op->in[1], dim);
    if (op->op == FRIT_OP_matmul ? dim == 1 : a == '1')
        return b;
    return a;
}

static bool lives(const struct block *block, uint32_t value)
{
    return value < n_inputs(block) || value + 1 == n_inputs(block) + block->n_ops ||
           block->living >> value & 1;
}

/* Whether an op from `first` on uses the value. */
static bool is_used(const struct block *block, uint32_t value, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        if (block->ops[i].in[0] == (int32_t)value || block->ops[i].in[1] == (int32_t)value)
            return true;
    return false;
}

/* ---- relative ops ---- */

static uint32_t extent_number(char letter)
{
    return letter == '1' ? 1 : letter == 'r' ? 4 : letter == 'c' ? 7 : 11;
}

static void put_value(const struct block *block, uint32_t value, frit_operand *out)
{
    *out = (frit_operand){
        .kind = FRIT_OPERAND_TENSOR, .dtype = FRIT_F32, .value = 3 + 2 * value, .rank = 2};
    for (uint32_t d = 0; d < 2; d++)
        out->extent[d] = extent_number(letter_of(block, value, d));
}

static void put_attrs(uint32_t op, struct block_link *out)
{
    if (record_of(op) == FRIT_RECORD_reduce) {
        const frit_attrs_reduce attrs = {
            .struct_size = sizeof(attrs), .axes = {.count = 1, .axis = {1}}, .keep = 1};

        _Static_assert(sizeof(attrs) <= sizeof(out->attrs), "room");
        memcpy(out->attrs, &attrs, sizeof(attrs));
    } else if (record_of(op) == FRIT_RECORD_axis) {
        const frit_attrs_axis attrs = {.struct_size = sizeof(attrs), .axis = 1};

        _Static_assert(sizeof(attrs) <= sizeof(out->attrs), "room");
        memcpy(out->attrs, &attrs, sizeof(attrs));
    } else if (op == FRIT_OP_permute) {
        const frit_attrs_order attrs = {.struct_size = sizeof(attrs),
                                        .order = {.count = 2, .axis = {1, 0}}};

        _Static_assert(sizeof(attrs) <= sizeof(out->attrs), "room");
        memcpy(out->attrs, &attrs, sizeof(attrs));
    } else {
        out->attrs[0] = sizeof(frit_attrs_none);
    }
    out->desc.attrs = out->attrs;
}

void block_link(const struct block *block, uint32_t index, struct block_link *out)
{
    const struct block_op *op = index < block->n_ops ? &block->ops[index] : &block_foreign;
    uint32_t result = n_inputs(block) + index;

    *out = (struct block_link){.desc = {.struct_size = sizeof(out->desc),
                                        .id = op->op,
                                        .rev = is_unknown(op) ? 1 : frit_op_info_at(op->op)->rev,
                                        .n_out = 1,
                                        .operand_stride = sizeof(frit_operand)}};
    for (uint32_t k = 0; k < 2 && op->in[k] != BLOCK_NONE; k++) {
        out->desc.n_in++;
        if (op->in[k] == BLOCK_SCALAR) {
            out->in[k] = (frit_operand){
                .kind = FRIT_OPERAND_SCALAR, .dtype = FRIT_F32, .value = 40 + 3 * index};
            continue;
        }
        put_value(block, (uint32_t)op->in[k], &out->in[k]);
        if (!lives(block, (uint32_t)op->in[k]) &&
            !is_used(block, (uint32_t)op->in[k], index + 1, block->n_ops))
            out->dead[out->desc.n_dead++] = out->in[k].value;
    }
    if (is_unknown(op)) {
        out->out = out->in[0];
        out->out.value = 3 + 2 * result;
    } else {
        put_value(block, result, &out->out);
    }
    put_attrs(op->op, out);
    out->desc.in = out->in;
    out->desc.out = &out->out;
    out->desc.dead = out->dead;
}

/* ---- values ---- */

static bool same_size(const struct block_size *a, const struct block_size *b)
{
    return a->r == b->r && a->c == b->c && a->k == b->k && a->scalar == b->scalar &&
           a->special == b->special;
}

static int64_t extent_of(const struct block_size *size, char letter)
{
    return letter == '1' ? 1 : letter == 'r' ? size->r : letter == 'c' ? size->c : size->k;
}

static uint64_t count_of(const struct block_values *values, uint32_t value)
{
    return (uint64_t)(values->dims[value][0] * values->dims[value][1]);
}

/* Between 0.5 and 2, with either sign for inputs but the first, by which is divided. */
static void draw(float *to, uint64_t count, uint32_t value, bool special)
{
    static const float specials[] = {NAN, INFINITY, -0.0f, 0, -INFINITY};
    const uint64_t n_specials = sizeof(specials) / sizeof(specials[0]);
    uint32_t seed = 77 + 1013 * value;

    for (uint64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = 0.5f + (float)(seed >> 8) * 0x1.8p-24f;
        to[i] = value && seed >> 7 & 1 ? -to[i] : to[i];
        if (special && seed >> 27 == 0)
            to[i] = specials[i % n_specials];
    }
}

/* A single op's program, whose scalars keep their places. */
static frit_status run_single(struct bare *bare, const struct block_values *values,
                              const struct block_link *link, const struct block_op *op,
                              struct bare_tensor *tensors)
{
    struct bare_launch launch = {.n_in = link->desc.n_in, .n_out = 1};
    frit_program program = {.struct_size = sizeof(program)};
    frit_status status = bare->backend->op_program(bare->device, &link->desc, &program, &bare->err);

    if (status)
        return bare_fail(bare, "op_program", status);
    launch.program = &program;
    for (uint32_t k = 0; k < launch.n_in; k++) {
        if (op->in[k] == BLOCK_SCALAR)
            launch.scalars[launch.n_scalars++] = values->size.scalar;
        else
            launch.args[k] = &tensors[k];
    }
    launch.args[launch.n_in] = &tensors[2];
    status = bare_run(bare, &launch);
    program.table->destroy(program.self);
    return status;
}

/* A view: the host resolves it, and no driver gets it. */
static void turn(struct block_values *values, uint32_t from, uint32_t to)
{
    int64_t rows = values->dims[from][0], cols = values->dims[from][1];

    for (int64_t i = 0; i < rows * cols; i++)
        values->at[to][i % cols * rows + i / cols] = values->at[from][i];
}

static frit_status compute(struct bare *bare, struct block_values *values, uint32_t index)
{
    const struct block *block = values->block;
    const struct block_op *op = &block->ops[index];
    uint32_t result = n_inputs(block) + index;
    struct bare_tensor tensors[3] = {{0}};
    frit_status status = FRIT_OK;
    struct block_link link;
    uint64_t bits = 0;

    if (op->op == FRIT_OP_permute) {
        turn(values, (uint32_t)op->in[0], result);
        return FRIT_OK;
    }
    block_link(block, index, &link);
    link.desc.n_dead = 0;
    status =
        bare->backend->supports(bare->device, &link.desc, 1, sizeof(link.desc), &bits, &bare->err);
    if (!status && !(bits & 1)) {
        bare_fail_text(bare, "there is no program for %s alone", frit_op_info_at(op->op)->name);
        return FRIT_UNSUPPORTED;
    }
    for (uint32_t k = 0; k < 2 && !status; k++)
        if (op->in[k] >= 0)
            status =
                bare_tensor(bare, values->dims[op->in[k]], 2, values->at[op->in[k]], &tensors[k]);
    if (!status)
        status = bare_tensor(bare, values->dims[result], 2, NULL, &tensors[2]);
    if (!status)
        status = run_single(bare, values, &link, op, tensors);
    if (!status)
        status = bare_numbers(bare, &tensors[2], values->at[result]);
    for (uint32_t k = 0; k < 3; k++)
        bare_tensor_free(bare, &tensors[k]);
    return status;
}

void block_values_fini(struct block_values *values)
{
    for (uint32_t v = 0; v < values->n; v++)
        free(values->at[v]);
    *values = (struct block_values){0};
}

frit_status block_values_draw(struct bare *bare, const struct block *block,
                              const struct block_size *size, struct block_values *out)
{
    *out = (struct block_values){
        .block = block, .size = *size, .n = n_inputs(block) + block->n_ops, .by = "single ops"};
    for (uint32_t v = 0; v < out->n; v++) {
        for (uint32_t d = 0; d < 2; d++)
            out->dims[v][d] = extent_of(size, letter_of(block, v, d));
        out->at[v] = calloc(count_of(out, v), sizeof(float));
        if (!out->at[v])
            return bare_fail_text(bare, "no memory");
        if (v < n_inputs(block))
            draw(out->at[v], count_of(out, v), v, size->special);
    }
    return FRIT_OK;
}

static frit_status values_init(struct bare *bare, const struct block *block,
                               const struct block_size *size, struct block_values *out)
{
    frit_status status = block_values_draw(bare, block, size, out);

    for (uint32_t i = 0; i < block->n_ops && !status; i++)
        status = compute(bare, out, i);
    return status;
}

frit_status block_values(struct bare *bare, const struct block *block,
                         const struct block_size *size, const struct block_values **out)
{
    struct block_memo *memo = bare->memo;
    frit_status status;

    for (uint32_t i = 0; i < memo->n; i++) {
        *out = &memo->at[i];
        if (memo->at[i].block == block && same_size(&memo->at[i].size, size))
            return FRIT_OK;
    }
    if (memo->n == sizeof(memo->at) / sizeof(memo->at[0]))
        block_memo_fini(memo);
    *out = &memo->at[memo->n];
    status = values_init(bare, block, size, &memo->at[memo->n]);
    if (status)
        block_values_fini(&memo->at[memo->n]);
    memo->n += status == FRIT_OK;
    return status;
}

void block_memo_fini(struct block_memo *memo)
{
    while (memo->n)
        block_values_fini(&memo->at[--memo->n]);
}

/* ---- a program for several ops ---- */

/* Operands in the row's order; scalars keep their places. */
static void single_args(const struct block *block, struct block_args *out)
{
    for (uint32_t k = 0; k < 2 && block->ops[0].in[k] != BLOCK_NONE; k++) {
        bool scalar = block->ops[0].in[k] == BLOCK_SCALAR;

        out->n_scalars += scalar;
        out->value[out->n_in++] = scalar ? BLOCK_ABSENT : (uint32_t)block->ops[0].in[k];
    }
    out->value[out->n_in] = n_inputs(block);
    out->n_out = 1;
}

void block_args(const struct block *block, uint32_t n_ops, struct block_args *out)
{
    uint32_t first = n_inputs(block), seen = 0;

    *out = (struct block_args){0};
    if (n_ops == 0)
        single_args(block, out);
    for (uint32_t i = 0; i < n_ops; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            int32_t value = block->ops[i].in[k];

            out->n_scalars += value == BLOCK_SCALAR;
            if (value < 0 || value >= (int32_t)first || seen >> value & 1)
                continue;
            seen |= 1u << value;
            out->value[out->n_in++] = (uint32_t)value;
        }
    }
    for (uint32_t v = first; v < first + n_ops; v++)
        if (lives(block, v) || is_used(block, v, n_ops, block->n_ops))
            out->value[out->n_in + out->n_out++] = v;
}

/* Of the largest finite result.  As near as sums and functions in another order come, REDUCED as
 * sums of products of bf16, whose factors are off by 2^-9. */
static float tolerance_of(uint32_t numeric_class)
{
    return numeric_class == FRIT_NUMERIC_RELAXED   ? 0x1p-3f
           : numeric_class == FRIT_NUMERIC_REDUCED ? 0x1p-7f
                                                   : 0x1p-17f;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static bool is_right(const struct block_run *run, float got, float want, float most)
{
    if (isnan(want))
        return isnan(got);
    if (run->exact)
        return bits_of(got) == bits_of(want);
    return got == want || fabsf(got - want) <= tolerance_of(run->numeric_class) * most;
}

static frit_status compare(struct bare *bare, const struct block_run *run, uint32_t value,
                           const float *got)
{
    const struct block_values *values = run->values;
    const float *want = values->at[value];
    float most = 0;

    for (uint64_t i = 0; i < count_of(values, value); i++)
        most = isfinite(want[i]) ? fmaxf(most, fabsf(want[i])) : most;
    for (uint64_t i = 0; i < count_of(values, value); i++) {
        if (is_right(run, got[i], want[i], most))
            continue;
        return bare_fail_text(bare, "element %llu of value %u is %.9g, by %s %.9g",
                              (unsigned long long)i, value, (double)got[i], values->by,
                              (double)want[i]);
    }
    return FRIT_OK;
}

/* The arguments of a run. */
struct block_place {
    struct block_args args;
    struct bare_tensor tensors[BLOCK_VALUES];
    struct bare_launch launch;
};

static void place_fini(struct bare *bare, struct block_place *place)
{
    for (uint32_t i = 0; i < BLOCK_VALUES; i++)
        bare_tensor_free(bare, &place->tensors[i]);
}

static frit_status place_init(struct bare *bare, const struct block_run *run,
                              struct block_place *place)
{
    const struct block_values *values = run->values;
    frit_status status = FRIT_OK;

    *place = (struct block_place){
        .launch = {.program = run->program, .candidate = run->candidate, .derived = run->derived}};
    block_args(values->block, run->n_ops, &place->args);
    place->launch.n_in = place->args.n_in;
    place->launch.n_out = place->args.n_out;
    for (uint32_t i = 0; i < place->args.n_in + place->args.n_out && !status; i++) {
        uint32_t v = place->args.value[i];
        bool taken = run->aliased && i == place->args.n_in + run->out;

        if (v == BLOCK_ABSENT)
            continue;
        place->launch.args[i] = &place->tensors[taken ? run->in : i];
        if (!taken)
            status = bare_tensor(bare, values->dims[v], 2,
                                 i < place->args.n_in ? values->at[v] : NULL, &place->tensors[i]);
    }
    for (uint32_t i = 0; i < place->args.n_scalars; i++)
        place->launch.scalars[i] = values->size.scalar;
    place->launch.n_scalars = place->args.n_scalars;
    return status;
}

/* Checks argument `i` after the launch: an input must be unchanged, an output must be right. */
static frit_status check_arg(struct bare *bare, const struct block_run *run,
                             const struct block_place *place, uint32_t i)
{
    uint32_t value = place->args.value[i];
    uint64_t count = value == BLOCK_ABSENT ? 0 : count_of(run->values, value);
    float *got = calloc(count + 1, sizeof(*got));
    frit_status status;

    if (got && value == BLOCK_ABSENT) {
        free(got);
        return FRIT_OK;
    }
    if (!got)
        return bare_fail_text(bare, "no memory");
    status = bare_numbers(bare, place->launch.args[i], got);
    if (!status && i >= place->args.n_in)
        status = compare(bare, run, value, got);
    else if (!status && memcmp(got, run->values->at[value], count * sizeof(*got)) != 0)
        status = bare_fail_text(bare, "input %u was written", i);
    free(got);
    return status;
}

frit_status block_check(struct bare *bare, const struct block_run *run)
{
    struct block_place place;
    frit_status status = place_init(bare, run, &place);

    if (!status)
        status = bare_run(bare, &place.launch);
    for (uint32_t i = 0; i < place.args.n_in + place.args.n_out && !status; i++)
        if (!run->aliased || i != run->in)
            status = check_arg(bare, run, &place, i);
    place_fini(bare, &place);
    return status;
}

frit_status block_prepare(struct bare *bare, const struct block_run *run,
                          struct bare_answer *answer)
{
    struct block_place place;
    frit_status status = place_init(bare, run, &place);

    if (!status)
        bare_prepare(bare, &place.launch, answer);
    place_fini(bare, &place);
    return status;
}

frit_status block_priority(struct bare *bare, const struct block_run *run, int32_t *out)
{
    struct block_place place;
    frit_status status = place_init(bare, run, &place);

    if (!status)
        *out = bare_priority(bare, &place.launch);
    place_fini(bare, &place);
    return status;
}

frit_status block_values_run(struct bare *bare, const struct block_run *run,
                             struct block_values *out)
{
    struct block_place place;
    frit_status status = place_init(bare, run, &place);

    out->by = "the first candidate";
    if (!status)
        status = bare_run(bare, &place.launch);
    for (uint32_t i = place.args.n_in; i < place.args.n_in + place.args.n_out && !status; i++)
        status = bare_numbers(bare, place.launch.args[i], out->at[place.args.value[i]]);
    place_fini(bare, &place);
    return status;
}
