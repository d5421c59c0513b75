/* SPDX-License-Identifier: Apache-2.0 */
/* The host's numbers of values and extents are looked up by hashing.  A push first validates the
 * op, then appends it; if memory runs out in between, the part that was appended is removed. */
#include "lower/block/block.h"

#include <stdlib.h>
#include <string.h>

#include <frit/op_table.h>

#include "base/array.h"
#include "base/fail.h"

void block_init(struct block *block)
{
    *block = (struct block){0};
}

void block_fini(struct block *block)
{
    arena_fini(&block->arena);
    free(block->ops);
    free(block->values);
    free(block->extents);
    free(block->value_numbers.slots);
    free(block->extent_numbers.slots);
    *block = (struct block){0};
}

/* ---- the host's numbers ---- */

/* Returns the slot of a number, or the empty slot where it belongs; NULL if there are no slots. */
static struct block_number *slot_of(const struct block_numbers *numbers, uint32_t host)
{
    uint32_t at = host * 2654435769u;

    if (!numbers->capacity)
        return NULL;
    for (at ^= at >> 15;; at++) {
        struct block_number *slot = &numbers->slots[at & (numbers->capacity - 1)];

        if (!slot->own || slot->host == host)
            return slot;
    }
}

static uint32_t number_of(const struct block_numbers *numbers, uint32_t host)
{
    const struct block_number *slot = slot_of(numbers, host);

    return slot && slot->own ? slot->own - 1 : BLOCK_NONE;
}

/* Keeps at least half of the slots empty. */
static bool add_number(struct block_numbers *numbers, uint32_t host, uint32_t own)
{
    if (2 * (own + 1) > numbers->capacity) {
        uint32_t capacity = numbers->capacity ? 2 * numbers->capacity : 32;
        struct block_numbers more = {calloc(capacity, sizeof(*more.slots)), capacity};

        if (!more.slots)
            return false;
        for (uint32_t i = 0; i < numbers->capacity; i++)
            if (numbers->slots[i].own)
                *slot_of(&more, numbers->slots[i].host) = numbers->slots[i];
        free(numbers->slots);
        *numbers = more;
    }
    *slot_of(numbers, host) = (struct block_number){host, own + 1};
    return true;
}

static void clear_numbers(struct block_numbers *numbers)
{
    if (numbers->capacity)
        memset(numbers->slots, 0, numbers->capacity * sizeof(*numbers->slots));
}

void block_reset(struct block *block)
{
    arena_reset(&block->arena);
    block->n_ops = block->n_values = block->n_inputs = block->n_outputs = 0;
    block->n_scalars = block->n_bounds = block->n_extents = 0;
    block->inputs = block->outputs = NULL;
    clear_numbers(&block->value_numbers);
    clear_numbers(&block->extent_numbers);
}

/* ---- copying ---- */

static void *copy_in(struct arena *arena, const void *from, size_t n, size_t item)
{
    void *to = arena_array(arena, n + 1, item);

    if (to && n)
        memcpy(to, from, n * item);
    return to;
}

static bool copy_op(struct arena *arena, const struct block_op *from, struct block_op *to)
{
    uint32_t record = frit_op_info_at(from->id)->record;

    *to = *from;
    to->in = copy_in(arena, from->in, from->n_in, sizeof(*from->in));
    to->out = copy_in(arena, from->out, from->n_out, sizeof(*from->out));
    to->dead = copy_in(arena, from->dead, from->n_dead, sizeof(*from->dead));
    to->attrs = copy_in(arena, from->attrs, frit_record_info_at(record)->size, 1);
    return to->in && to->out && to->dead && to->attrs;
}

static bool copy_numbers(const struct block_numbers *from, struct block_numbers *to)
{
    if (!from->capacity)
        return true;
    to->slots = malloc(from->capacity * sizeof(*to->slots));
    if (!to->slots)
        return false;
    memcpy(to->slots, from->slots, from->capacity * sizeof(*to->slots));
    to->capacity = from->capacity;
    return true;
}

