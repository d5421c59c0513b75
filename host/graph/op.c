/* SPDX-License-Identifier: Apache-2.0 */
/* op_check: operands against the row's slots, one element type per letter, scalars as values of
 * their letter, attributes, then the row's shape rule. */
#include "graph/op.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "graph/attrs.h"
#include "graph/custom.h"
#include "graph/dtype.h"
#include "graph/scalar.h"
#include "graph/shape/shape.h"

/* ---- rows ---- */

static const char *const names[] = {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) #name,
#include <frit/ops.def>
};

static const uint32_t ids[] = {
#define FRIT_OP(id, name, cls, level, in, out, attrs, shape, traits, rev, meaning) id,
#include <frit/ops.def>
};

enum { N_ROWS = sizeof(names) / sizeof(names[0]) };

const frit_op_info *op_row(uint32_t op)
{
    const frit_op_info *row = frit_op_info_at(op);

    return row ? row : custom_row(op);
}

bool op_is_view(uint32_t op)
{
    const frit_op_info *row = op_row(op);

    return row && row->cls == FRIT_CLASS_VIEW;
}

const frit_record_info *op_custom_record(const frit_op_info *row)
{
    return custom_record(row->record);
}

const frit_op_info *op_find(frit_str name)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (str_is(name, names[i]))
            return op_row(ids[i]);
    }
    return custom_find(name);
}

const char *op_nearest(const char *name)
{
    return str_nearest(name, names, N_ROWS);
}

uint32_t op_n_out(const frit_op_info *row)
{
    uint32_t n = 0;

    while (row->out[n].name)
        n++;
    return n;
}

uint32_t op_n_slots(const frit_op_info *row)
{
    uint32_t n = 0;

    while (row->in[n].name)
        n++;
    return n;
}

const frit_slot_info *op_slot(const frit_op_info *row, uint32_t n_in, uint32_t index)
{
    uint32_t extra = n_in - op_n_slots(row);

    return &row->in[index > extra ? index - extra : 0];
}

/* ---- types of values ---- */

int64_t op_elements(const struct op_type *type)
{
    int64_t count = 1;

    for (uint32_t i = 0; i < type->rank; i++)
        count *= type->dims[i];
    return count;
}

