/* SPDX-License-Identifier: Apache-2.0 */
#include "host/graph/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/str.h"
#include "graph/dtype.h"
#include "graph/scalar.h"
#include "unit.h"

/* Reads a type and returns what is after it. */
static const char *read_type(const char *text, struct op_type *type)
{
    const char *open = strchr(text, '[');

    *type = (struct op_type){0};
    if (!open) {
        fail_msg("no type: %s", text);
        return text;
    }
    type->dtype = dtype_find((frit_str){text, (uint64_t)(open - text)});
    for (text = open + 1; *text != ']';) {
        char *end;

        assert_in_range(type->rank, 0, FRIT_MAX_RANK - 1);
        type->dims[type->rank++] = strtoll(text, &end, 0);
        assert_true(end != text);
        text = end + strspn(end, ", ");
    }
    return text + 1;
}

struct op_type type_of(const char *text)
{
    struct op_type type;

    read_type(text, &type);
    return type;
}

static const char *read_operand(const char *text, struct op_input *in)
{
    char *end;

    *in = (struct op_input){.kind = FRIT_OPERAND_ABSENT};
    if (strncmp(text, "none", 4) == 0)
        return text + 4;
    if (!strchr("+-0123456789ni", *text) || strncmp(text, "i8", 2) == 0 ||
        strncmp(text, "i16", 3) == 0 || strncmp(text, "i32", 3) == 0 ||
        strncmp(text, "i64", 3) == 0) {
        in->kind = FRIT_OPERAND_TENSOR;
        return read_type(text, &in->type);
    }
    in->kind = FRIT_OPERAND_SCALAR;
    in->scalar = scalar_i(strtoll(text, &end, 10));
    if (*end && *end != ';')
        in->scalar = scalar_f(strtod(text, &end));
    assert_true(end != text);
    return end;
}

void call_fill(struct call *call, const char *op, const char *operands, const void *attrs)
{
    const frit_op_info *row = op_find(str_of(op));

    if (!row) {
        fail_msg("no row: %s", op);
        return;
    }
    memset(call, 0, sizeof(*call));
    call->call.op = row->id;
    call->call.wanted = UINT32_MAX;
    call->call.in = call->in;
    while (*operands) {
        assert_in_range(call->call.n_in, 0, CALL_MAX_IN - 1);
        operands = read_operand(operands, &call->in[call->call.n_in++]);
        operands += strspn(operands, "; ");
    }
    if (frit_record_info_at(row->record)->n_fields) {
        assert_int_equal(attrs_copy(row, attrs, &call->attrs, NULL), FRIT_OK);
        call->call.attrs = &call->attrs;
    }
}

const char *call_check(struct call *call, const char *op, const char *operands, const void *attrs)
{
    char type[128];

    call_fill(call, op, operands, attrs);
    call->status = op_check(&call->call, call->out, &call->err);
    if (call->status) {
        snprintf(call->text, sizeof(call->text), "%s", call->err.text);
        return call->text;
    }
    for (uint32_t k = 0; k < FRIT_OP_MAX_OUT && call->out[k].dtype; k++) {
        size_t used = strlen(call->text);

        snprintf(call->text + used, sizeof(call->text) - used, "%s%s", k ? "; " : "",
                 op_type_text(&call->out[k], type, sizeof(type)));
    }
    return call->text;
}