static bool copy_lists(const struct block *from, struct block *to)
{
    if (!array_grow(&to->ops, &to->ops_capacity, 0, from->n_ops, sizeof(*to->ops)) ||
        !array_grow(&to->values, &to->values_capacity, 0, from->n_values, sizeof(*to->values)) ||
        !array_grow(&to->extents, &to->extents_capacity, 0, from->n_extents,
                    sizeof(*to->extents)) ||
        !copy_numbers(&from->value_numbers, &to->value_numbers) ||
        !copy_numbers(&from->extent_numbers, &to->extent_numbers))
        return false;
    for (uint32_t i = 0; i < from->n_ops; i++)
        if (!copy_op(&to->arena, &from->ops[i], &to->ops[i]))
            return false;
    if (from->n_values)
        memcpy(to->values, from->values, from->n_values * sizeof(*to->values));
    if (from->n_extents)
        memcpy(to->extents, from->extents, from->n_extents * sizeof(*to->extents));
    to->inputs = copy_in(&to->arena, from->inputs, from->n_inputs, sizeof(*to->inputs));
    to->outputs = copy_in(&to->arena, from->outputs, from->n_outputs, sizeof(*to->outputs));
    return to->inputs && to->outputs;
}

frit_status block_copy(const struct block *from, struct block *to, frit_err *err)
{
    block_init(to);
    if (!copy_lists(from, to)) {
        block_fini(to);
        return fail_memory(err, from->n_ops * sizeof(*from->ops));
    }
    to->n_ops = from->n_ops;
    to->n_values = from->n_values;
    to->n_extents = from->n_extents;
    to->n_inputs = from->n_inputs;
    to->n_outputs = from->n_outputs;
    to->n_scalars = from->n_scalars;
    to->n_bounds = from->n_bounds;
    return FRIT_OK;
}

/* ---- validation ---- */

/* Packed types are allowed only where the op kind says so. */
static bool dtype_fits(const frit_slot_info *slot, uint32_t dtype)
{
    uint32_t cls = frit_dtype_info_of(dtype).cls;

    return cls && (cls != FRIT_DTYPE_PACKED || slot->letter == FRIT_LETTER_P ||
                   slot->letter == FRIT_LETTER_D);
}

/* Whether an operand slot of the op kind accepts this kind of operand. */
static bool kind_fits(const frit_op_info *info, const frit_slot_info *slot, uint32_t kind)
{
    switch (slot->role) {
    case FRIT_ROLE_NUM:
        return kind == FRIT_OPERAND_SCALAR;
    case FRIT_ROLE_OPT:
    case FRIT_ROLE_XOUT:
        return kind == FRIT_OPERAND_TENSOR || kind == FRIT_OPERAND_ABSENT;
    case FRIT_ROLE_IN:
        return kind == FRIT_OPERAND_TENSOR ||
               (kind == FRIT_OPERAND_SCALAR && info->traits & FRIT_OP_SCALARS);
    default:
        return kind == FRIT_OPERAND_TENSOR;
    }
}

/* Checks operands against the op kind's slots: one per slot, unless the first slot is variadic. */
static bool operands_fit(const frit_op_desc *op, const frit_op_info *info,
                         const frit_slot_info *slots, const frit_operand *first, uint32_t n)
{
    uint32_t n_slots = 0;
    bool many = slots[0].role == FRIT_ROLE_MANY;

    while (slots[n_slots].name)
        n_slots++;
    if (!many && n != n_slots)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const frit_operand *operand = frit_operand_at(op, first, i);
        const frit_slot_info *slot = &slots[many ? 0 : i];

        if (!kind_fits(info, slot, operand->kind))
            return false;
        if (operand->kind != FRIT_OPERAND_ABSENT &&
            (!dtype_fits(slot, operand->dtype) || operand->rank > FRIT_MAX_RANK))
            return false;
    }
    return true;
}