const char *op_type_text(const struct op_type *type, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s[", dtype_name(type->dtype));

    for (uint32_t i = 0; i < type->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "",
                                 (long long)type->dims[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    return text;
}

frit_status op_type_check(const struct op_type *type, frit_err *err)
{
    uint32_t bits = frit_dtype_bits(type->dtype);
    int64_t count = 1;

    if (!bits)
        return fail(err, FRIT_INVALID, "%u is not an element type", type->dtype);
    if (type->rank > FRIT_MAX_RANK)
        return fail(err, FRIT_INVALID, "rank %u is beyond the largest, 8", type->rank);
    for (uint32_t i = 0; i < type->rank; i++) {
        int64_t dim = type->dims[i];

        if (dim < 0)
            return fail(err, FRIT_INVALID, "dim %u has the negative extent %lld", i,
                        (long long)dim);
        /* An extent of 0 counts as 1: strides multiply the others all the same. */
        if (__builtin_mul_overflow(count, dim ? dim : 1, &count) ||
            count > (INT64_MAX - 7) / (int64_t)bits) {
            char text[256];

            return fail(err, FRIT_INVALID, "shape overflow: %s has more bytes than 63 bits count",
                        op_type_text(type, text, sizeof(text)));
        }
    }
    return FRIT_OK;
}

/* ---- operands ---- */

/* A call under check. */
struct check {
    const frit_op_info *row;
    struct op_call *call;
    frit_err *err;
    uint32_t dtype[FRIT_LETTER_P + 1]; /* of each letter, FRIT_NO_DTYPE until a tensor says it */
    uint32_t first[FRIT_LETTER_P + 1]; /* operand that said it */
};

static const char *operand_name(const struct check *c, uint32_t index)
{
    return op_slot(c->row, c->call->n_in, index)->name;
}

/* A letter's dtype classes as a bit set, and what they are called. */
static const struct {
    uint32_t classes;
    const char *text;
} letters[FRIT_LETTER_P + 1] = {
#define FLOAT_BIT   (1u << FRIT_DTYPE_FLOAT)
#define INTEGER_BIT (1u << FRIT_DTYPE_INT | 1u << FRIT_DTYPE_UINT)
#define BOOL_BIT    (1u << FRIT_DTYPE_BOOL)
    [FRIT_LETTER_NONE] = {FLOAT_BIT | INTEGER_BIT | BOOL_BIT | 1u << FRIT_DTYPE_PACKED,
                          "an element type"},
    [FRIT_LETTER_T] = {FLOAT_BIT | INTEGER_BIT | BOOL_BIT, "any type that is not packed"},
    [FRIT_LETTER_N] = {FLOAT_BIT | INTEGER_BIT, "a float or integer type"},
    [FRIT_LETTER_F] = {FLOAT_BIT, "a float type"},
    [FRIT_LETTER_Z] = {INTEGER_BIT, "an integer type"},
    [FRIT_LETTER_L] = {INTEGER_BIT | BOOL_BIT, "an integer type or bool"},
    [FRIT_LETTER_R] = {FLOAT_BIT | INTEGER_BIT | BOOL_BIT, "any type that is not packed"},
    [FRIT_LETTER_I] = {INTEGER_BIT, "i32 or i64"},
    [FRIT_LETTER_BOOL] = {BOOL_BIT, "bool"},
    [FRIT_LETTER_D] = {FLOAT_BIT | INTEGER_BIT | BOOL_BIT, "any type that is not packed"},
    [FRIT_LETTER_P] = {1u << FRIT_DTYPE_PACKED, "a packed type"},
};

static bool letter_allows(uint32_t letter, uint32_t dtype)
{
    if (letter == FRIT_LETTER_I)
        return dtype == FRIT_I32 || dtype == FRIT_I64;
    return (letters[letter].classes >> dtype_class(dtype) & 1) != 0;
}

static frit_status check_arity(const struct check *c)
{
    uint32_t n = c->call->n_in, slots = op_n_slots(c->row);
    bool many = slots && c->row->in[0].role == FRIT_ROLE_MANY;

    if (many ? n < slots : n != slots)
        return fail(c->err, FRIT_INVALID, "%s: %u operand%s given, it takes %s%u", c->row->name, n,
                    n == 1 ? "" : "s", many ? "at least " : "", slots);
    return FRIT_OK;
}

/* Whether the operand may be of the kind it is; scalars that need a tensor besides them are looked
 * at once all letters are known. */
static frit_status check_role(const struct check *c, uint32_t index)
{
    const frit_slot_info *slot = op_slot(c->row, c->call->n_in, index);
    uint32_t kind = c->call->in[index].kind;
    bool scalar_ok = slot->role == FRIT_ROLE_NUM ||
                     (slot->role == FRIT_ROLE_IN && (c->row->traits & FRIT_OP_SCALARS) &&
                      slot->letter != FRIT_LETTER_BOOL);

    if (kind == FRIT_OPERAND_ABSENT && slot->role != FRIT_ROLE_OPT)
        return fail(c->err, FRIT_INVALID, "%s: operand %s is missing", c->row->name, slot->name);
    if (kind == FRIT_OPERAND_SCALAR && !scalar_ok)
        return fail(c->err, FRIT_INVALID, "%s: %s must be a tensor, not a scalar", c->row->name,
                    slot->name);
    if (kind == FRIT_OPERAND_TENSOR && slot->role == FRIT_ROLE_NUM)
        return fail(c->err, FRIT_INVALID, "%s: %s must be a scalar, not a tensor", c->row->name,
                    slot->name);
    if (kind > FRIT_OPERAND_SCALAR)
        return fail(c->err, FRIT_INVALID, "%s: operand %s is of no known kind", c->row->name,
                    slot->name);
    return FRIT_OK;
}

/* Gives the tensor's letter its element type, or compares with what it has; none binds nothing. */
static frit_status bind_letter(struct check *c, uint32_t index)
{
    const struct op_type *type = &c->call->in[index].type;
    uint32_t letter = op_slot(c->row, c->call->n_in, index)->letter;
    char mine[128], other[128];

    if (!letter_allows(letter, type->dtype))
        return fail(c->err, FRIT_INVALID, "%s: %s is %s, it must be %s%s", c->row->name,
                    operand_name(c, index), op_type_text(type, mine, sizeof(mine)),
                    letters[letter].text,
                    dtype_class(type->dtype) == FRIT_DTYPE_PACKED
                        ? " (packed types only pass through quantize and dequantize)"
                        : "");
    if (letter == FRIT_LETTER_NONE)
        return FRIT_OK;
    if (c->dtype[letter] == FRIT_NO_DTYPE) {
        c->dtype[letter] = type->dtype;
        c->first[letter] = index;
        return FRIT_OK;
    }
    if (c->dtype[letter] == type->dtype)
        return FRIT_OK;
    op_type_text(&c->call->in[c->first[letter]].type, other, sizeof(other));
    return fail(c->err, FRIT_INVALID,
                "%s: %s is %s but %s is %s; they must have one element type, cast one of them",
                c->row->name, operand_name(c, c->first[letter]), other, operand_name(c, index),
                op_type_text(type, mine, sizeof(mine)));
}

static frit_status check_tensors(struct check *c)
{
    frit_status status;

    for (uint32_t i = 0; i < c->call->n_in; i++) {
        TRY(check_role(c, i));
        if (c->call->in[i].kind != FRIT_OPERAND_TENSOR)
            continue;
        status = op_type_check(&c->call->in[i].type, c->err);
        if (status) {
            fail_context(c->err, "%s: operand %s", c->row->name, operand_name(c, i));
            return status;
        }
        TRY(bind_letter(c, i));
    }
    return FRIT_OK;
}

/* What the attribute `dtype` may be. */
static uint32_t attribute_letter(const frit_op_info *row)
{
    if (row->id == FRIT_OP_bitcast)
        return FRIT_LETTER_NONE;
    return row->record == FRIT_RECORD_quantize ? FRIT_LETTER_P : FRIT_LETTER_D;
}

/* The attribute `dtype` is the letter D. */
static frit_status bind_attribute(struct check *c)
{
    uint32_t dtype = attrs_dtype(c->row, c->call->attrs);
    uint32_t letter = attribute_letter(c->row);

    c->dtype[FRIT_LETTER_I64] = FRIT_I64;
    c->dtype[FRIT_LETTER_BOOL] = FRIT_BOOL;
    c->dtype[FRIT_LETTER_D] = dtype;
    if (dtype != FRIT_NO_DTYPE && !letter_allows(letter, dtype))
        return fail(c->err, FRIT_INVALID, "%s: attribute dtype is %s, it must be %s", c->row->name,
                    dtype_name(dtype), letters[letter].text);
    return FRIT_OK;
}

static frit_status check_scalar(const struct check *c, uint32_t index)
{
    const frit_slot_info *slot = op_slot(c->row, c->call->n_in, index);
    struct op_input *in = &c->call->in[index];
    uint32_t dtype = c->dtype[slot->letter];
    const char *why;
    char text[64], range[96];

    if (dtype == FRIT_NO_DTYPE && slot->role != FRIT_ROLE_NUM)
        return fail(c->err, FRIT_INVALID,
                    "%s: %s is a scalar, so another operand of its type must be a tensor",
                    c->row->name, slot->name);
    if (dtype == FRIT_NO_DTYPE)
        dtype = FRIT_F32;
    why = scalar_fit(&in->scalar, dtype);
    if (why)
        return fail(c->err, FRIT_INVALID, "%s: %s = %s %s; %s takes %s", c->row->name, slot->name,
                    scalar_text(&in->scalar, text, sizeof(text)), why, dtype_name(dtype),
                    scalar_range(dtype, range, sizeof(range)));
    if (slot->role == FRIT_ROLE_IN && dtype_class(dtype) == FRIT_DTYPE_FLOAT)
        in->scalar = scalar_f(scalar_round(scalar_number(&in->scalar), dtype));
    in->type = (struct op_type){.dtype = dtype};
    return FRIT_OK;
}

static frit_status check_scalars(const struct check *c)
{
    for (uint32_t i = 0; i < c->call->n_in; i++) {
        if (c->call->in[i].kind == FRIT_OPERAND_SCALAR)
            TRY(check_scalar(c, i));
        else if (c->call->in[i].kind == FRIT_OPERAND_ABSENT)
            c->call->in[i].type = (struct op_type){0};
    }
    return FRIT_OK;
}

/* ---- results ---- */

static frit_status check_outputs(const struct check *c, struct op_type *out)
{
    frit_status status;

    for (uint32_t k = 0; c->row->out[k].name; k++) {
        if (c->row->out[k].role == FRIT_ROLE_XOUT && !(c->call->wanted >> k & 1)) {
            out[k] = (struct op_type){0};
            continue;
        }
        status = op_type_check(&out[k], c->err);
        if (status) {
            fail_context(c->err, "%s: result %s", c->row->name, c->row->out[k].name);
            return status;
        }
    }
    return FRIT_OK;
}

frit_status op_check(struct op_call *call, struct op_type *out, frit_err *err)
{
    struct check c = {.row = op_row(call->op), .call = call, .err = err};

    memset(out, 0, FRIT_OP_MAX_OUT * sizeof(*out));
    if (!c.row)
        return fail(err, FRIT_INVALID, "there is no op %u", call->op);
    TRY(check_arity(&c));
    TRY(attrs_check(c.row, call->attrs, err));
    TRY(bind_attribute(&c));
    TRY(check_tensors(&c));
    TRY(check_scalars(&c));
    for (uint32_t k = 0; c.row->out[k].name; k++)
        out[k].dtype = c.dtype[c.row->out[k].letter];
    TRY(shape_infer(c.row, call, out, err));
    return check_outputs(&c, out);
}