static bool op_fits(const frit_op_desc *op, const frit_op_info *info)
{
    return info && op->rev == info->rev && !(op->flags & FRIT_MUST_UNDERSTAND) &&
           operands_fit(op, info, info->in, op->in, op->n_in) &&
           operands_fit(op, info, info->out, op->out, op->n_out);
}

/* ---- pushing ---- */

static bool push_extent(struct block *block, uint32_t number, uint32_t *out)
{
    uint32_t i = number < 2 ? BLOCK_NONE : number_of(&block->extent_numbers, number);

    *out = number < 2 ? number : i + 2;
    if (number < 2 || i != BLOCK_NONE)
        return true;
    i = block->n_extents;
    *out = i + 2;
    if (!array_grow(&block->extents, &block->extents_capacity, i, 1, sizeof(*block->extents)) ||
        !add_number(&block->extent_numbers, number, i))
        return false;
    block->extents[block->n_extents++] = number;
    return true;
}

/* Returns the value's number in the block, adding the value if it is new. */
static bool push_value(struct block *block, const frit_operand *operand, uint32_t maker,
                       uint32_t *out)
{
    struct block_value *value;

    *out = number_of(&block->value_numbers, operand->value);
    if (*out != BLOCK_NONE)
        return true;
    if (!array_grow(&block->values, &block->values_capacity, block->n_values, 1,
                    sizeof(*block->values)))
        return false;
    value = &block->values[block->n_values];
    *value = (struct block_value){.dtype = operand->dtype,
                                  .rank = operand->rank,
                                  .maker = maker,
                                  .dies = BLOCK_NONE,
                                  .number = operand->value,
                                  .input = BLOCK_NONE,
                                  .output = BLOCK_NONE};
    for (uint32_t d = 0; d < operand->rank; d++)
        if (!push_extent(block, operand->extent[d], &value->extent[d]))
            return false;
    if (!add_number(&block->value_numbers, operand->value, block->n_values))
        return false;
    *out = block->n_values++;
    return true;
}

static bool push_inputs(struct block *block, const frit_op_desc *desc, struct block_op *op)
{
    struct block_input *in = arena_array(&block->arena, desc->n_in, sizeof(*in));

    if (!in && desc->n_in)
        return false;
    for (uint32_t i = 0; i < desc->n_in; i++) {
        const frit_operand *operand = frit_operand_at(desc, desc->in, i);

        in[i] = (struct block_input){operand->kind, operand->dtype, BLOCK_NONE, BLOCK_NONE};
        if (operand->kind == FRIT_OPERAND_SCALAR)
            in[i].scalar = op->first_scalar + op->n_scalars++;
        if (operand->kind != FRIT_OPERAND_TENSOR)
            continue;
        if (!push_value(block, operand, BLOCK_NONE, &in[i].value))
            return false;
    }
    op->in = in;
    return true;
}

static bool push_outputs(struct block *block, const frit_op_desc *desc, struct block_op *op)
{
    uint32_t *out = arena_array(&block->arena, desc->n_out, sizeof(*out));

    if (!out && desc->n_out)
        return false;
    for (uint32_t i = 0; i < desc->n_out; i++) {
        const frit_operand *operand = frit_operand_at(desc, desc->out, i);

        out[i] = BLOCK_NONE;
        if (operand->kind == FRIT_OPERAND_TENSOR &&
            !push_value(block, operand, block->n_ops, &out[i]))
            return false;
    }
    op->out = out;
    return true;
}

/* Copies the op's attribute record to the size of this version: a shorter record is padded with
 * zeros. */
static bool push_attrs(struct block *block, const frit_op_desc *desc,
                       const frit_record_info *record, struct block_op *op)
{
    void *attrs = arena_alloc(&block->arena, record->size);
    uint64_t given;

    if (!attrs)
        return false;
    if (desc->attrs) {
        memcpy(&given, desc->attrs, sizeof(given));
        memcpy(attrs, desc->attrs, given < record->size ? given : record->size);
    }
    given = record->size;
    memcpy(attrs, &given, sizeof(given));
    op->attrs = attrs;
    return true;
}

static void count_fields(struct block *block, const frit_op_desc *desc,
                         const frit_record_info *record, struct block_op *op)
{
    uint32_t rank = desc->n_in ? frit_operand_at(desc, desc->in, 0)->rank : 0;

    for (uint32_t i = 0; i < record->n_fields; i++) {
        const frit_field_info *field = &record->field[i];

        if (field->use != FRIT_USE_LAUNCH)
            continue;
        if (field->type == FRIT_ATTR_REAL)
            op->n_scalars++;
        else
            block->n_bounds += field->type == FRIT_ATTR_SLICES ? 3 * rank : rank;
    }
    op->n_scalars += desc->n_extra;
    block->n_scalars += op->n_scalars;
}

/* Inserts in ascending order, so that equal blocks have equal bytes. */
static void insert(uint32_t *sorted, uint32_t n, uint32_t value)
{
    for (; n > 0 && sorted[n - 1] > value; n--)
        sorted[n] = sorted[n - 1];
    sorted[n] = value;
}

/* Ignores values that are dead already. */
static bool push_dead(struct block *block, const frit_op_desc *desc, struct block_op *op)
{
    uint32_t *dead = arena_array(&block->arena, desc->n_dead, sizeof(*dead));

    if (!dead && desc->n_dead)
        return false;
    for (uint32_t i = 0; i < desc->n_dead; i++) {
        uint32_t value = number_of(&block->value_numbers, desc->dead[i]);

        if (value == BLOCK_NONE || block->values[value].dies != BLOCK_NONE)
            continue;
        block->values[value].dies = block->n_ops;
        insert(dead, op->n_dead++, value);
    }
    op->dead = dead;
    return true;
}

/* Removes the values and extents of an op that could not be appended. */
static void undo(struct block *block, uint32_t n_values, uint32_t n_extents)
{
    block->n_values = n_values;
    block->n_extents = n_extents;
    clear_numbers(&block->value_numbers);
    clear_numbers(&block->extent_numbers);
    for (uint32_t i = 0; i < n_values; i++)
        *slot_of(&block->value_numbers, block->values[i].number) =
            (struct block_number){block->values[i].number, i + 1};
    for (uint32_t i = 0; i < n_extents; i++)
        *slot_of(&block->extent_numbers, block->extents[i]) =
            (struct block_number){block->extents[i], i + 1};
}

static void count_uses(struct block *block, const struct block_op *op)
{
    for (uint32_t i = 0; i < op->n_in; i++)
        if (op->in[i].kind == FRIT_OPERAND_TENSOR)
            block->values[op->in[i].value].n_uses++;
}

frit_status block_push(struct block *block, const frit_op_desc *desc, frit_err *err)
{
    const frit_op_info *info = frit_op_info_at(desc->id);
    const frit_record_info *record;
    uint32_t n_values = block->n_values, n_extents = block->n_extents;
    struct block_op op = {.id = desc->id,
                          .n_in = desc->n_in,
                          .n_out = desc->n_out,
                          .n_extra = desc->n_extra,
                          .first_scalar = block->n_scalars,
                          .first_bound = block->n_bounds};

    if (!op_fits(desc, info))
        return fail(err, FRIT_UNSUPPORTED, "kernels: op %u %s, rev %u, is not supported", desc->id,
                    info ? info->name : "of unknown name", desc->rev);
    record = frit_record_info_at(info->record);
    if (!array_grow(&block->ops, &block->ops_capacity, block->n_ops, 1, sizeof(*block->ops)) ||
        !push_attrs(block, desc, record, &op) || !push_inputs(block, desc, &op) ||
        !push_outputs(block, desc, &op) || !push_dead(block, desc, &op)) {
        undo(block, n_values, n_extents);
        return fail_memory(err, sizeof(op));
    }
    count_uses(block, &op);
    count_fields(block, desc, record, &op);
    block->ops[block->n_ops++] = op;
    return FRIT_OK;
}

/* ---- closing ---- */

/* The number of values that the first ops use. */
static uint32_t values_of(const struct block *block, uint32_t n_ops)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_ops; i++) {
        const struct block_op *op = &block->ops[i];

        for (uint32_t k = 0; k < op->n_in; k++)
            if (op->in[k].kind == FRIT_OPERAND_TENSOR && op->in[k].value >= n)
                n = op->in[k].value + 1;
        for (uint32_t k = 0; k < op->n_out; k++)
            if (op->out[k] != BLOCK_NONE && op->out[k] >= n)
                n = op->out[k] + 1;
    }
    return n;
}

bool block_is_output(const struct block *block, uint32_t value, uint32_t n_ops)
{
    const struct block_value *v = &block->values[value];

    return v->maker != BLOCK_NONE && v->maker < n_ops &&
           (v->dies == BLOCK_NONE || v->dies >= n_ops);
}

static void truncate_values(struct block *block)
{
    uint32_t n_extents = 0;

    block->n_values = values_of(block, block->n_ops);
    for (uint32_t i = 0; i < block->n_values; i++) {
        struct block_value *value = &block->values[i];

        value->n_uses = 0;
        if (value->dies != BLOCK_NONE && value->dies >= block->n_ops)
            value->dies = BLOCK_NONE;
        for (uint32_t d = 0; d < value->rank; d++)
            if (value->extent[d] >= n_extents + 2)
                n_extents = value->extent[d] - 1;
    }
    block->n_extents = n_extents;
    for (uint32_t i = 0; i < block->n_ops; i++)
        count_uses(block, &block->ops[i]);
}

static void truncate(struct block *block, uint32_t n_ops)
{
    if (n_ops < block->n_ops) {
        block->n_scalars = block->ops[n_ops].first_scalar;
        block->n_bounds = block->ops[n_ops].first_bound;
        block->n_ops = n_ops;
    }
    truncate_values(block);
}

frit_status block_close(struct block *block, uint32_t n_ops, frit_err *err)
{
    uint32_t *lists = arena_array(&block->arena, 2 * ((size_t)block->n_values + 1), sizeof(*lists));

    if (!lists)
        return fail_memory(err, block->n_values * sizeof(*lists));
    truncate(block, n_ops);
    block->inputs = lists;
    block->outputs = lists + block->n_values;
    block->n_inputs = block->n_outputs = 0;
    for (uint32_t i = 0; i < block->n_values; i++) {
        struct block_value *value = &block->values[i];

        value->input = value->output = BLOCK_NONE;
        if (value->maker == BLOCK_NONE) {
            value->input = block->n_inputs;
            block->inputs[block->n_inputs++] = i;
        } else if (value->dies == BLOCK_NONE) {
            value->output = block->n_outputs;
            block->outputs[block->n_outputs++] = i;
        }
    }
    return FRIT_OK;
}

/* ---- extents of one launch ---- */

static frit_status extents_of(const struct block_value *value, const frit_arg_sig *arg,
                              int64_t *extents, frit_err *err)
{
    if (arg->dtype != value->dtype || arg->rank != value->rank)
        return fail(err, FRIT_INVALID,
                    "kernels: an argument has type %u and rank %u, its block type %u "
                    "and rank %u",
                    arg->dtype, arg->rank, value->dtype, value->rank);
    for (uint32_t d = 0; d < arg->rank; d++) {
        int64_t *extent = &extents[value->extent[d]];

        if (arg->dims[d] < 0 || (*extent >= 0 && *extent != arg->dims[d]))
            return fail(err, FRIT_INVALID,
                        "kernels: dim %u of an argument differs from its block's", d);
        *extent = arg->dims[d];
    }
    return FRIT_OK;
}

/* How often a value has an extent that is not known; *extent becomes the last such one. */
static uint32_t count_unknown(const struct block_value *value, block_known *known, const void *ctx,
                              uint32_t *extent)
{
    uint32_t n = 0;

    for (uint32_t d = 0; d < value->rank; d++) {
        if (known(ctx, value->extent[d]))
            continue;
        *extent = value->extent[d];
        n++;
    }
    return n;
}

static bool has_zero(const struct block_value *value)
{
    for (uint32_t d = 0; d < value->rank; d++)
        if (value->extent[d] == 0)
            return true;
    return false;
}

uint32_t block_solved_by(const struct block *block, const struct block_op *op, block_known *known,
                         const void *ctx)
{
    const struct block_value *from, *to;
    uint32_t extent = BLOCK_NONE;

    if (op->id != FRIT_OP_reshape || op->out[0] == BLOCK_NONE ||
        op->in[0].kind != FRIT_OPERAND_TENSOR)
        return BLOCK_NONE;
    from = &block->values[op->in[0].value];
    to = &block->values[op->out[0]];
    if (has_zero(from) || has_zero(to) ||
        count_unknown(from, known, ctx, &extent) + count_unknown(to, known, ctx, &extent) != 1)
        return BLOCK_NONE;
    return extent;
}

static bool is_set(const void *ctx, uint32_t extent)
{
    return ((const int64_t *)ctx)[extent] >= 0;
}

static int64_t known_count(const struct block_value *value, const int64_t *extents)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < value->rank; d++)
        if (extents[value->extent[d]] >= 0)
            count *= extents[value->extent[d]];
    return count;
}

/* Sets the extents that reshapes determine, in any order of ops. */
static frit_status solve_extents(const struct block *block, int64_t *extents, frit_err *err)
{
    for (bool solved = true; solved;) {
        solved = false;
        for (uint32_t i = 0; i < block->n_ops; i++) {
            const struct block_op *op = &block->ops[i];
            uint32_t extent = block_solved_by(block, op, is_set, extents);
            int64_t from, to;

            if (extent == BLOCK_NONE)
                continue;
            from = known_count(&block->values[op->in[0].value], extents);
            to = known_count(&block->values[op->out[0]], extents);
            if (from < to ? !from || to % from : !to || from % to)
                return fail(err, FRIT_INVALID, "kernels: a reshape of %lld elements to %lld",
                            (long long)from, (long long)to);
            extents[extent] = from < to ? to / from : from / to;
            solved = true;
        }
    }
    return FRIT_OK;
}

frit_status block_extents(const struct block *block, const frit_signature *sig, int64_t *extents,
                          frit_err *err)
{
    if (sig->n_in != block->n_inputs || sig->n_out != block->n_outputs)
        return fail(err, FRIT_INVALID, "kernels: %u inputs and %u outputs for a block of %u and %u",
                    sig->n_in, sig->n_out, block->n_inputs, block->n_outputs);
    extents[0] = 0;
    extents[1] = 1;
    for (uint32_t i = 0; i < block->n_extents; i++)
        extents[i + 2] = -1;
    for (uint32_t i = 0; i < block->n_inputs; i++)
        TRY(extents_of(&block->values[block->inputs[i]], frit_arg_sig_at(sig, i), extents, err));
    for (uint32_t i = 0; i < block->n_outputs; i++)
        TRY(extents_of(&block->values[block->outputs[i]], frit_arg_sig_at(sig, sig->n_in + i),
                       extents, err));
    TRY(solve_extents(block, extents, err));
    for (uint32_t i = 0; i < block->n_extents; i++)
        if (extents[i + 2] < 0)
            return fail(err, FRIT_UNSUPPORTED, "kernels: no argument has extent %u of the block",
                        i);
    return FRIT_OK;
}
